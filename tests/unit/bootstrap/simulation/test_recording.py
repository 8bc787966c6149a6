"""What `reconciler record` writes of a cluster that it watches."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import pytest

from reconciler.adapters.system_clock import SystemClock
from reconciler.bootstrap.simulation.recording import Tally, record_cluster
from reconciler.model.cluster import Pod
from reconciler.model.demand import PodDemand
from reconciler.model.errors import ObservationError, Unavailable
from reconciler.model.snapshot import ClusterState
from reconciler.ports.cluster import Cluster
from reconciler.records.demand import read_demand
from tests.builders import NOW, make_pod, make_snapshot, make_spec

NOON = NOW.replace(hour=12, minute=0, second=0)
Look = tuple[datetime, Sequence[Pod]]


class Watched(SystemClock):
    """A cluster and its clock: each look shows the next state, and the last one stops it."""

    def __init__(self, looks: Sequence[Look]) -> None:
        super().__init__()
        self._looks = list(looks)
        self._at = looks[0][0]

    def observe(self) -> ClusterState:
        """Return the next state."""
        self._at, pods = self._looks.pop(0)
        if not self._looks:
            self.stop.set()
        return make_snapshot(*pods, at=self._at).cluster

    def now(self) -> datetime:
        """Return the time of the last look."""
        return self._at

    def wait_for_change(self, timeout_seconds: float) -> bool:
        """Wait for nothing."""
        return timeout_seconds > 0

    def wait_seconds(self, seconds: float) -> None:
        """Wait for nothing."""


def after(seconds: float) -> datetime:
    """So long after noon."""
    return NOON + timedelta(seconds=seconds)


def test_recording_of_a_steady_cluster_lasts_until_the_last_look(tmp_path: Path) -> None:
    """It ended with the last change, so that its simulation was a second long."""
    web = make_pod("web", created_at=after(-60))
    watched = Watched([(after(10 * look), [web]) for look in range(100)])
    out = tmp_path / "demand.jsonl.gz"
    done = record_cluster(
        cast(Cluster, watched), watched, None, out, Tally(None), lambda done, share: None
    )
    with out.open("rb") as stream:
        demand = read_demand(stream, str(out))
    assert (demand.begin, demand.end) == (NOON, after(990))
    assert (done.pods, done.begin, done.end) == (1, NOON, after(990))
    assert done.lines < 20


def test_recording_that_is_there_stays_where_the_cluster_does_not_answer(tmp_path: Path) -> None:
    """A wrong kubeconfig emptied the recording of last week."""

    class Away(Watched):
        def observe(self) -> ClusterState:
            raise Unavailable("cluster", "connection refused")

    out, away = tmp_path / "week.jsonl", Away([(NOON, [])])
    out.write_text("a week\n")
    with pytest.raises(Unavailable):
        record_cluster(cast(Cluster, away), away, None, out, Tally(None), lambda done, share: None)
    assert out.read_text() == "a week\n"


class Interrupted(Watched):
    """The same, whose API server is away at some of the looks."""

    def __init__(self, looks: Sequence[Look], away: Sequence[int]) -> None:
        super().__init__(looks)
        self._number, self._away = 0, away

    def observe(self) -> ClusterState:
        """Return the next state, or refuse to."""
        self._number += 1
        state = super().observe()
        if self._number in self._away:
            raise ObservationError("https://k8s", "no answer about any kind for 61 s")
        return state


def test_recording_goes_on_when_the_api_server_was_away(tmp_path: Path) -> None:
    """A minute without it, of an EKS upgrade say, ended a week's recording on its second day."""
    web, late = make_pod("web", created_at=after(-60)), make_pod("late", created_at=after(25))
    looks: list[Look] = [(after(10 * look), [web]) for look in range(4)]
    watched = Interrupted([*looks, (after(40), [web, late])], away=(3, 4))
    out, told = tmp_path / "demand.jsonl", list[str]()
    cluster = cast(Cluster, watched)
    record_cluster(cluster, watched, None, out, Tally(None), lambda done, share: None, told.append)
    with out.open("rb") as stream:
        demand = read_demand(stream, str(out))
    assert [line.id for line in demand.lines if isinstance(line, PodDemand)] == [
        "uid-ns-web",
        "uid-ns-late",
    ]
    assert demand.end == after(40)
    assert len(told) == 2
    assert "no answer about any kind for 61 s" in told[0]
    assert "answers again" in told[1]


