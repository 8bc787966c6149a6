"""The label kubernetes.io/hostname of nodes to come."""

from reconciler.planner.planner import plan
from tests.builders import (
    HOSTNAME,
    make_fleet_settings,
    make_pod,
    make_settings,
    make_snapshot,
    requiring,
)
from tests.unit.planner.placed import bought


def test_every_new_node_has_a_hostname() -> None:
    """Kubelet sets the label on each node."""
    fleet = make_fleet_settings()
    pod = make_pod(node_affinity=requiring(HOSTNAME, "Exists"))
    made = plan(make_snapshot(pod), make_settings(fleet))
    assert not made.unplaceable
    assert bought(made) == 1


def test_no_node_is_bought_for_a_pod_that_avoids_hostnames() -> None:
    """It runs on no node with that label, so on none."""
    fleet = make_fleet_settings()
    pod = make_pod(node_affinity=requiring(HOSTNAME, "DoesNotExist"))
    assert bought(plan(make_snapshot(pod), make_settings(fleet))) == 0
