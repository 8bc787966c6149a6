"""How a run is shared out over processes, and what it says at its end.

A file stays in one process, so that what its fixtures start is started once; the end-to-end tier
stays in one process whole, because all of it shares one control plane. The longest go first:
otherwise the run would end with one process working and the others idle.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_WHOLE = ("e2e",)
_FIRST = ("e2e", "terraform", "sandbox", "life")
_LINES = "closing_lines"

CLOSING_LINES = pytest.StashKey[list[str]]()
"""What a test wants said after the last test of the run, whichever process ran it."""


@pytest.fixture(scope="session")
def closing_lines(request: pytest.FixtureRequest) -> list[str]:
    """Append a line to it to have it said at the end of the run."""
    return request.config.stash.setdefault(CLOSING_LINES, [])


def _tier(item: pytest.Item) -> str:
    return item.path.relative_to(_HERE).parts[0]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long tiers first; each file in one process, and some tiers whole."""
    ranks = {name: rank for rank, name in enumerate(_FIRST)}
    items.sort(key=lambda item: ranks.get(_tier(item), len(ranks)))
    for item in items:
        tier = _tier(item)
        group = tier if tier in _WHOLE else str(item.path.relative_to(_HERE))
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of several hands its lines to the one that prints."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_LINES] = session.config.stash.setdefault(CLOSING_LINES, [])


class _Gather:
    """Hooks that exist only where pytest-xdist is on."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Take over what that process had to say."""
        output: Mapping[str, list[str]] = getattr(node, "workeroutput", {})
        config: pytest.Config = getattr(node, "config")  # noqa: B009 - xdist has no types
        config.stash.setdefault(CLOSING_LINES, []).extend(output.get(_LINES, []))


def pytest_configure(config: pytest.Config) -> None:
    """Hear of processes that end."""
    config.pluginmanager.register(_Gather())


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say the lines."""
    lines = config.stash.setdefault(CLOSING_LINES, [])
    for line in sorted(lines):
        terminalreporter.write_line(line)
