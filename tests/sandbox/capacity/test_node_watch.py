"""node-watch as a process: from EC2's announcement in instance metadata to the emptied node."""

import base64
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.model.actions import DRAINING_TAINT, INTERRUPTION
from reconciler.model.interruption_annotation import WRITTEN_BY_NODE_WATCH, read_annotation
from reconciler.sandbox.aws.events.queue import count_messages, make_interruption_queue
from reconciler.sandbox.stack import Sandbox
from tests.growing import complete_lines
from tests.sandbox.capacity.fleets import REGION, create_fleet
from tests.sandbox.capacity.world import CONFIG, Program, World
from tests.waiting import until

pytestmark = pytest.mark.sandbox
MEMORY_KIB_MAX = 40 * 1024
START_SECONDS_MAX = 10.0
"""Under a second on an idle machine (docs/interruptions.md); the suite shares its processors."""
SECTOR = "watched"


class Watched:
    """A node of the sandbox and the node watch on it."""

    def __init__(
        self, world: World, process: "subprocess.Popen[bytes]", node: Any, log: Path
    ) -> None:
        self._world = world
        self.process = process
        self.name: str = node.metadata.name
        self.instance: str = node.spec.provider_id.rpartition("/")[2]
        self._log = log

    def node(self) -> Any:
        """The Node object."""
        return self._world.core.read_node(self.name)

    def annotation(self, key: str = INTERRUPTION) -> str:
        """An annotation; empty without one."""
        return str((self.node().metadata.annotations or {}).get(key, ""))

    def drains(self) -> list[str]:
        """The values of our draining taint."""
        taints = self.node().spec.taints or []
        return [taint.value for taint in taints if taint.key == DRAINING_TAINT]

    def events(self) -> list[str]:
        """The names of the log's lines so far."""
        return [json.loads(line)["event"] for line in complete_lines(self._log)]

    def memory_kib(self) -> int:
        """The most memory that the process ever had."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1])

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait; the end of the process ends it."""
        until(lambda: f"{what}\n{self._log.read_text()}", holds, process=self.process)


def account(sandbox: Sandbox, folder: Path) -> Path:
    """What the kubelet gives to a pod: a token, and the authority of the API server."""
    kubeconfig = yaml.safe_load(sandbox.kubeconfig.read_text())
    folder.mkdir()
    (folder / "token").write_text(kubeconfig["users"][0]["user"]["token"])
    authority = kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]
    (folder / "ca.crt").write_bytes(base64.b64decode(authority))
    return folder


@contextmanager
def watching(sandbox: Sandbox, world: World, node: Any, folder: Path) -> Iterator[Watched]:
    """`reconciler node-watch` for a node, over HTTP to its instance's metadata."""
    instance = node.spec.provider_id.rpartition("/")[2]
    log = folder / "node-watch.jsonl"
    environment = {**os.environ, "NODE_NAME": node.metadata.name}  # noqa: TID251 - a child inherits
    argv = [sys.executable, "-m", "reconciler", "node-watch"]
    argv += ["--metadata-url", sandbox.control.metadata_url(instance)]
    argv += ["--api-server", sandbox.cluster_url]
    argv += ["--service-account", str(account(sandbox, folder / "account"))]
    with log.open("wb") as stream:
        process = subprocess.Popen(argv, env=environment, stderr=stream)
    try:
        yield Watched(world, process, node, log)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@pytest.fixture
def node(sandbox: Sandbox, world: World) -> Any:
    """The one node of a sector of its own, with a running pod."""
    return node_of(sandbox, world, SECTOR)


def node_of(sandbox: Sandbox, world: World, sector: str) -> Any:
    """Return the one node of a new sector, with a running pod."""
    create_fleet(sandbox.aws_url, "small", 1, sector=sector)

    def joined() -> Any:
        mine = [n for n in world.nodes() if n.metadata.labels.get("sector") == sector]
        return next((n for n in mine if n.status.conditions), None)

    found = until("the node joins", joined)
    container = {"name": "main", "image": "web:1"}
    spec = {"containers": [container], "nodeSelector": {"sector": sector}}
    world.core.create_namespaced_pod("default", {"metadata": {"name": "web"}, "spec": spec})
    world.until_pods(lambda phases: phases.get("web") == "Running")
    return found


