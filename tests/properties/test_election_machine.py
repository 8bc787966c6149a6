"""The election under partitions, pauses, slow requests, lost answers and clocks that disagree."""

from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.unit.loops.lease.candidates import Candidate, Field

CANDIDATES = st.integers(min_value=0, max_value=3)
SECONDS = st.floats(min_value=0.0, max_value=40.0)
RATES = st.floats(min_value=0.85, max_value=1.2)
"""Clocks that differ by less than lease duration / renew deadline = 1.5."""


def _once(call: Callable[[], None], candidate: Candidate, hook: str) -> Callable[[], None]:
    """A hook that runs one time and then is none."""

    def run() -> None:
        setattr(candidate.way, hook, lambda: None)
        call()

    return run


class ElectionMachine(RuleBasedStateMachine):
    """Four replicas; `Field.check` asserts after each event that at most one may act."""

    @initialize(rates=st.tuples(RATES, RATES, RATES, RATES), skews=st.tuples(*[SECONDS] * 4))
    def start(self, rates: tuple[float, ...], skews: tuple[float, ...]) -> None:
        """All replicas start at once."""
        self.field = Field()
        for rate, skew in zip(rates, skews, strict=True):
            self.field.add(rate=rate, wall_skew_seconds=skew - 20)

    @rule(seconds=SECONDS)
    def time_passes(self, seconds: float) -> None:
        """Everybody steps when it is due."""
        self.field.pass_time(seconds)

    @rule(index=CANDIDATES, reachable=st.booleans())
    def partition(self, index: int, reachable: bool) -> None:
        """Cut or restore one replica's way to the API server."""
        self.field.candidates[index].way.reachable = reachable

    @rule(index=CANDIDATES, answers=st.booleans())
    def lose_answers(self, index: int, answers: bool) -> None:
        """Requests arrive and their answers do not."""
        self.field.candidates[index].way.answers = answers

    @rule(index=CANDIDATES, running=st.booleans())
    def pause(self, index: int, running: bool) -> None:
        """SIGSTOP or SIGCONT."""
        self.field.candidates[index].running = running

    @rule(index=CANDIDATES, seconds=SECONDS, when=st.sampled_from(["before", "after"]))
    def slow_request(self, index: int, seconds: float, when: str) -> None:
        """The next request of a replica takes long, on its way there or on its way back."""
        candidate = self.field.candidates[index]
        setattr(candidate.way, when, _once(lambda: self.field.pass_time(seconds), candidate, when))

    @rule(index=CANDIDATES)
    def release(self, index: int) -> None:
        """A replica ends in order and starts again."""
        candidate = self.field.candidates[index]
        if not candidate.stepping:
            candidate.release()

    @rule()
    def annotate(self) -> None:
        """The loop writes its memory on the Lease."""
        self.field.lease.annotate("fleet-reconciler.io/last-drain", str(self.field.time.seconds))

    @rule()
    def all_is_well_again(self) -> None:
        """When trouble ends, somebody leads within two lease durations, and stays."""
        for candidate in self.field.candidates:
            candidate.way.reachable = candidate.way.answers = candidate.running = True
            candidate.way.before = candidate.way.after = lambda: None
        self.field.pass_time(60)
        leaders = self.field.leaders
        assert len(leaders) == 1
        self.field.pass_time(60)
        assert self.field.leaders == leaders

    @invariant()
    def at_most_one_may_act(self) -> None:
        """The promise."""
        if hasattr(self, "field"):
            self.field.check()


TestElection = ElectionMachine.TestCase
TestElection.settings = settings(max_examples=150, stateful_step_count=40)
