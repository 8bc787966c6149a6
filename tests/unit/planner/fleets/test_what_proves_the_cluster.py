"""Whose instances prove that cluster and fleets belong together, and what their words are."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.binding import Binding
from reconciler.model.fleet import CLUSTER_TAG, FLEET_TAG, Instance
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId
from reconciler.planner.planner import plan
from tests.builders import (
    ago,
    identity,
    kept_proof,
    make_cloud,
    make_fleet,
    make_instance,
    make_node,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import FLEET, instance

LIVE = make_fleet(FLEET, 2)
SETTINGS = make_settings(FLEET)
NODE = make_node("n")
OURS = {CLUSTER_TAG: SETTINGS.cluster, FLEET_TAG: FLEET.name}


def judged(*instances: Instance, **changed: Any) -> Binding:
    """The verdict on a cluster of one node, with one old instance of the fleet elsewhere."""
    cloud = make_cloud(LIVE, instances=[instance(LIVE, "i-far", 9000), *instances])
    snapshot = make_snapshot(NODE, cloud=changed.pop("cloud", cloud), **identity(), **changed)
    return plan(snapshot, SETTINGS).binding


@pytest.mark.parametrize(
    ("tags", "verdict"),
    [
        (OURS, "proven"),
        ({}, "unproven"),
        ({**OURS, CLUSTER_TAG: "other"}, "unproven"),
        ({CLUSTER_TAG: SETTINGS.cluster}, "unproven"),
        ({**OURS, FLEET_TAG: ""}, "unproven"),
    ],
    ids=["of-a-fleet-that-is-gone", "of-nobody", "of-another-cluster", "of-no-fleet", "unnamed"],
)
def test_node_outside_of_the_fleets_proves_the_cluster_by_both_tags_alone(
    tags: dict[str, str], verdict: str
) -> None:
    """Any node of another cluster in the account would let its nodes be taken for dead."""
    elsewhere = make_instance(NODE, replace(LIVE, id=FleetId("fleet-gone")), tags=FrozenMap(tags))
    assert judged(elsewhere).verdict == verdict


def test_nothing_is_judged_while_ec2_was_not_asked_for_instances() -> None:
    """A plan from files without instances would remove nothing, whatever its nodes show."""
    cloud = make_cloud(LIVE, instances_known=False, instances_asked=False)
    binding = judged(cloud=cloud)
    assert (binding.verdict, binding.may_remove) == (Binding(because="").verdict, True)
    assert "EC2's instances are not known" in binding.because


def test_only_a_proof_of_another_cluster_is_called_one() -> None:
    """The operator would look for a Lease that came out of a backup."""
    gone = kept_proof(make_fleet(FLEET, id=FleetId("fleet-of-old")))["proof"]
    assert judged().because.count("another cluster") == 0
    binding = judged(proof=gone)
    assert binding.verdict == "unproven"
    assert "another cluster" not in binding.because
    binding = judged(proof=replace(gone, cluster_uid="22222222", proven_at=ago(60)))
    assert "the Lease's proof is of another cluster" in binding.because
