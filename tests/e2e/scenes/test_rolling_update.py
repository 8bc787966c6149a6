"""A fleet gets a new launch template version: its nodes are replaced, and no service is short."""

import pytest

from reconciler.model.snapshot import ClusterState
from tests.e2e.scene import Scene
from tests.e2e.updated_service import BATCH, NODES, InService, opened


@pytest.mark.timeout(1200)
def test_nodes_of_an_old_image_are_replaced_batch_by_batch(
    scene: Scene, closing_lines: list[str]
) -> None:
    """A new image that reaches no running node is not rolled out."""
    old = opened(scene)
    watched = InService(scene)
    version = scene.change_template(f"{scene.name}-small")

    def done(_state: ClusterState) -> bool:
        return not old & watched.look() and len(scene.running()) == 2 * NODES

    scene.until(done, "every node is a new one, and every pod runs", 900)
    assert watched.fewest_nodes >= NODES
    states = [e["state"] for e in scene.events("rolling_update") if e["version"] == version]
    assert states[0] in {"waiting", "canary"}
    assert "rolling" in states
    assert "halted" not in states
    ended = scene.actions("terminate-instance")
    assert {a["policy"] for a in ended} == {"rolling-update"}
    assert {a["instance"] for a in ended} == old
    evicted = scene.actions("evict-pod")
    raised = [a["after"] - a["before"] for a in scene.actions("set-capacity")]
    bought = sum(each for each in raised if each > 0)
    assert raised[0] == 1, "the first one is a canary"
    assert bought == NODES
    closing_lines.append(
        f"rolling update of {NODES} nodes in batches of {BATCH}: {len(evicted)} pods moved,"
        f" {bought} nodes bought, at least {watched.fewest_nodes} in service"
    )
