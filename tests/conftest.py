"""How a run is shared out over processes, and what it says at its end.

A file stays in one process, so that what its fixtures start is started once. A few long files whose
fixtures cost little are shared out test by test. The longest go first: otherwise the run would end
with one process working and the others idle.

Many tests wait most of the time, so there are more processes than cores. One in three begins with
the end-to-end tier, with a control plane of its own, and the others leave it to that one: it waits
the most, and what the others do meanwhile needs the cores.
"""

import gc
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests import (
    botocore_models,  # noqa: F401 - for what it does to botocore
    fork_server,
)
from tests.full_proofs import rounds
from tests.terraform import kept_provider, light_mirror

_HERE = Path(__file__).parent
_CONTROL_PLANE = "tests/e2e/"
_BY_TEST = (
    "tests/life/test_crash_matrix.py",
    "tests/life/test_laws.py",
    "tests/life/test_month.py",
    "tests/sandbox/gitops/test_ci_killed.py",
    "tests/sandbox/gitops/test_ci_on_aws.py",
    "tests/terraform/test_modules.py",
)
_FIRST = ("e2e", "sandbox/gitops", "terraform", "sandbox", "life", "properties", "project")
"""The folders whose files take longest, in this order."""
_OVER_PROCESSES = frozenset({"e2e", "sandbox", "terraform", "browser"})
"""The folders whose tests start other programs and wait for them. A test of theirs that fails runs
a second time, and the run ends with the traceback of the first: it is a bug to be fixed, but no
reason to lose a run of half an hour. The long proofs have to hold at once, and all other tests
depend on nothing but their input.
"""
_LINES = "closing_lines"

CLOSING_LINES = pytest.StashKey[list[str]]()
"""What a test wants said after the last test of the run, whichever process ran it."""

# Terraform spends most of its time on reading the AWS provider's schema, and a third of that on
# collecting garbage of processes that end in a few seconds.
os.environ.setdefault("GOGC", "400")  # noqa: TID251 - for what the tests start

# What collecting tests makes stays until the end of the run: no search in it finds any garbage.
gc.disable()

fork_server.prepare()
light_mirror.prepare()

# A run that a shell started in the background ignores Ctrl-C, and so would all that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class _ByFile(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Gives a process whole files, and tests of some files one by one."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return nodeid if file in _BY_TEST else file

    def _assign_work_unit(self, node: Any) -> None:
        """One in three processes takes files of the end-to-end tier while there are any."""
        takes_e2e = self.nodes.index(node) % 3 == 0
        fitting = (s for s in self.workqueue if s.startswith(_CONTROL_PLANE) == takes_e2e)
        first = next(fitting, None)
        if first is not None:
            self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)


@pytest.fixture(scope="session")
def closing_lines(request: pytest.FixtureRequest) -> list[str]:
    """Append a line to it to have it said at the end of the run."""
    return request.config.stash.setdefault(CLOSING_LINES, [])


@pytest.fixture(scope="session", autouse=True)
def _servers_are_forked() -> Iterator[None]:
    """A run starts hundreds of sandboxes; what only a real start shows has tests of its own."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("aws.process", "stack"):
            patch.setattr(f"reconciler.sandbox.{module}.start_child", fork_server.ForkedChild)
        yield


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long tiers first, a folder at a time: what its fixtures started ends with it."""
    ranks = {name: rank for rank, name in enumerate(_FIRST)}

    def place(item: pytest.Item) -> tuple[int, Path]:
        folder = item.path.parent.relative_to(_HERE)
        around = (folder, *folder.parents)  # the closest first
        rank = next((ranks[str(each)] for each in around if str(each) in ranks), len(ranks))
        return rank, folder

    items.sort(key=place)
    for item in items:
        if item.path.relative_to(_HERE).parts[0] in _OVER_PROCESSES:
            item.add_marker(pytest.mark.flaky(reruns=rounds(1, 0)))


def pytest_collection_finish() -> None:
    """Search for garbage from here on, among what tests make."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of several hands its lines to the one that prints."""
    kept_provider.stop()
    light_mirror.remove()
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_LINES] = session.config.stash.setdefault(CLOSING_LINES, [])


class _Processes:
    """Hooks of pytest-xdist: they may not be there when it is left out (`-p no:xdist`)."""

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> _ByFile:
        """Share the tests out as this module says."""
        return _ByFile(config, log)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what that process had to say."""
        output: Mapping[str, list[str]] = getattr(node, "workeroutput", {})
        node.config.stash.setdefault(CLOSING_LINES, []).extend(output.get(_LINES, []))


def pytest_configure(config: pytest.Config) -> None:
    """Share out, and hear of processes that end."""
    config.pluginmanager.register(_Processes())


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say the lines."""
    lines = config.stash.setdefault(CLOSING_LINES, [])
    for line in sorted(lines):
        terminalreporter.write_line(line)
