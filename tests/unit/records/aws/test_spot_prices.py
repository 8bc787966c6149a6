"""Spot prices as the AWS CLI prints them."""

from decimal import Decimal

from reconciler.model.ids import Region
from reconciler.model.snapshot import Ignored
from reconciler.records.aws import decode_spot_prices
from tests.unit.records.aws.aws_answers import Json

HOME = Region("us-west-2")


def test_spot_price_is_the_latest_of_the_cheapest_zone() -> None:
    """An old or dear zone's price would turn the plan to the wrong fleet."""

    def price(usd: str, zone: str, minute: int, product: str = "Linux/UNIX") -> Json:
        return {
            "InstanceType": "r5.xlarge",
            "AvailabilityZone": zone,
            "ProductDescription": product,
            "SpotPrice": usd,
            "Timestamp": f"2026-01-31T12:{minute:02}:00Z",
        }

    ignored: list[Ignored] = []
    history = [
        price("0.01", "a", 1),
        price("0.09", "a", 5),
        price("0.08", "b", 2, "Linux/UNIX (Amazon VPC)"),
        price("0.001", "b", 9, "Windows"),
        price("0.002", "b", 9, "SUSE Linux"),
        price("0.003", "a", 9, "Red Hat Enterprise Linux (Amazon VPC)"),
        price("NaN", "a", 9),
        price("0", "a", 9),
    ]
    prices = decode_spot_prices([(HOME, {"SpotPriceHistory": history})], ignored)
    assert prices == {(HOME, "r5.xlarge"): Decimal("0.08")}
    assert len(ignored) == 2
