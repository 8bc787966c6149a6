"""What the process knows while its Lease cannot be written."""

from dataclasses import replace
from datetime import datetime

from reconciler.model.actions import LAST_DRAIN, EvictPod
from reconciler.model.errors import Unavailable
from reconciler.model.ids import NodeName
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from tests.builders import make_pod
from tests.unit.loops.scene import EMPTY, Scene


def test_pause_of_the_spot_rescheduler_survives_a_lease_that_cannot_be_written() -> None:
    """The next on-demand node was drained at once."""
    scene, seen = Scene(), list[datetime | None]()
    key = scene.world.add_pod(make_pod("moved", cpu="1", node="elsewhere"))
    moved = EvictPod(
        pod=key,
        node=NodeName("elsewhere"),
        grace_seconds=1,
        policy="spot-reschedule",
        because="test",
    )

    def planned(snapshot: Snapshot) -> Plan:
        seen.append(snapshot.cluster.last_drain_at)
        return replace(EMPTY, at=snapshot.at, actions=(moved,) if len(seen) == 1 else ())

    scene.loop.plan = planned
    scene.world.fail_next("remember", Unavailable("lease", "no answer"), times=9)
    scene.run(3)
    assert LAST_DRAIN not in scene.world.lease_annotations
    assert seen[0] is None
    assert seen[1] is not None
