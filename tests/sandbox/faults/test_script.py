"""Fault scripts: what they say, what is wrong with them, and the page that describes them."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.cli.main import run
from reconciler.model.errors import ConfigError
from reconciler.sandbox.faults.base import When
from reconciler.sandbox.faults.script import FaultScript, load_script, to_document
from reconciler.sandbox.faults.trigger import Trigger, make_trigger
from tests.sandbox.faults.reference import PAGE, page_with_reference

EXAMPLE = PAGE.parent / "examples" / "sandbox" / "faults.yaml"
START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def problems(tmp_path: Path, text: str) -> list[tuple[int, str, str]]:
    """Line, code and message of everything that is wrong with a script."""
    file = tmp_path / "faults.yaml"
    file.write_text(text)
    try:
        load_script(file)
    except ConfigError as error:
        return [(p.line, p.code, p.message) for p in error.problems]
    return []


def test_example_says_what_it_means() -> None:
    """The first thing people do is to copy an example."""
    script = load_script(EXAMPLE)
    assert script.seed == 7
    assert script.aws.capacity[0].until_seconds == 600
    assert script.aws.launches[1].delay is not None
    assert script.aws.launches[1].delay.distribution == "exponential"
    assert script.kubernetes.requests[1].verbs == ("list", "patch")
    assert script.kubernetes.requests[0].resources == ("nodes",)


def test_page_has_the_example_and_every_key() -> None:
    """A key that the page does not have is a key that nobody finds.

    Mend it with `python -m tests.sandbox.faults.reference`.
    """
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with_reference(page)
    (shown,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert shown == EXAMPLE.read_text(encoding="utf-8")


def test_script_travels_as_json_unchanged() -> None:
    """What a file says and what a server is told at run time must be the same faults."""
    script = load_script(EXAMPLE)
    assert FaultScript.model_validate(to_document(script)) == script


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("aws: {callz: []}", (1, "config/unknown-key", "unknown key 'callz'; did you mean calls?")),
        (
            "aws:\n  calls:\n  - {fault: stale, actions: DescribeFleets}",
            (3, "config/type", "`stale` needs `age`"),
        ),
        (
            "aws:\n  calls:\n  - {fault: lost-reply, age: 5}",
            (3, "config/type", "`age` means nothing to lost-reply"),
        ),
        (
            "aws: {calls: [{fault: error, code: X, status: 200}]}",
            (1, "config/range", "`status` must be from 400 to 599"),
        ),
        (
            "aws: {capacity: [{from: 2m, until: 1m}]}",
            (1, "config/range", "`until` must be later than `from`"),
        ),
        (
            "aws: {launches: [{delay: {min: 3, max: 1}}]}",
            (1, "config/range", "`max` must not be less than `min`"),
        ),
        (
            "aws: {capacity: [{probability: 1.5}]}",
            (1, "config/range", "must be 1.0 or less, not 1.5"),
        ),
        (
            "kubernetes: {requests: [{fault: empty-list, verbs: watch}]}",
            (1, "config/type", "`empty-list` shows only on list"),
        ),
        (
            "kubernetes: {requests: [{fault: delay, delay: 1, verbs: lst}]}",
            (1, "config/type", "there is no verb 'lst'"),
        ),
        (
            "kubernetes: {requests: [{fault: conflict, retry_after: 3}]}",
            (1, "config/type", "`retry_after` means nothing to conflict"),
        ),
        ("seed: 1\nseed: 2", (2, "config/syntax", "duplicate key 'seed', first on line 1")),
        ("[]", (1, "config/syntax", "the top level is not a mapping")),
    ],
)
def test_mistake_is_refused_at_its_place(
    tmp_path: Path, text: str, found: tuple[int, str, str]
) -> None:
    """A fault that is silently not there makes every test pass."""
    assert problems(tmp_path, text) == [found]


def test_sandbox_up_names_every_mistake_and_starts_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sandbox without its faults would prove the wrong thing for an hour."""
    file = tmp_path / "faults.yaml"
    file.write_text("aws:\n  callz: []\n  calls:\n  - {fault: error}\n")
    assert run(["sandbox", "up", "--faults", str(file), "--", "true"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1] for line in lines] == [f"{file}:2:3", f"{file}:4:5"]
    assert run(["sandbox", "up", "--faults", str(tmp_path / "none"), "--", "true"]) == 2
    assert "no such file" in capsys.readouterr().err


def fired(trigger: Trigger, seconds: range) -> list[int]:
    """At which seconds an occasion each shows the fault."""
    return [s for s in seconds if trigger.fires(START + timedelta(seconds=s))]


def trigger(seed: int = 0, **when: object) -> Trigger:
    """A trigger in force from the start."""
    return make_trigger(When.model_validate(when), START, seed, "aws.calls[0]")


def test_window_is_counted_from_when_the_fault_came_into_force() -> None:
    """A fault that comes by the wall clock could not be repeated."""
    assert fired(trigger(**{"from": 3, "until": 6}), range(10)) == [3, 4, 5]


def test_after_and_count_are_of_occasions_in_the_window() -> None:
    """The third call fails, and only that one."""
    assert fired(trigger(after=2, count=1), range(10)) == [2]
    assert fired(trigger(**{"from": 4}, after=1, count=2), range(10)) == [5, 6]


def test_draws_depend_on_the_seed_alone() -> None:
    """Another run with the seed meets the same faults, another seed others."""
    first = fired(trigger(seed=1, probability=0.3), range(100))
    assert fired(trigger(seed=1, probability=0.3), range(100)) == first
    assert fired(trigger(seed=2, probability=0.3), range(100)) != first
    assert 15 < len(first) < 45


def test_negative_time_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Instances that run before they are launched are of no use to anybody."""
    assert run(["sandbox", "up", "--launch-seconds", "-1", "--", "true"]) == 2
    assert "--launch-seconds" in capsys.readouterr().err
