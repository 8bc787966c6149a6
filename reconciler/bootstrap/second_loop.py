"""The second loop beside the capacity loop: a thread of its own that ends with it."""

import threading
from collections.abc import Callable

import structlog

from reconciler.bootstrap.gitops import GitopsLog
from reconciler.gitops.status import ClusterProgress, GitopsReport
from reconciler.loops.gitops_loop import GitopsLoop
from reconciler.model.errors import ReconcilerError
from reconciler.telemetry import events

JOIN_SECONDS = 1.0


class SecondLoop:
    """Runs a GitopsLoop in a thread.

    Args:
        loop: The loop.
        told: Hears in one line what each turn came to, and how far each config has come.
        failed: Called when the loop ends by a failure of our own.
        may_act: Whether this replica is the one that acts.
    """

    def __init__(
        self,
        loop: GitopsLoop,
        told: Callable[[str, tuple[ClusterProgress, ...] | None], None],
        failed: Callable[[], None],
        may_act: Callable[[], bool] = lambda: True,
    ) -> None:
        self._loop = loop
        self._may_act = may_act
        self._told = told
        self._failed = failed
        self._report = GitopsLog()
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="gitops", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the turn under way; a git command that hangs is not waited for."""
        self._loop.stop()
        if self._thread.is_alive():
            self._thread.join(JOIN_SECONDS)

    def _run(self) -> None:
        try:
            self._loop.watch(self._heard, self._may_act)
        except Exception as error:  # noqa: BLE001 - a thread's last boundary; main raises it again
            structlog.get_logger().error(events.GITOPS_ENDED, reason=str(error))
            self.failure = error
            self._failed()

    def _heard(self, outcome: GitopsReport | ReconcilerError) -> None:
        self._report(outcome)
        if isinstance(outcome, ReconcilerError):
            self._told(f"failed: {outcome}", None)
            return
        states = [f"{each.target.config_path}: {each.state}" for each in outcome.clusters]
        text = f"at {outcome.tip.short}: {', '.join(states) or 'no configs'}"
        self._told(text, outcome.progress)
