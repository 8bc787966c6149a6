"""The verdict: a program that changes nothing must not look healthy."""

import html
import json
import re
from dataclasses import replace
from typing import get_args

import pytest

from reconciler.cli.views.status import console, view_of
from reconciler.config.loader import load_config
from reconciler.model.actions import SetCapacity
from reconciler.model.errors import (
    ConfigError,
    Forbidden,
    ObservationError,
    Problem,
    ReconcilerError,
    Unavailable,
)
from reconciler.model.plan import HeldCode
from reconciler.model.snapshot import Ignored
from reconciler.web.causes.plan_causes import HELD_REMEDIES
from reconciler.web.view import ConfigInForce
from tests.builders import AWAY
from tests.unit.web.scene import Scene, fleet, raised, unplaced

DENIED = replace(
    raised("failed"),
    detail="ec2 ModifyFleet: not allowed: UnauthorizedOperation",
    error="Forbidden",
)
CAUSE = (
    "EC2 denies ModifyFleet: set-capacity primary-small (us-west-2) failed: ec2 ModifyFleet: "
    "not allowed: UnauthorizedOperation"
)


def lead_of(scene: Scene) -> tuple[str, str]:
    """The page's first line, and the cause below it."""
    body = html.unescape(scene.ask("/")[2])
    lead = re.search(r'<p class="lead"><b>(.*?)</b>(.*?)</p>', body)
    cause = re.search(r'<p class="cause">(.*?)</p>', body)
    assert lead is not None
    return f"{lead[1]} {lead[2]}", "" if cause is None else cause[1]


def verdict(scene: Scene) -> tuple[str, list[str]]:
    """Level and problems."""
    found = json.loads(scene.ask("/api/status")[2])["verdict"]
    return found["level"], found["problems"]


