"""RemoveDuplicates: which pods are replicas of each other, and where they could be instead."""

import pytest

from reconciler.model.cluster import Owner, Pod
from reconciler.planner.descheduler_settings import RemoveDuplicates
from tests.builders import HOSTNAME, near
from tests.unit.planner.disruption.descheduler.scene import (
    Objects,
    descheduling,
    evicted,
    nodes,
    old,
)
from tests.unit.planner.disruption.scale_in.scene import moves, planned

DB = Owner(kind="StatefulSet", name="db", uid="2")
POD_NAME = "statefulset.kubernetes.io/pod-name"


def replica(node: str, name: str, claims: tuple[str, ...] = ()) -> Pod:
    """A pod of the StatefulSet, with the label that tells it from the others."""
    return old(node, name, owner=DB, cpu="200m", labels={POD_NAME: name}, claims=claims)


@pytest.mark.parametrize("claims", [True, False])
def test_replicas_of_a_stateful_set_are_spread(claims: bool) -> None:
    """Each has its own claim, or a label of its own that some tenant's selector reads."""
    pods = [replica("a", f"db-{i}", claims=(f"data-db-{i}",) if claims else ()) for i in range(4)]
    apart = (near(HOSTNAME, **{POD_NAME: "x"}),)
    tenant = old("b", "tenant", namespace="other", cpu="10m", pod_anti_affinity=apart)
    objects: Objects = [*nodes("a", "b"), *pods, *([] if claims else [tenant])]
    made = planned(descheduling(RemoveDuplicates()), *objects)
    assert set(moves(made).values()) == {"b"}
    assert len(evicted(made)) == 2


def test_replicas_of_different_specs_are_no_duplicates() -> None:
    """The pods of a rollout are not compared with those that it replaces."""
    pods = [old("a", f"db-{i}", owner=DB, cpu=f"{100 + i}m") for i in range(4)]
    assert evicted(planned(descheduling(RemoveDuplicates()), *nodes("a", "b"), *pods)) == {}
