"""The log events are the ones that docs/metrics.md lists."""

import re
from pathlib import Path

from reconciler.telemetry import events

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_page_lists_every_event_and_no_other() -> None:
    """Whoever finds an event in the log looks it up; whoever alerts on one takes it from there."""
    ours = [value for name, value in vars(events).items() if name.isupper()]
    log = PAGE.read_text(encoding="utf-8").partition("\n## Log\n")[2]
    first_cells = re.findall(r"^\| (`.+?) \|", log, re.MULTILINE)
    listed = re.findall(r"`([a-z_]+)`", " ".join(first_cells))
    assert sorted(listed) == sorted(ours)
