"""The loop: when it reads the node, how it waits after failures, what it logs."""

import io
import json
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.adapters.memory import ManualClock
from reconciler.model.actions import INTERRUPTION
from reconciler.model.errors import Conflict, PortError, Throttled, Unavailable
from reconciler.model.interruption_annotation import AnnotatedNotice
from reconciler.node_watch.announcements import Announcements
from reconciler.node_watch.decision import NodeChange, OwnNode
from reconciler.node_watch.log import StateLog
from reconciler.node_watch.watch import ATTEMPTS, PAUSE_MAX_SECONDS, POLL_SECONDS, NodeWatch

NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
ENDING = Announcements(
    notices=frozenset({AnnotatedNotice(action="terminate", at=NOW + timedelta(minutes=2))})
)


@dataclass
class Metadata:
    """Says what a test put there."""

    said: Announcements = field(default_factory=Announcements)
    error: PortError | None = None

    def read(self) -> Announcements:
        if self.error is not None:
            raise self.error
        return self.said

    def instance_id(self) -> str:
        return "i-1"


@dataclass
class Node:
    """A node in memory; the next writes meet the errors that a test put there."""

    now: OwnNode = field(
        default_factory=lambda: OwnNode(
            resource_version="1", provider_id="aws:///z/i-1", annotations={}, taints=()
        )
    )
    error: PortError | None = None
    conflicts: int = 0
    reads: int = 0
    writes: int = 0

    def read(self) -> OwnNode:
        self.reads += 1
        if self.error is not None:
            raise self.error
        return self.now

    def write(self, node: OwnNode, change: NodeChange) -> None:
        self.writes += 1
        if self.conflicts:
            self.conflicts -= 1
            raise Conflict("node", "changed")
        texts: dict[str, Any] = {**node.annotations, **change.annotations}
        kept = {key: text for key, text in texts.items() if text is not None}
        taints = node.taints if change.taints is None else change.taints
        self.now = replace(node, annotations=kept, taints=taints)


class Scene:
    """A node watch in virtual time."""

    def __init__(self) -> None:
        self.metadata, self.node = Metadata(), Node()
        self.clock = ManualClock(NOW)
        self.stream = io.StringIO()
        lines = StateLog(self.stream, self.clock.now, "a")
        self.watch = NodeWatch(self.metadata, self.node, self.clock, lines)

    def turns(self, count: int) -> list[float]:
        """Take turns, each after the wait that the one before asked for."""
        waits = []
        for _ in range(count):
            waits.append(self.watch.turn())
            self.clock.advance(waits[-1])
        return waits

    def events(self) -> list[str]:
        """The names of the log's lines."""
        return [json.loads(line)["event"] for line in self.stream.getvalue().splitlines()]


def test_quiet_node_is_read_once() -> None:
    """A thousand nodes that ask for themselves every two seconds would load the API server."""
    scene = Scene()
    assert scene.turns(100) == [POLL_SECONDS] * 100
    assert (scene.node.reads, scene.node.writes) == (1, 0)
    assert scene.events() == []


def test_announcement_is_written_in_its_turn_and_read_again() -> None:
    """A patch that another writer undid at the same moment would be taken for done."""
    scene = Scene()
    scene.turns(1)
    scene.metadata.said = ENDING
    scene.turns(1)
    assert scene.node.now.annotations[INTERRUPTION] == "terminate/2026-01-31T12:02:00Z"
    assert (scene.node.reads, scene.node.writes) == (3, 1)
    assert scene.events() == ["node_notice_written"]


def test_node_is_looked_at_again_while_something_is_announced() -> None:
    """Another writer could put a later notice over it."""
    scene = Scene()
    scene.metadata.said = ENDING
    scene.turns(1)
    later = {INTERRUPTION: "terminate/2026-01-31T12:30:00Z"}
    scene.node.now = replace(scene.node.now, annotations=later)
    scene.turns(20)
    assert scene.node.now.annotations[INTERRUPTION] == "terminate/2026-01-31T12:02:00Z"
    assert scene.node.reads < 10


def test_conflicts_are_tried_again_from_the_node_as_it_is() -> None:
    """The kubelet writes the node too."""
    scene = Scene()
    scene.metadata.said, scene.node.conflicts = ENDING, ATTEMPTS - 1
    scene.turns(1)
    assert INTERRUPTION in scene.node.now.annotations


def test_conflicts_without_end_are_a_failure_that_is_tried_later() -> None:
    """A writer that runs wild must not make this one run wild too."""
    scene = Scene()
    scene.metadata.said, scene.node.conflicts = ENDING, 100
    scene.turns(1)
    assert scene.node.writes == ATTEMPTS
    assert scene.events() == ["api_server_state"]


def test_metadata_that_does_not_answer_is_asked_less_often_and_logged_once() -> None:
    """A log line every two seconds on every node hides everything else."""
    scene = Scene()
    scene.metadata.error = Unavailable("GET /latest", "timed out")
    waits = scene.turns(50)
    assert waits[:5] == [2.0, 4.0, 8.0, 16.0, PAUSE_MAX_SECONDS]
    assert set(waits[5:]) == {PAUSE_MAX_SECONDS}
    scene.metadata.error = None
    scene.turns(2)
    assert scene.events() == ["instance_metadata_state"] * 2
    assert json.loads(scene.stream.getvalue().splitlines()[-1])["state"] == "ok"


def test_api_server_that_is_down_is_asked_less_often_and_logged_once() -> None:
    """Metadata is still polled: the notice is written when the API server is back."""
    scene = Scene()
    scene.metadata.said = ENDING
    scene.node.error = Unavailable("GET /api/v1/nodes/a", "connection refused")
    scene.turns(30)
    assert 4 <= scene.node.reads <= 6
    assert scene.events() == ["api_server_state"]
    scene.node.error = None
    scene.turns(15)
    assert INTERRUPTION in scene.node.now.annotations
    assert scene.events().count("api_server_state") == 2


def test_pause_that_the_api_server_asks_for_is_kept() -> None:
    """Priority and fairness sheds load that comes back at once."""
    scene = Scene()
    scene.metadata.said = ENDING
    scene.node.error = Throttled("GET /api/v1/nodes/a", "too many requests", 20.0)
    scene.turns(9)
    assert scene.node.reads == 1
    scene.turns(3)
    assert scene.node.reads == 2


def test_node_of_another_instance_is_left_alone() -> None:
    """A wrong NODE_NAME would have another node drained."""
    scene = Scene()
    scene.metadata.said = ENDING
    scene.node.now = replace(scene.node.now, provider_id="aws:///z/i-2")
    scene.turns(3)
    assert scene.node.writes == 0
    assert scene.events() == ["api_server_state"]
