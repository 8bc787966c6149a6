"""The caches are never older than they look: watches that get stuck, machines that slept."""

from pathlib import Path

import pytest

from reconciler.model.errors import ObservationError
from tests.contract.kubernetes_api import ApiScript, event, pod_json, until, watching
from tests.contract.scripted import Answer, Request


@pytest.mark.parametrize(
    "line",
    [
        event("ERROR", {"kind": "Status", "code": 500, "message": "unable to decode the event"}),
        event("RENAMED", pod_json("8")),
        b"<html>a proxy speaks</html>",
    ],
)
def test_watch_that_cannot_go_on_from_a_version_lists_again(tmp_path: Path, line: bytes) -> None:
    """Asked for from the same version it ends the same way for good, and yet looks fresh."""
    script = ApiScript()

    def missed(request: Request) -> Answer:
        if request.path.startswith("/api/v1/pods") and "watch=1" in request.path:
            script.pods = [pod_json("8")]
            if "resourceVersion=7" in request.path and script.lists == 1:
                return Answer(lines=(line,))
        return script(request)

    with watching(tmp_path, missed) as cluster:
        try:
            until(cluster, lambda state: len(state.pods) == 1)
        finally:
            script.hold.set()


def test_machine_that_slept_makes_observations_fail(tmp_path: Path) -> None:
    """A laptop that wakes up would decide from what the cluster was last night."""
    script, hours = ApiScript(), [0.0]
    with watching(tmp_path, script, awake_seconds=lambda: 3600.0 * hours[0]) as cluster:
        until(cluster, lambda _: script.watches > 0)
        hours[0] = 8.0
        with pytest.raises(ObservationError, match="not heard of for 28800 s"):
            cluster.observe()
