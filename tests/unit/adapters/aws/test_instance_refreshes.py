"""When it is asked whether a group has an instance refresh, and until when that is remembered."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.adapters.aws.groups_account import HOME, Watched


@pytest.fixture
def watched() -> Iterator[Watched]:
    """An account that was read once."""
    made = Watched()
    made.cloud.observe([HOME])
    yield made
    made.cloud.close()


def test_refresh_is_known_between_its_replacements(watched: Watched) -> None:
    """While the new instance warmed up, pods of a node that could not be ended were evicted."""
    watched.account.refreshing = {"group-007"}
    watched.account.launching = "i-00703"
    assert watched.halted(130) == ["group-007"]
    watched.account.launching = ""
    assert watched.halted(130) == ["group-007"], "all are in service"
    watched.account.refreshing.clear()
    assert watched.halted(130) == []
    watched.account.calls.clear()
    assert watched.halted(130) == []
    assert not watched.account.calls["describe_instance_refreshes"]


@pytest.mark.parametrize("fault", ["throttled", "down"])
def test_refresh_is_not_forgotten_when_one_question_has_no_answer(
    watched: Watched, fault: str
) -> None:
    """Nothing of the group showed it any more: one throttled call, and a drain began."""
    watched.account.refreshing = {"group-007"}
    watched.account.launching = "i-00703"
    assert watched.halted(130) == ["group-007"]
    watched.account.launching = ""
    unanswered: set[str] = getattr(watched.account, fault)
    unanswered.add("describe_instance_refreshes")
    assert [watched.halted(130), watched.halted(130)] == [["group-007"]] * 2
    unanswered.clear()
    assert watched.halted(130) == ["group-007"]
    watched.account.refreshing.clear()
    assert watched.halted(130) == []
    watched.account.calls.clear()
    assert watched.halted(130) == []
    assert not watched.account.calls["describe_instance_refreshes"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            {"LaunchTemplate": {"LaunchTemplateId": "lt-old", "Version": "1"}},
            {"LaunchTemplate": {"LaunchTemplateId": "lt-new", "Version": "1"}},
            id="another template",
        ),
        pytest.param(
            {"LaunchConfigurationName": "old"},
            {"LaunchConfigurationName": "new"},
            id="another configuration",
        ),
    ],
)
def test_refresh_is_asked_for_while_instances_differ(
    watched: Watched, old: dict[str, Any], new: dict[str, Any]
) -> None:
    """A process that starts between two replacements knows of none of them."""
    watched.account.refreshing = {"group-007"}
    members = watched.account.members["group-007"]
    watched.account.launched_from = {**dict.fromkeys(members, old), members[0]: new}
    assert watched.halted(130) == ["group-007"]


def test_refreshes_of_many_groups_are_read_in_turn(watched: Watched) -> None:
    """A call for each of 30 launching groups made every cycle three seconds longer."""
    for number in range(30):
        watched.account.members[f"group-{number:03}"].append("i-new")
        watched.account.launching = "i-new"
    watched.seconds = 130.0
    watched.cloud.observe([HOME])
    assert watched.account.calls["describe_instance_refreshes"] == 30
    watched.account.calls.clear()
    watched.cloud.observe([HOME])
    assert watched.account.calls["describe_instance_refreshes"] == 10