def test_denied_action_is_reported_first_in_json_page_and_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Target 8 where EC2 has 2: alive, ready and without an error, and nothing is bought."""
    with Scene() as scene:
        scene.cycle(DENIED, fleets=(fleet(),))
        assert verdict(scene) == ("degraded", [CAUSE])
        status = json.loads(scene.ask("/api/status")[2])
        assert status["last_failed_action"]["detail"] == DENIED.detail
        headline, detail = CAUSE.split(": ", 1)
        assert lead_of(scene) == (f"! Degraded {headline}", detail)
        console().print(view_of(status))
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == f"DEGRADED: {CAUSE}"
        assert any(line.startswith("last failed action: ") for line in lines)


def test_call_that_auto_scaling_denies_is_named_as_it_is() -> None:
    """Nobody finds ModifyFleet in a policy for groups."""
    action = DENIED.action
    assert isinstance(action, SetCapacity)
    with Scene() as scene:
        scene.cycle(replace(DENIED, action=replace(action, provider="asg")))
        (problem,) = verdict(scene)[1]
    assert problem.startswith("Auto Scaling denies SetDesiredCapacity: set-capacity primary-small")


def test_failure_is_over_when_the_same_action_succeeds() -> None:
    """Its cause stays to be read; the verdict does not."""
    with Scene() as scene:
        scene.cycle(DENIED)
        scene.cycle(raised())
        assert verdict(scene) == ("ok", [])
        status = json.loads(scene.ask("/api/status")[2])
        assert status["last_failed_action"]["detail"] == DENIED.detail


def test_failure_in_one_region_is_not_over_when_another_region_delivers() -> None:
    """All nodes were bought in the second region, and nobody saw that the first one denies it."""
    with Scene() as scene:
        scene.cycle(DENIED, raised(region=AWAY))
        assert verdict(scene) == ("degraded", [CAUSE])
        subjects = [decision.subject for decision in scene.board.history.decisions[:2]]
        assert subjects == ["primary-small (us-east-1)", "primary-small (us-west-2)"]


def test_failure_outlives_cycles_that_do_not_try_again() -> None:
    """During a cool-off nothing is asked of EC2, and the cause is still there."""
    with Scene() as scene:
        scene.cycle(DENIED)
        scene.clock.advance(300)
        scene.cycle()
        assert verdict(scene)[0] == "degraded"
        scene.clock.advance(700)
        scene.cycle()
        assert verdict(scene) == ("ok", [])


def test_refusals_by_budgets_are_no_failure() -> None:
    """Every drain meets some."""
    with Scene() as scene:
        scene.cycle(raised("refused"))
        assert verdict(scene) == ("ok", [])


def test_cycles_that_fail_are_failing_with_their_cause() -> None:
    """EC2 that was never reached must not read as a healthy start."""
    with Scene() as scene:
        assert verdict(scene) == ("starting", [])
        scene.cycle(error=Unavailable("ec2", "no answer"))
        scene.cycle(error=Unavailable("ec2", "no answer"))
        assert verdict(scene) == (
            "failing",
            ["EC2 does not answer: the last 2 cycles failed: ec2: no answer"],
        )
        scene.cycle()
        assert verdict(scene) == ("ok", [])


def test_start_that_takes_too_long_is_failing() -> None:
    """A loop that hangs before its first cycle has no error to show."""
    with Scene() as scene:
        scene.clock.advance(150)
        level, (problem,) = verdict(scene)
        assert (level, problem.split(":")[0]) == (
            "failing",
            "No cycle has succeeded since the start",
        )
        scene.clock.advance(600)
        assert "The loop is stuck" in verdict(scene)[1][0]


def test_refused_config_is_part_of_the_verdict() -> None:
    """The loop works with a config that nobody wants any more."""
    problem = Problem(
        line=3, column=5, path="regions", code="config/type", message="5 is not a list"
    )
    with Scene() as scene:
        scene.cycle()
        scene.board.config_refused(ConfigError("sectors.yaml", (problem,)))
        shown = "Config refused: 3:5: config/type: 5 is not a list"
        assert verdict(scene) == ("degraded", [shown])


@pytest.mark.parametrize(
    ("commit", "in_force"),
    [
        ("abc", "clusters/a/sectors.yaml@abc stays in force"),
        ("", "the file clusters/a/sectors.yaml is in force although a branch is followed"),
    ],
)
def test_branch_with_two_configs_of_the_cluster_is_reported_with_what_ends_that(
    commit: str, in_force: str
) -> None:
    """`reconciler validate` finds no fault in either, and the file of the install was in force."""
    file = "clusters/a/sectors.yaml" + (f"@{commit}" if commit else "")
    error = ReconcilerError("the repository's config", "several: a, b", "remove b")
    with Scene() as scene:
        scene.cycle()
        scene.board.second_loop_ended("at abc: invalid")
        scene.board.config_loaded(ConfigInForce(file=file, commit=commit))
        scene.board.config_refused(error)
        (cause,) = json.loads(scene.ask("/api/status")[2])["verdict"]["causes"]
    assert cause["kind"] == "config-refused"
    assert cause["detail"] == "the repository's config: several: a, b"
    assert cause["remedy"] == f"{in_force}; remove b"


@pytest.mark.parametrize(
    ("why", "remedy"),
    [
        ("UnauthorizedOperation: no", "compare the role's policy"),
        ("RequestExpired: Request has expired.", "check this machine's clock"),
        ("SignatureDoesNotMatch: Signature expired", "check this machine's clock"),
        ("ExpiredTokenException: The token has expired", "check this machine's clock"),
        ("AuthFailure: AWS was not able to validate the credentials", "check this machine's clock"),
        ("NoCredentialsError: Unable to locate credentials", "check this machine's clock"),
    ],
)
def test_calls_denied_for_the_time_of_day_are_no_fault_of_the_policy(why: str, remedy: str) -> None:
    """Somebody would search the role's policy for a right that is there."""
    with Scene() as scene:
        scene.cycle(error=Forbidden("describe_fleets", why))
        (cause,) = json.loads(scene.ask("/api/status")[2])["verdict"]["causes"]
    assert cause["kind"] == "ec2-denied"
    assert cause["remedy"].startswith(remedy)


