"""A pod that fits nowhere: it gets the reason, and delays no other pod."""

from tests.e2e.scene import FleetShape, Scene, pod_spec, template


def test_pod_that_fits_nowhere_buys_nothing_and_holds_nobody_up(scene: Scene) -> None:
    """A node bought in the hope that it fits would be bought again and again."""
    scene.open(FleetShape(size="small"))
    for name, spec in (
        ("huge", pod_spec("100m", "300Gi")),
        ("elsewhere", pod_spec("100m", nodeSelector={"disktype": "nvme"})),
    ):
        scene.create("Deployment", name, {"replicas": 1, **template({"app": name}, spec)})

    def refused() -> dict[str, str]:
        return {
            each["pod"].partition("-")[0]: each["reasons"][0]["code"]
            for each in scene.plan()["unplaceable"]
        }

    wanted = {"huge": "insufficient-memory", "elsewhere": "node-selector"}
    scene.until(lambda _: refused() == wanted, "both are refused with their reason")
    assert not scene.actions("set-capacity")
    scene.create("Deployment", "fine", {"replicas": 2, **template({"app": "fine"}, pod_spec("1"))})
    scene.until(lambda _: len(scene.running()) == 2, "others get their node")
    assert scene.targets() == {f"{scene.name}-small": 1}
    assert refused() == wanted
