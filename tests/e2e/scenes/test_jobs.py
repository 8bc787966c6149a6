"""Batch work: from no nodes to some, and back to none."""

from tests.e2e.scene import FleetShape, Scene, pod_spec


def test_jobs_run_to_completion_from_zero_nodes_and_back(scene: Scene) -> None:
    """This is the program's purpose; here kube-scheduler, not our twin, places the pods."""
    scene.open(FleetShape(size="small"), FleetShape(size="medium"))
    for name, pods, cpu in (("nightly", 6, "1500m"), ("hourly", 9, "400m")):
        spec = pod_spec(cpu, "1Gi", restartPolicy="Never")
        scene.create(
            "Job",
            name,
            {"parallelism": pods, "completions": pods, "template": {"spec": spec}},
        )

    def done(name: str, pods: int) -> bool:
        return bool(scene.get("Job", name)["status"].get("succeeded", 0) == pods)

    scene.until(lambda _: done("nightly", 6) and done("hourly", 9), "both Jobs are done")
    bought = sum(action["after"] - action["before"] for action in scene.actions("set-capacity"))
    assert all(pod.node_name for pod in scene.pods())
    assert bought
    scene.until_empty()
