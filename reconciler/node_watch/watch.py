"""The loop of the node watch: read instance metadata, update the node, wait."""

from collections.abc import Callable
from datetime import datetime
from typing import Final, Protocol

from reconciler.model.errors import Conflict, PortError, Refused, Throttled
from reconciler.node_watch import log
from reconciler.node_watch.announcements import Announcements
from reconciler.node_watch.decision import NodeChange, OwnNode, decide
from reconciler.node_watch.log import StateLog

POLL_SECONDS: Final = 2.0
PAUSE_MAX_SECONDS: Final = 30.0
"""The longest wait after failures."""
RECHECK_SECONDS: Final = 30.0
"""How often the node is read while something is announced: others may have changed it."""
ATTEMPTS: Final = 4
"""How many patches may fail because the node was changed meanwhile."""


class Metadata(Protocol):
    """Instance metadata."""

    def read(self) -> Announcements:
        """Return what is announced now."""
        ...

    def instance_id(self) -> str:
        """Return the id of the instance."""
        ...


class Node(Protocol):
    """The own node at the API server."""

    def read(self) -> OwnNode:
        """Return the node as it is."""
        ...

    def write(self, node: OwnNode, change: NodeChange) -> None:
        """Patch the node as it was read."""
        ...


class Clock(Protocol):
    """Time."""

    def now(self) -> datetime:
        """Return the wall clock's time, aware UTC."""
        ...

    def monotonic_seconds(self) -> float:
        """Return the time of a clock that never jumps."""
        ...


class NodeWatch:
    """Keeps the node's annotation and taint equal to what instance metadata announces.

    No answer of metadata or the API server ends it. After failures it waits longer each time, and
    it logs only changes of state.
    """

    def __init__(self, metadata: Metadata, node: Node, clock: Clock, lines: StateLog) -> None:
        self._metadata = metadata
        self._node = node
        self._clock = clock
        self._log = lines
        self._settled: Announcements | None = None
        """The announcements that the node was last updated to."""
        self._recheck_at_seconds = 0.0
        self._api_not_before_seconds = 0.0
        self._metadata_failures = 0
        self._api_failures = 0
        self._instance_id = ""

    def run(self, wait_seconds: Callable[[float], bool], alive: Callable[[], None]) -> None:
        """Take turns until the program is to stop.

        Args:
            wait_seconds: Waits; True ends the loop.
            alive: Called at the start of each turn.
        """
        stopping = False
        while not stopping:
            alive()
            stopping = wait_seconds(self.turn())

    def turn(self) -> float:
        """Read metadata, change the node if that is needed; return the seconds until the next."""
        try:
            if not self._instance_id:
                self._instance_id = self._metadata.instance_id()
            announced = self._metadata.read()
        except PortError as error:
            self._metadata_failures += 1
            self._log.state(log.METADATA_STATE, str(error))
            return _pause_seconds(self._metadata_failures)
        self._metadata_failures = 0
        self._log.state(log.METADATA_STATE, "; ".join(announced.problems) or log.OK)
        if self._is_due(announced):
            self._try_to_settle(announced)
        return POLL_SECONDS

    def _is_due(self, announced: Announcements) -> bool:
        at_seconds = self._clock.monotonic_seconds()
        if at_seconds < self._api_not_before_seconds:
            return False
        return announced != self._settled or (
            not announced.empty and at_seconds >= self._recheck_at_seconds
        )

    def _try_to_settle(self, announced: Announcements) -> None:
        at_seconds = self._clock.monotonic_seconds()
        try:
            self._settle(announced)
        except PortError as error:
            self._api_failures += 1
            self._log.state(log.API_STATE, str(error))
            asked_seconds = error.retry_after_seconds if isinstance(error, Throttled) else None
            pause_seconds = max(_pause_seconds(self._api_failures), asked_seconds or 0.0)
            self._api_not_before_seconds = at_seconds + pause_seconds
            return
        self._api_failures = 0
        self._log.state(log.API_STATE, log.OK)
        self._settled = announced
        self._recheck_at_seconds = at_seconds + RECHECK_SECONDS

    def _settle(self, announced: Announcements) -> None:
        """Update the node until it is as announced, each time from its current state.

        Raises:
            Conflict: Others changed it each time.
            Refused: The node belongs to another instance.
            PortError: The API server refused, or did not answer.
        """
        for _ in range(ATTEMPTS):
            node = self._node.read()
            self._check_own(node)
            change = decide(announced, node, self._clock.now())
            if change is None:
                return
            try:
                self._node.write(node, change)
            except Conflict:
                continue
            tainted = None if change.taints is None else len(change.taints) > len(node.taints)
            self._log.tell(log.NODE_CHANGED, annotations=change.annotations, tainted=tainted)
        raise Conflict("node", f"was changed by others during each of {ATTEMPTS} attempts")

    def _check_own(self, node: OwnNode) -> None:
        if node.provider_id and not node.provider_id.endswith(f"/{self._instance_id}"):
            what = f"is {node.provider_id}, and this is {self._instance_id}"
            raise Refused("node", what)


def _pause_seconds(failures: int) -> float:
    """Return the wait after this many failures in a row: doubled each time, up to a limit."""
    return min(POLL_SECONDS * 2.0 ** (min(failures, 10) - 1), PAUSE_MAX_SECONDS)