def test_nodes_that_ec2_owes_and_does_not_give_are_not_launching() -> None:
    """A group stays at a target that nobody needs any more; its nodes were "launching" for ever."""
    short = fleet(current=5, launching=3, unavailable="EC2 reports the activity status as error")
    with Scene() as scene:
        scene.cycle(fleets=(short, fleet(region=AWAY, launching=1)))
        status = json.loads(scene.ask("/api/status")[2])
    assert (status["verdict"]["level"], status["verdict"]["text"]) == ("ok", "1 node launching")


def test_pods_of_several_namespaces_on_which_planning_fails_are_one_cause() -> None:
    """A secret in the text of the bug would be on the page."""
    why = "is of a namespace on whose pods planning fails: KeyError: token=abcdefgh"
    pods = [unplaced(name, "planning-failed", detail=why) for name in ("a", "b")]
    other = replace(pods[1], pod=replace(pods[1].pod, namespace="other"))
    with Scene() as scene:
        scene.cycle(unplaceable=(pods[0], other), no_removals_because="fails: token=abcdefgh")
        found = json.loads(scene.ask("/api/status")[2])["verdict"]["causes"]
    assert [(each["kind"], each["headline"]) for each in found] == [
        ("planning-failed", "No node is drained or ended"),
        ("planning-failed", "Planning fails on 2 pods"),
    ]
    assert found[1]["detail"].endswith("; also in 1 more namespace")
    assert "abcdefgh" not in str(found)


def test_every_measure_that_holds_nodes_has_a_remedy() -> None:
    """The status of a node that is held by a new one could not be shown."""
    assert set(HELD_REMEDIES) == set(get_args(HeldCode))


def test_pods_without_a_sector_are_reported_wherever_one_looks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Pods that wait for ever behind "No pod waits" are found by their owners, days later."""
    ignored = (
        *(Ignored(code="no-sector", namespace="web", pod=f"p{n}") for n in range(47)),
        Ignored(code="finished", namespace="web", pod="done"),
    )
    with Scene() as scene:
        scene.cycle(fleets=(fleet(),), ignored=ignored)
        text = "47 pods name no sector and are left alone"
        status = json.loads(scene.ask("/api/status")[2])
        assert (status["verdict"]["level"], status["plan"]["pods_without_sector"]) == ("ok", 47)
        assert text in status["verdict"]["text"]
        page = html.unescape(scene.ask("/")[2])
        assert f"{text}: the config has no <code>default_sector</code>" in page
        assert "No pod waits." not in page
        assert scene.metric("fleet_reconciler_pods_without_sector") == 47
        assert scene.metric("fleet_reconciler_pods_pending") == 0
        console().print(view_of(status))
        assert f"0 that no fleet can run; {text}; " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("why", "headline"),
    [
        ("no list of any kind yet (401 Unauthorized)", "API server denies lists"),
        ("no list of Pod yet (GET /api/v1/pods: 403 no)", "API server denies lists"),
        ("no answer about Pod for 403 s", "API server unreachable"),
    ],
)
def test_denied_lists_are_distinguished_from_a_silent_server(why: str, headline: str) -> None:
    """The one asks for rights or a login, the other for a network."""
    with Scene() as scene:
        scene.cycle(error=ObservationError("https://api", why))
        assert verdict(scene)[1][0].startswith(f"{headline}: ")


def test_config_that_is_gone_is_reported_without_a_line() -> None:
    """Its place would be "0:0", of a file that nobody named."""
    with pytest.raises(ConfigError) as caught:
        load_config("gone.yaml")
    with Scene() as scene:
        scene.board.config_refused(caught.value)
        status = json.loads(scene.ask("/api/status")[2])
    assert status["config"]["faults"] == ["gone.yaml: no such file"]