def test_announcement_reaches_the_node_and_the_capacity_loop_empties_it(
    sandbox: Sandbox, world: World, node: Any, tmp_path: Path
) -> None:
    """Without a queue nothing else would tell the capacity loop before the instance is gone."""
    began = time.monotonic()
    with watching(sandbox, world, node, tmp_path) as watched:
        watched.until("it started", lambda: watched.events() == ["node_watch_started"])
        assert time.monotonic() - began < START_SECONDS_MAX

        sandbox.control.announce("rebalance", [watched.instance])
        watched.until(
            "the recommendation is written",
            lambda: watched.annotation().startswith("rebalance-recommendation/"),
        )
        assert watched.drains() == []

        sandbox.control.interrupt([watched.instance], 600)
        watched.until("the interruption is", lambda: watched.annotation().startswith("terminate/"))
        assert watched.drains() == ["interruption"]
        assert watched.annotation(WRITTEN_BY_NODE_WATCH) == watched.annotation()
        (facts,) = (
            each
            for each in sandbox.control.instances()[1]
            if each["instance_id"] == watched.instance
        )
        notice = read_annotation(watched.annotation())
        assert notice is not None
        assert facts["interrupted_at"].startswith(notice.at.isoformat()[:19])

        config = tmp_path / "sectors.yaml"
        config.write_text(CONFIG.replace("primary", SECTOR))
        with Program(sandbox, config) as program:
            gone = program.until_event(
                "action_applied", lambda e: e["action"] == "evict-pod" and "web" in str(e)
            )
            assert gone["policy"] == "interruption"
            program.end()

        assert watched.memory_kib() < MEMORY_KIB_MAX
        watched.process.terminate()
        assert watched.process.wait(timeout=30) == 0
        assert watched.events().count("node_notice_written") == 2
        assert set(watched.events()) == {
            "node_watch_started",
            "node_notice_written",
            "node_watch_stopped",
        }
    world.remove_fleets(SECTOR)


@pytest.mark.nightly
def test_queue_and_node_watch_together_do_nothing_twice(
    sandbox: Sandbox, world: World, tmp_path: Path
) -> None:
    """Whoever has both would lose a pod, or pay for a node, for each of the two."""
    sector = "told-twice"
    queue = make_interruption_queue(sandbox.aws_url, REGION, sector)
    config = tmp_path / "sectors.yaml"
    config.write_text(
        CONFIG.replace("primary", sector) + f"interruption: {{queue_url: '{queue}'}}\n"
    )
    node = node_of(sandbox, world, sector)
    with watching(sandbox, world, node, tmp_path) as watched, Program(sandbox, config) as program:
        watched.until("it started", lambda: watched.events() == ["node_watch_started"])
        program.until_ready()
        sandbox.control.interrupt([watched.instance], 60)
        watched.until("node watch saw it", lambda: "node_notice_written" in watched.events())
        settled = program.until_event("notices_settled", lambda e: "acted" in str(e["notices"]))
        assert settled["notices"]
        until("the queue is empty", lambda: count_messages(sandbox.aws_url, REGION, sector) == 0)
        until(
            "the node is gone",
            lambda: watched.name not in {n.metadata.name for n in world.nodes()},
        )
        applied = [
            (e["action"], e["policy"])
            for e in program.events("action_applied")
            if e["policy"] == "interruption" or e["action"] == "set-capacity"
        ]
        program.end()
    counts = Counter(action for action, _ in applied)
    assert counts["evict-pod"] + counts["delete-pod"] == 1
    assert counts["taint-node"] <= 1
    assert counts["set-capacity"] <= 1
    assert watched.events().count("node_notice_written") == 1
    world.remove_fleets(sector)
