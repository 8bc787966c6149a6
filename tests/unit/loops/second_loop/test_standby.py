"""The second loop on replicas that stand by."""

import threading
from datetime import UTC, datetime
from typing import Any, cast

from reconciler.adapters.memory import ManualClock
from reconciler.gitops.repository.status import GitopsReport
from reconciler.loops.second_loop.gitops_loop import GitopsLoop, GitopsSettings
from reconciler.model.errors import ReconcilerError, Unavailable


class Unreachable:
    """A repository that nobody reaches, and that keeps who tried."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        raise Unavailable("remote", "no answer")


def test_standby_leaves_the_repository_alone_until_it_leads() -> None:
    """Two replicas that both push make each other's pull requests and statuses twice."""
    repository = Unreachable()
    clock = ManualClock(datetime(2026, 1, 31, tzinfo=UTC))
    loop = GitopsLoop(cast("Any", repository), clock, GitopsSettings(version="1"))
    leads, turned = threading.Event(), threading.Event()
    looked = threading.Semaphore(0)

    def may_act() -> bool:
        looked.release()
        return leads.is_set()

    def report(outcome: GitopsReport | ReconcilerError) -> None:
        del outcome
        turned.set()

    thread = threading.Thread(target=loop.watch, args=(report, may_act), daemon=True)
    thread.start()
    for _ in range(3):
        assert looked.acquire(timeout=60)
        loop.wake()
    assert repository.asked == []
    leads.set()
    loop.wake()
    assert turned.wait(60)
    assert repository.asked
    loop.stop()
    thread.join(60)
    assert not thread.is_alive()
