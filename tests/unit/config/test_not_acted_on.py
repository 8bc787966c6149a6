"""What a config asks for and nothing does yet is named, and only that."""

import pytest

from reconciler.config.json_schema import descriptions, sections
from reconciler.config.not_acted_on import not_acted_on
from tests.unit.config.documents import COMPLETE, config_of, with_fleets

ASKED = {
    "maintenance_windows": "maintenance_windows: [{starts: '22:00', ends: '04:00'}]",
    "spot_rescheduler": "spot_rescheduler: {enabled: true}",
    "descheduler": "descheduler: {enabled: true}",
    "rolling_update": "rolling_update: {enabled: true}",
    "interruption.queue_url": "interruption: {queue_url: 'https://sqs/q'}",
    "expire_after": with_fleets("{size: small, expire_after: 720h}"),
}


def test_config_that_asks_for_nothing_of_it_is_left_in_peace() -> None:
    """A warning that everybody gets is read by nobody."""
    assert not_acted_on(config_of(COMPLETE)) == ()


@pytest.mark.parametrize("key", ASKED)
def test_key_without_effect_is_named(key: str) -> None:
    """Whoever turns a feature on waits for it, and must hear that it is not there."""
    assert not_acted_on(config_of(ASKED[key])) == (key,)


def test_reference_says_so_of_the_same_keys() -> None:
    """The page and the log must not tell different stories."""
    said = {
        key
        for model in sections()
        for key, text in descriptions(model).items()
        if text.endswith("Accepted, not acted on yet.")
    }
    assert said == {key.partition(".")[0] for key in ASKED}
