"""What is shown of a second loop that fails, and of one that stands by."""

import json

import pytest

from reconciler.gitops.repository.status import ClusterProgress
from reconciler.web.view import LeadershipView
from tests.unit.web.scene import Scene

AGE = "fleet_reconciler_gitops_last_success_age_seconds"
TROUBLE = 'fleet_reconciler_trouble{kind="second-loop-fails"}'
STAGE = 'fleet_reconciler_gitops_stage{config="sectors.yaml",stage="planned"}'
DENIED = "failed: https://git.example.com/infra.git: 401 Unauthorized"
PLANNED = ClusterProgress(config="sectors.yaml", cluster="analytics", stage="planned")
LEADER = LeadershipView(enabled=True, leads=True, holder="pod-1")
STANDBY = LeadershipView(enabled=True, leads=False, holder="pod-2")


def causes(scene: Scene) -> list[tuple[str, str, str]]:
    """Kind, level and text of what is wrong, while the capacity loop works."""
    scene.cycle()
    found = json.loads(scene.ask("/api/status")[2])["verdict"]["causes"]
    return [(c["kind"], c["level"], f"{c['headline']}: {c['detail']}") for c in found]


def test_branch_that_cannot_be_read_for_days_is_a_cause_until_it_can() -> None:
    """A token expired, merged configs never came into force, and the verdict was OK."""
    with Scene() as scene:
        scene.board.second_loop_ended("at abc: unchanged", (PLANNED,))
        assert scene.metric(AGE) == 0
        for _ in range(3):
            scene.clock.advance(86_400)
            scene.board.second_loop_ended(DENIED, failed=True)
        assert causes(scene) == [
            (
                "second-loop-fails",
                "degraded",
                "Second loop fails: for 2d: https://git.example.com/infra.git: 401 Unauthorized",
            )
        ]
        assert (scene.metric(AGE), scene.metric(TROUBLE)) == (3 * 86_400, 1)
        scene.clock.advance(30)
        scene.board.second_loop_ended("at def: unchanged", (PLANNED,))
        assert causes(scene) == []
        assert (scene.metric(AGE), scene.metric(TROUBLE)) == (0, 0)


def test_turns_that_fail_for_a_moment_are_no_cause() -> None:
    """A forge that restarts would turn the verdict red."""
    with Scene() as scene:
        scene.board.second_loop_ended(DENIED, failed=True)
        scene.clock.advance(599)
        assert causes(scene) == []
        assert scene.metric(AGE) == 599, "none was good: since the start"
        scene.board.second_loop_ended("at abc: stands by")
        scene.clock.advance(1)
        scene.board.second_loop_ended(DENIED, failed=True)
        assert causes(scene) == []


def test_push_that_the_remote_refuses_for_long_is_a_cause_beside_its_progress() -> None:
    """A branch rule forbids the push: nothing is rendered any more."""
    with Scene() as scene:
        for _ in range(2):
            scene.board.second_loop_ended("at abc: sectors.yaml: refused", (PLANNED,), failed=True)
            scene.clock.advance(600)
        assert [kind for kind, _, _ in causes(scene)] == ["second-loop-fails"]
        assert scene.metric(STAGE) == 1


def test_program_without_a_second_loop_has_no_age_of_it() -> None:
    """The age would grow for ever, and somebody's alert would fire."""
    with Scene() as scene:
        scene.clock.advance(86_400)
        assert scene.metric(AGE) is None
        assert scene.metric(TROUBLE) == 0
        assert causes(scene) == []


def test_secrets_of_the_failure_are_not_shown() -> None:
    """The address of a repository may hold a token."""
    with Scene() as scene:
        for _ in range(2):
            scene.board.second_loop_ended("failed: https://u:s3cret@git/x: 401", failed=True)
            scene.clock.advance(600)
        assert "s3cret" not in str(causes(scene))
        assert causes(scene)


@pytest.mark.parametrize("late", [False, True])
def test_replica_that_lost_the_lead_shows_no_progress(late: bool) -> None:
    """Its old stage stood beside the leader's, and a dashboard showed both.

    A turn may end after the lead was lost, with what it found before.
    """
    with Scene() as scene:
        scene.leads = LEADER
        scene.board.second_loop_ended("at abc", (PLANNED,))
        assert scene.metric(STAGE) == 1
        scene.leads = STANDBY
        scene.board.lead_lost("pod-2 has taken the Lease")
        if late:
            scene.board.second_loop_ended("at abc", (PLANNED,))
        scene.board.second_loop_ended("at def: stands by")
        assert scene.metric(STAGE) is None
        assert json.loads(scene.ask("/api/status")[2])["progress"] == []
        scene.leads = LEADER
        scene.board.lead_gained()
        assert scene.metric(STAGE) is None, "what it knew is old"
