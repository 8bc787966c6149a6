"""Log lines of the node watch: JSON on stderr, in the form of the other parts of the program.

It does not use structlog, which would double the memory of the whole program.
"""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Final, TextIO

STARTED: Final = "node_watch_started"
STOPPED: Final = "node_watch_stopped"
METADATA_STATE: Final = "instance_metadata_state"
API_STATE: Final = "api_server_state"
NODE_CHANGED: Final = "node_notice_written"
OK: Final = "ok"


class StateLog:
    """Writes one line per change of a state, however often it is reported.

    Args:
        stream: Where the lines go.
        now: The clock for the times of lines.
        node: Name of the node, in every line.
    """

    def __init__(self, stream: TextIO, now: Callable[[], datetime], node: str) -> None:
        self._stream = stream
        self._now = now
        self._node = node
        self._states: dict[str, str] = {}

    def tell(self, event: str, level: str = "info", **values: object) -> None:
        """Write a line."""
        at = self._now().isoformat().replace("+00:00", "Z")
        line = {"event": event, **values, "node": self._node, "level": level, "at": at}
        self._stream.write(json.dumps(line, default=str) + "\n")
        self._stream.flush()

    def state(self, event: str, state: str) -> None:
        """Write a line when the state differs from the last one; a first `ok` is not written."""
        if self._states.get(event, OK) == state:
            return
        self._states[event] = state
        self.tell(event, "info" if state == OK else "warning", state=state)