def test_recording_that_is_stopped_in_an_outage_ends_with_its_last_look(tmp_path: Path) -> None:
    """It had no end then, and counted as far as its last change only."""
    web = make_pod("web", created_at=after(-60))
    watched = Interrupted([(after(10 * look), [web]) for look in range(4)], away=(3, 4))
    out, cluster = tmp_path / "demand.jsonl", cast(Cluster, watched)
    record_cluster(cluster, watched, None, out, Tally(None), lambda done, share: None)
    with out.open("rb") as stream:
        assert read_demand(stream, str(out)).end == after(10)


def test_live_recording_is_for_its_owner_though_the_file_was_for_all(tmp_path: Path) -> None:
    """What a cluster runs was readable by everybody who could read the file before it."""
    out, watched = tmp_path / "live.jsonl", Watched([(NOON, [make_pod("web")])])
    out.write_text("old, and longer than what follows\n" * 999)
    out.chmod(0o644)
    record_cluster(
        cast(Cluster, watched), watched, None, out, Tally(None), lambda done, share: None
    )
    assert out.stat().st_mode & 0o077 == 0
    assert "old" not in out.read_text()


def test_work_of_days_that_ends_while_recorded_makes_the_demand_no_longer(tmp_path: Path) -> None:
    """An hour's recording was simulated for five days: the Job's run counted from the hour on."""
    old, began = after(-432_000), after(-431_990)
    runs = make_pod("job", owner="Job", created_at=old, started_at=began)
    done = make_pod("job", owner="Job", phase="Succeeded", created_at=old, started_at=began,
                    finished_at=after(595))  # fmt: skip
    looks = [(NOON, [runs]), (after(600), [done]), (after(900), [done]), (after(3_600), [])]
    out, watched = tmp_path / "demand.jsonl", Watched(looks)
    record_cluster(
        cast(Cluster, watched), watched, None, out, Tally(None), lambda done, share: None
    )
    with out.open("rb") as stream:
        demand = read_demand(stream, str(out))
    (job,) = demand.lines
    assert isinstance(job, PodDemand)
    assert (job.at, job.ran_seconds, job.kept_seconds) == (NOON, 595, 3_005)
    assert demand.end == after(3_600)


def test_watched_cluster_is_recorded_from_the_first_look_on(tmp_path: Path) -> None:
    """Pods counted from the midnight that passed, and quick ones were not recorded at all."""
    old, web = make_pod("old", created_at=after(-9_999)), make_pod("web", created_at=after(5))
    quick = make_pod("quick", created_at=after(12), owner="Job", phase="Succeeded",
                     started_at=after(13), finished_at=after(15))  # fmt: skip
    before = make_pod("before", created_at=after(-60), owner="Job", phase="Succeeded",
                      started_at=after(-50), finished_at=after(-40))  # fmt: skip
    midnight = NOON.replace(hour=0) + timedelta(days=1, seconds=3)
    watched = Watched(
        [
            (NOON, [old, before]),
            (after(10), [old, before, web]),
            (after(20), [old, before, web, quick]),
            (midnight, [old, web]),
        ]
    )
    out = tmp_path / "demand.jsonl"
    cluster = cast(Cluster, watched)
    record_cluster(cluster, watched, None, out, Tally(None), lambda done, share: None)
    with out.open("rb") as stream:
        lines = read_demand(stream, str(out)).lines
    assert {
        line.id: (line.at, line.ran_seconds) for line in lines if isinstance(line, PodDemand)
    } == {
        "uid-ns-old": (NOON, None),
        "uid-ns-web": (after(5), None),
        "uid-ns-quick": (after(12), 2),
    }


def test_recording_whose_last_pod_is_deleted_later_lasts_until_then() -> None:
    """The printed end was when the last pod was created, hours before the file's."""
    tally = Tally(None)
    pods = [
        PodDemand(at=NOON, id="a", spec=make_spec(), until=after(3600)),
        PodDemand(at=after(60), id="b", spec=make_spec(), ran_seconds=30),
    ]
    assert len(list(tally.encoded(pods))) == 2
    assert (tally.recorded().begin, tally.recorded().end) == (NOON, after(3600))
