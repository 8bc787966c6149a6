"""The commands that open the worst moments of a report."""

from reconciler.simulation.moments import MomentOpener

MOMENT = {"at": "2026-03-01T12:00:00Z", "pod": "ci/build", "snapshot": "moments/a-1"}


def test_config_of_standard_input_is_read_from_there_again() -> None:
    """The command waited for a config on standard input."""
    opener = MomentOpener(folder="report")
    assert opener.command("-", MOMENT).endswith("--explain ci/build < CONFIG")
    assert opener.command("sectors.yaml", MOMENT).endswith("--explain ci/build")
