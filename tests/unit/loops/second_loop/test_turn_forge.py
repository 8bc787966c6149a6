"""A forge that does not answer costs a turn one wait, not one per cluster."""

from collections.abc import Mapping

import pytest
from typing_extensions import override

from reconciler.adapters.memory import ManualClock
from reconciler.gitops.rendering.targets import RenderTarget
from reconciler.gitops.repository.status import ClusterStatus
from reconciler.loops.second_loop.commit_statuses import CommitStatuses
from reconciler.loops.second_loop.turn_forge import TurnForge
from reconciler.model.errors import NotFound, OutcomeUnknown, PortError, Throttled, Unavailable
from reconciler.ports.forge import CommitStatus, PullRequest, StatusState
from reconciler.ports.repository import CommitId

STATUS = CommitStatus(context="x", state="success", description="")


class SlowForge:
    """A forge whose every call fails after a time."""

    def __init__(self, clock: ManualClock, failure: PortError, seconds: float) -> None:
        self.calls = 0
        self._clock = clock
        self._failure = failure
        self._seconds = seconds

    def _fail(self) -> None:
        self.calls += 1
        self._clock.advance(self._seconds)
        raise self._failure

    def set_status(self, commit: CommitId, status: CommitStatus) -> None:
        """Fail."""
        del commit, status
        self._fail()

    def statuses(self, commit: CommitId) -> Mapping[str, StatusState]:
        """Fail."""
        del commit
        self._fail()
        raise AssertionError

    def pull_request(self, branch: str, base: str) -> PullRequest | None:
        """Fail."""
        del branch, base
        self._fail()
        raise AssertionError

    def open_pull_request(self, branch: str, base: str, title: str, body: str) -> PullRequest:
        """Fail."""
        del branch, base, title, body
        self._fail()
        raise AssertionError

    def comment(self, number: int, marker: str, body: str) -> None:
        """Fail."""
        del number, marker, body
        self._fail()


def turn(forge: TurnForge) -> list[type[PortError]]:
    """Which errors the calls of a turn with three clusters end with."""
    found = []
    for call in (
        lambda: forge.open_pull_request("a", "main", "t", "b"),
        lambda: forge.set_status(CommitId("a"), STATUS),
        lambda: forge.statuses(CommitId("a")),
    ):
        try:
            call()
        except PortError as error:
            found.append(type(error))
    return found


class HangsWithOne(SlowForge):
    """A forge that takes the statuses of all but some commits."""

    def __init__(self, clock: ManualClock, commits: frozenset[str]) -> None:
        super().__init__(clock, Unavailable("forge", "no answer"), 30.0)
        self._hangs_with = commits
        self.taken: list[str] = []

    @override
    def set_status(self, commit: CommitId, status: CommitStatus) -> None:
        """Fail for these commits."""
        if commit in self._hangs_with:
            self._fail()
        self.taken.append(commit)


def test_status_with_which_the_forge_hangs_keeps_the_others_out_of_no_later_turn() -> None:
    """In one order for ever, no status after it would ever be published."""
    clock = ManualClock()
    hanging = HangsWithOne(clock, frozenset("ab"))
    forge = TurnForge(hanging, clock)
    statuses = CommitStatuses(forge)
    targets = [RenderTarget(config_path=f"{name}.yaml", output_dir=name) for name in "abcd"]
    ends = [
        (CommitId(target.output_dir), ClusterStatus(target=target, state="unchanged"))
        for target in targets
    ]
    for _ in range(3):
        forge.begin()
        assert statuses.show(CommitId("tip"), ends)
    assert hanging.taken == ["c", "d"]


@pytest.mark.parametrize(
    ("failure", "seconds", "calls"),
    [
        (Unavailable("forge", "no answer"), 30.0, 1),
        (OutcomeUnknown("forge", "no reply"), 10.0, 1),
        (Unavailable("forge", "slow"), 3.0, 2),
        (Throttled("forge", "answered 429"), 0.0, 1),
        (Unavailable("forge", "answered 500"), 0.1, 3),
        (NotFound("forge", "no such commit"), 30.0, 3),
    ],
)
def test_forge_that_keeps_a_turn_waiting_is_not_asked_again_in_it(
    failure: PortError, seconds: float, calls: int
) -> None:
    """The capacity loop heard of the next commit an hour late, after a wait for each cluster."""
    clock = ManualClock()
    slow = SlowForge(clock, failure, seconds)
    forge = TurnForge(slow, clock)
    for number in (1, 2):
        forge.begin()
        kept = [type(failure)] * calls
        assert turn(forge) == kept + [Unavailable] * (3 - calls)
        assert slow.calls == number * calls
