"""Spot capacity runs out and comes back: pods go to on-demand nodes, and then to spot nodes."""

from collections.abc import Iterator

import pytest

from reconciler.model.snapshot import ClusterState
from tests.e2e.plotting import Plot
from tests.e2e.scene import FleetShape, Scene, pod_spec, template
from tests.full_proofs import rounds

_CONFIG = """\
scale_in: {idle_threshold: 20s, settle_time: 5s, utilization_threshold: 0}
spot_rescheduler: {enabled: true, node_drain_delay: 5s}"""
_TAINT = {"key": "lifecycle", "value": "OnDemand", "effect": "PreferNoSchedule"}
_QUIET_PLANS = rounds(4, 1800)
PODS = 12


@pytest.fixture
def shortage(scene: Scene) -> Iterator[Scene]:
    """A scene without spot capacity; there is some again when it is over."""
    scene.spot_shortage()
    yield scene
    scene.spot_is_back()


def _lifecycles(scene: Scene) -> dict[str, int]:
    """How many pods run on spot and on on-demand nodes."""
    of_node = {str(node.name): node.labels["lifecycle"] for node in scene.nodes()}
    found: dict[str, int] = {}
    for pod in scene.running():
        kind = of_node.get(str(pod.node_name), "")
        found[kind] = found.get(kind, 0) + 1
    return found


def test_pods_come_back_to_spot_nodes_and_on_demand_nodes_go(
    shortage: Scene, closing_lines: list[str]
) -> None:
    """The shortage of one hour is paid for until somebody looks."""
    scene = shortage
    scene.open(
        FleetShape(lowest=6, fallback=True),
        FleetShape(size="medium", spot=False, taints=(_TAINT,)),
        config=_CONFIG,
    )
    labels = {"app": "web"}
    # Of a node's seven pods at most: kube-scheduler may fill one before the others are there.
    budget = {"maxUnavailable": 3, "selector": {"matchLabels": labels}}
    scene.create("PodDisruptionBudget", "web", budget)
    scene.create("Deployment", "web", {"replicas": PODS, **template(labels, pod_spec("1"))})
    plot = Plot(scene, "spot-rescheduler")

    def on_demand(state: ClusterState) -> bool:
        plot.note(state)
        return _lifecycles(scene) == {"OnDemand": PODS}

    scene.until(on_demand, "all run on demand")
    dear = {node.name for node in scene.nodes()}
    scene.spot_is_back()

    def moved(state: ClusterState) -> bool:
        plot.note(state)
        return _lifecycles(scene) == {"Ec2Spot": PODS} and not dear & {
            node.name for node in scene.nodes()
        }

    scene.until(moved, "all run on spot nodes, and the on-demand nodes are gone", 300)
    evicted = scene.actions("evict-pod")
    assert {a["policy"] for a in evicted} == {"spot-reschedule"}
    assert len({a["pod"] for a in evicted}) == PODS
    assert {a["policy"] for a in scene.actions("terminate-instance")} == {"scale-in"}
    plot.draw()
    scene.until_planned_again(_QUIET_PLANS)
    assert len(scene.actions("evict-pod")) == len(evicted)
    closing_lines.append(
        f"spot rescheduler: {PODS} pods of {len(dear)} on-demand nodes moved to spot nodes under"
        f" maxUnavailable 3, then {_QUIET_PLANS} quiet plans"
    )
