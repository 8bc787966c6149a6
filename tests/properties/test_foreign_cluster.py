"""Nothing is ever ended from the picture of another cluster, however long one looks at it."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.actions import (
    DRAINING_TAINT,
    DeleteNode,
    DeletePod,
    EvictPod,
    SetCapacity,
    TaintNode,
    TerminateInstance,
)
from reconciler.model.binding import KeptProof
from reconciler.model.cluster import Namespace
from reconciler.model.ids import InstanceId
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.planner import plan
from tests.builders import ago
from tests.properties.case import Case
from tests.properties.mix import Mix
from tests.properties.strategies import cases

ELSEWHERE = Mix(clouds=True, nodes_max=8, apps_max=3, idle=True)
STEPS = 4
DAY = timedelta(days=1)


def seen_from_elsewhere(snapshot: Snapshot, proof: KeptProof | None) -> Snapshot:
    """The same fleets, whose instances are nodes of another cluster than the one that answers."""
    assert snapshot.cloud is not None
    instances = tuple(
        replace(
            instance, id=InstanceId(f"{instance.id}-of-another-cluster"), launched_at=ago(90_000)
        )
        for instance in snapshot.cloud.instances
    )
    cluster = replace(
        snapshot.cluster, namespaces=(Namespace(name="kube-system", uid="uid-of-b"),), proof=proof
    )
    return replace(snapshot, cloud=replace(snapshot.cloud, instances=instances), cluster=cluster)


def removals(made: Plan) -> list[str]:
    """Everything in a plan that ends, drains or deletes something."""
    found: list[str] = []
    for action in made.actions:
        match action:
            case TerminateInstance() | DeleteNode() | EvictPod() | DeletePod():
                found.append(repr(action))
            case TaintNode() if action.taint.key == DRAINING_TAINT:
                found.append(repr(action))
            case _:
                pass
    return found


@given(case=cases(ELSEWHERE), other=st.sampled_from(["none", "another cluster", "another account"]))
@settings(max_examples=120)
def test_foreign_cluster_never_ends_drains_or_deletes_anything(case: Case, other: str) -> None:
    """A wrong kube-context, a rebuilt cluster or a restored Lease would end a fleet."""
    assert case.snapshot.cloud is not None
    fleets = tuple(fleet.id for fleet in case.snapshot.cloud.fleets)
    proofs = {
        "none": None,
        "another cluster": KeptProof(cluster_uid="uid-of-a", fleets=fleets, proven_at=ago(60)),
        "another account": KeptProof(cluster_uid="uid-of-b", fleets=(), proven_at=ago(60)),
    }
    snapshot = seen_from_elsewhere(case.snapshot, proofs[other])
    every = replace(
        case.settings, allow_destroy=frozenset(fleet.name for fleet in case.settings.fleets())
    )
    for step in range(STEPS):
        cluster = replace(snapshot.cluster, relists=1 + 5 * step)
        snapshot = replace(snapshot, cluster=cluster, at=snapshot.at + step * DAY)
        made = plan(snapshot, every)
        assert removals(made) == []
        assert made.binding.verdict in {"unproven", "pending"}
        assert made.binding.kept is None
        lowered = [a for a in made.actions if isinstance(a, SetCapacity) and _lowers(a, snapshot)]
        assert lowered == []
        snapshot = replace(
            snapshot,
            cluster=replace(
                snapshot.cluster,
                fleet_states=made.fleet_states,
                demands=made.demands,
                lost_fleets=made.lost_fleets,
                stuck_ends=made.stuck_ends,
            ),
        )


def _lowers(action: SetCapacity, snapshot: Snapshot) -> bool:
    """Whether a target goes below the fleet's living instances."""
    assert snapshot.cloud is not None
    own = sum(i.fleet_id == action.id and not i.gone for i in snapshot.cloud.instances)
    return action.to_capacity < min(own, action.from_capacity)
