"""What the metrics say of pods that nothing can take."""

import json

from tests.unit.web.scene import Scene, unplaced


def test_resources_that_nothing_offers_are_one_code_in_metrics() -> None:
    """Whoever may create pods would choose how many series Prometheus has to keep."""
    with Scene() as scene:
        invented = [unplaced(str(n), f"insufficient-example.com/x{n}", "zone") for n in range(3)]
        twice = unplaced("twice", "insufficient-example.com/x1", "insufficient-example.com/x2")
        real = unplaced("real", "insufficient-nvidia.com/gpu", "insufficient-cpu")
        scene.cycle(
            unplaceable=(*invented, twice, real), offered_resources=frozenset({"nvidia.com/gpu"})
        )
        name = "fleet_reconciler_pods_unplaceable"
        codes = {"other": 4, "nvidia.com/gpu": 1, "cpu": 1}
        for code, pods in codes.items():
            assert scene.metric(f'{name}{{code="insufficient-{code}"}}') == pods
        assert scene.ask("/metrics")[2].count(f"{name}{{") == len(codes) + 1
        status = json.loads(scene.ask("/api/status")[2])["plan"]["unplaceable_by_code"]
        assert status["insufficient-example.com/x1"] == 2, "the page names each resource"


def test_pod_with_several_codes_is_one_pod() -> None:
    """The dashboard showed more pods that no fleet can take than pods that wait."""
    with Scene() as scene:
        scene.cycle(unplaceable=(unplaced("a", "taint", "zone"), unplaced("b", "taint", "zone")))
        assert scene.metric("fleet_reconciler_pods_pending_unplaceable") == 2
        assert scene.metric("fleet_reconciler_pods_pending") == 2
