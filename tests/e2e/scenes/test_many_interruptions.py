"""EC2 takes a third of a fleet's nodes back at once, with two minutes' notice."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from reconciler.model.cluster import Pod
from tests.e2e.scene import FleetShape, Scene, pod_spec, template
from tests.full_proofs import rounds

NODES = rounds(10, 100)
PODS_EACH = 15
TAKEN = NODES * 3 // 10
JOB_SECONDS = 40
NOTICE_SECONDS = rounds(30, 120)
"""EC2's own are 120; the short run does not wait for nodes that have been empty for long."""
_CONFIG = """\
scale_in: {{idle_threshold: 600s}}
raise_limits: {{nodes_per_cycle: 500, nodes_per_hour: 2000}}
interruption: {{queue_url: '{queue}'}}"""


@pytest.mark.timeout(1500)
def test_a_third_of_all_nodes_is_replaced_once_and_before_its_end(
    scene: Scene, closing_lines: list[str]
) -> None:
    """Every pod is evicted and not killed, Jobs may finish, and nothing is bought twice."""
    fleet = FleetShape(target=NODES, most=3 * NODES)
    scene.open(fleet, config=_CONFIG.format(queue=scene.interruption_queue()))
    jobs, replicas = NODES, NODES * (PODS_EACH - 1)
    job = {"parallelism": jobs, "completions": jobs}
    lasts = {"annotations": {"sandbox.fleet-reconciler.io/duration": str(JOB_SECONDS)}}
    spec = pod_spec("150m", "64Mi", restartPolicy="Never")
    web = {"replicas": replicas, **template({"app": "web"}, pod_spec("200m", "64Mi"))}
    scene.create("Deployment", "web", web)
    scene.create("Job", "batch", {**job, "template": {"metadata": lasts, "spec": spec}})

    def web_running() -> list[Pod]:
        return [p for p in scene.running() if p.owner is not None and p.owner.kind == "ReplicaSet"]

    scene.until(lambda _: len(web_running()) == replicas, f"{replicas} pods run", 600)
    before = {p.key for p in web_running()}
    pods_on = Counter(p.node_name for p in web_running())
    targets = scene.targets()
    taken = sorted(scene.ready_nodes(), key=lambda n: (-pods_on[n.name], n.name))[:TAKEN]
    names = {n.name for n in taken}
    moved = sum(pods_on[name] for name in names)
    scene.interrupt(*taken, seconds=NOTICE_SECONDS)
    told_at = datetime.now(UTC)  # noqa: TID251 - compared with the program's own log
    scene.until(
        lambda _: not names & {n.name for n in scene.nodes()} and len(web_running()) == replicas,
        "all interrupted nodes are gone, and every pod runs",
        600,
    )
    evicted = [a for a in scene.actions("evict-pod") if a["node"] in names]
    assert len({a["pod"] for a in evicted}) == moved
    assert [a for a in scene.actions("delete-pod") if "web" in a["pod"]] == []
    raises = [a for a in scene.actions("set-capacity") if a["after"] > a["before"]]
    bought = sum(a["after"] - a["before"] for a in raises)
    assert bought <= TAKEN
    assert [a for a in scene.actions("set-capacity") if a["after"] < a["before"]] == []
    ended = [a["node"] for a in scene.actions("terminate-instance")]
    assert set(ended) <= names
    (target,) = scene.targets().values()
    assert target == sum(targets.values()) + bought - len(ended)
    assert len(before & {p.key for p in web_running()}) == replicas - moved
    first = datetime.fromisoformat(raises[0]["at"]) if raises else told_at
    closing_lines.append(
        f"{TAKEN} of {NODES} nodes interrupted, {moved} pods moved: capacity asked for after"
        f" {(first - told_at).total_seconds():.1f} s, {bought} nodes bought,"
        f" {len(ended)} ended by us"
    )
    scene.until(lambda _: scene.queued() == 0, "every message was dealt with")
