"""A fleet gets a launch template version whose nodes never join."""

import base64

import pytest

from tests.e2e.scene import Scene
from tests.e2e.updated_service import NODES, instances, opened

_NOT_BOOTING = base64.b64encode(b"#!/bin/bash\nexit 1\n").decode()


@pytest.mark.timeout(600)
def test_image_whose_nodes_never_join_halts_after_one(scene: Scene) -> None:
    """The service goes on as it was, and the next version begins afresh."""
    old = opened(scene)
    fleet = f"{scene.name}-small"
    bad = scene.change_template(fleet, _NOT_BOOTING)
    scene.until(
        lambda _: any(e["state"] == "halted" for e in scene.events("rolling_update")),
        "the update is halted",
    )
    scene.until(lambda _: scene.targets()[fleet] == NODES, "the target is as it was")
    (update,) = [f["rolling_update"] for f in scene.plan()["fleets"] if f["fleet"] == fleet]
    assert (update["version"], update["state"], update["old"]) == (bad, "halted", NODES)
    assert "never became a node" in update["because"]
    assert scene.actions("evict-pod") == []
    assert len(scene.running()) == 2 * NODES
    assert instances(scene) == old
    assert len(scene.actions("terminate-instance")) == 1
    good = scene.change_template(fleet, scene.user_data("small"))
    scene.until(
        lambda _: any(
            e["state"] == "rolling" and e["version"] == good for e in scene.events("rolling_update")
        ),
        "the next version is rolled out",
        300,
    )
