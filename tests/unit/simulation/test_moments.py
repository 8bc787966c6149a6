"""The worst moments of a report, and the commands that open them."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from reconciler.model.cluster import Owner
from reconciler.model.demand import DemandLine, FaultDemand, PodDemand
from reconciler.records.demand import folded, recorded_from
from reconciler.simulation.chances import Chances
from reconciler.simulation.figures import figures
from reconciler.simulation.moments import MomentOpener
from reconciler.simulation.simulation import Options, Simulation
from tests.builders import make_fleet_settings, make_settings, make_spec

MOMENT = {"at": "2026-03-01T12:00:00Z", "pod": "ci/build", "snapshot": "moments/a-1"}


def test_config_of_standard_input_is_read_from_there_again() -> None:
    """The command waited for a config on standard input."""
    opener = MomentOpener(folder="report")
    assert opener.command("-", MOMENT).endswith("--explain ci/build < CONFIG")
    assert opener.command("sectors.yaml", MOMENT).endswith("--explain ci/build")


def test_pod_that_fits_nowhere_hides_no_bad_moment() -> None:
    """The worst moments were those in which nothing but that pod waited, and all named it."""
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    shortage, over = at + timedelta(hours=4), at + timedelta(hours=4, minutes=25)
    lines: list[DemandLine] = [
        PodDemand(at=at, id="stuck", spec=make_spec("999")),
        FaultDemand(at=shortage, fault="capacity", until=over),
        *(PodDemand(at=shortage + timedelta(seconds=n), id=f"job-{n}", spec=make_spec("1"),
                    controller=Owner(kind="Job", name=f"job-{n}"), ran_seconds=300)
          for n in range(9)),
    ]  # fmt: skip
    calm = Chances(interruptions_per_hour=0, capacity_errors_per_day=0)
    options = Options(days=0.3, chances=calm)
    settings = make_settings(make_fleet_settings(price="0.10"))
    found = figures(Simulation(folded(lines), settings, options).run(), "config")
    worst, *others = found["moments"]
    assert shortage < datetime.fromisoformat(worst["at"]) <= over + timedelta(minutes=2)
    assert (worst["pods_waiting"], worst["pod"]) == (10, "default/job-0")
    assert {moment["pod"] for moment in others} == {"default/stuck"}


def test_wait_that_grows_for_hours_has_three_worst_moments() -> None:
    """Each plan of a shortage was worse than the one before, and took its place: one was left."""
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    lines: list[DemandLine] = [
        FaultDemand(at=at, fault="capacity"),
        *(PodDemand(at=at + timedelta(minutes=10 * n), id=f"job-{n}", spec=make_spec("1"))
          for n in range(36)),
    ]  # fmt: skip
    options = Options(days=0.25)
    settings = make_settings(make_fleet_settings(price="0.10"))
    found = figures(Simulation(folded(lines), settings, options).run(), "config")["moments"]
    times = [datetime.fromisoformat(each["at"]) for each in found]
    assert len(times) == 3
    assert all(later - earlier >= timedelta(hours=1) for later, earlier in pairwise(times))
    waited = [each["waited_seconds_together"] for each in found]
    assert waited == sorted(waited, reverse=True)
    assert times[0] > at + timedelta(hours=5.9)


def test_beginning_of_a_recording_is_no_bad_moment() -> None:
    """Pods that had their nodes wait there only because the simulation begins without any.

    One of them that still waits later is a reason to look, as any other.
    """
    at, late = datetime(2026, 3, 1, 12, tzinfo=UTC), datetime(2026, 3, 1, 16, tzinfo=UTC)
    lines: list[DemandLine] = [
        *(PodDemand(at=at, id=f"old-{n}", spec=make_spec("1")) for n in range(40)),
        FaultDemand(at=late, fault="capacity", until=late + timedelta(minutes=8)),
        *(PodDemand(at=late, id=f"new-{n}", spec=make_spec("3")) for n in range(4)),
    ]
    options = Options(days=0.25)
    settings = make_settings(make_fleet_settings(price="0.10"))
    demand = folded([recorded_from(at), *lines])
    found = figures(Simulation(demand, settings, options).run(), "config")["moments"]
    assert [each["pod"] for each in found] == ["default/new-0"]
    stuck = folded([recorded_from(at), PodDemand(at=at, id="stuck", spec=make_spec("999"))])
    found = figures(Simulation(stuck, settings, options).run(), "config")["moments"]
    assert {each["pod"] for each in found} == {"default/stuck"}
