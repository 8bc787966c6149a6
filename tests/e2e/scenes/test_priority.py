"""Priorities when a fleet is at its maximum: kube-scheduler preempts, the plan buys nothing."""

from tests.e2e.scene import FleetShape, Scene, pod_spec, template


def test_urgent_pods_displace_others_at_the_maximum(scene: Scene) -> None:
    """Buying beyond the maximum for pods that preemption serves would break the limit."""
    scene.open(FleetShape(size="small", most=1))
    for name, value in (("urgent", 1000), ("usual", 10)):
        body = {"metadata": {"name": f"{scene.name}-{name}"}, "value": value}
        scene.create_cluster_wide("/apis/scheduling.k8s.io/v1/priorityclasses", body)
    for name, replicas in (("usual", 2), ("urgent", 1)):
        spec = pod_spec("100m", "13Gi", priorityClassName=f"{scene.name}-{name}")
        scene.create("Deployment", name, {"replicas": replicas, **template({"app": name}, spec)})
        _until_runs(scene, name)
    assert scene.targets() == {f"{scene.name}-small": 1}

    def refused() -> bool:
        plan = scene.plan()
        codes = {r["code"] for each in plan["unplaceable"] for r in each["reasons"]}
        return len(plan["unplaceable"]) == 1 and "max-capacity" in codes

    scene.until(lambda _: refused(), "the displaced pod is refused at the maximum")
    assert len(_running(scene, "usual")) == 1


def _until_runs(scene: Scene, name: str) -> None:
    scene.until(lambda _: _running(scene, name), f"{name} runs")


def _running(scene: Scene, name: str) -> list[str]:
    return [p.key.name for p in scene.running() if p.key.name.startswith(name)]
