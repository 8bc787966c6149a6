"""The figures of the last day."""

from datetime import timedelta

from reconciler.model.plan import Plan, ResumedUpdate
from reconciler.web.history import History
from tests.builders import HOME, NOW
from tests.unit.web.scene import COST, Scene


def test_plots_go_on_after_the_clock_was_set_back() -> None:
    """They would be empty for as long as the clock had been ahead."""
    now = NOW + timedelta(hours=12)
    history = History(lambda: now)
    plan = Plan(at=NOW, cluster="analytics", home_region=HOME, cost=COST)
    for _ in range(30):
        history.sampled(plan, {})
        now += timedelta(minutes=1)
    before = len(history.samples)
    now -= timedelta(hours=12)
    for _ in range(10):
        history.sampled(plan, {})
        now += timedelta(minutes=1)
    assert len(history.samples) == before + 10


def test_history_has_what_came_of_a_resume() -> None:
    """Who annotates the Lease looks at the page for what came of it."""
    with Scene() as scene:
        answer = ResumedUpdate(fleet="primary-smal", done=False, because="no such fleet")
        scene.cycle(resumes=(answer,))
        (found,) = [decision for decision in scene.board.history.decisions if decision.is_trouble]
        assert (found.what, found.subject) == ("update not resumed", "primary-smal")
        assert found.because == "no such fleet"
