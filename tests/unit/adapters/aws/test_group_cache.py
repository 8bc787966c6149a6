"""How often AWS is asked about groups in which nothing, or something, happens."""

from collections.abc import Iterator
from typing import cast

import pytest

from reconciler.adapters.aws.clients import Clients
from reconciler.adapters.aws.group_details import GroupDetails
from reconciler.model.errors import Conflict, Unavailable
from reconciler.model.ids import FleetId, InstanceId
from tests.unit.adapters.aws.groups_account import EACH, GROUPS, HOME, NOW, Account, Watched


@pytest.fixture
def watched() -> Iterator[Watched]:
    """An account that was read once."""
    made = Watched()
    made.cloud.observe([HOME])
    yield made
    made.cloud.close()


@pytest.mark.nightly
def test_groups_at_rest_cost_at_most_twelve_calls_a_minute(watched: Watched) -> None:
    """Auto Scaling throttles an account, and everything in it that asks."""
    assert watched.account.calls.total() == 13
    watched.account.calls.clear()
    watched.cycles(600)
    watched.cloud.close()
    assert 20 <= watched.account.calls.total() <= 120


def test_new_template_version_is_seen_after_a_call_a_minute(watched: Watched) -> None:
    """A group's rolling update began five minutes after its apply."""
    watched.account.version = 2
    watched.seconds = 179.0  # 500 templates are three calls, and so asked every three minutes
    assert watched.versions() == {"1"}
    watched.seconds = 181.0
    assert watched.versions() == {"2"}


def test_few_templates_are_asked_every_minute(watched: Watched) -> None:
    """Nothing is saved by waiting longer."""
    for name in list(watched.account.members)[3:]:
        del watched.account.members[name]
    watched.seconds = 130.0
    watched.cloud.observe([HOME])
    watched.cloud.close()
    watched.account.version = 2
    watched.seconds = 250.0
    assert watched.versions() == {"2"}


def test_group_that_moves_is_asked_about_by_its_name(watched: Watched) -> None:
    """Its new node would not be seen for a minute, or all groups be read in each cycle."""
    watched.account.desired["group-007"] = EACH + 1
    watched.seconds = 130.0
    watched.cloud.observe([HOME])
    watched.account.calls.clear()
    watched.account.members["group-007"].append("i-new")
    state = watched.cloud.observe([HOME])
    assert "i-new" in {instance.id for instance in state.instances}
    assert watched.account.calls == {"describe_auto_scaling_groups": 1, "describe_instances": 1}
    watched.cloud.observe([HOME])
    assert watched.account.calls.total() == 2


def test_group_of_an_instance_with_a_notice_is_asked_about_by_its_name(watched: Watched) -> None:
    """A node that its group ends kept its pods for up to 80 of the seconds that they have."""
    watched.account.leaving = "i-00703"
    assert not any(instance.leaving for instance in watched.cloud.observe([HOME]).instances)
    watched.account.calls.clear()
    assert watched.cloud.expect_end([InstanceId("i-00703"), InstanceId("i-foreign")])
    state = watched.cloud.observe([HOME])
    assert [instance.id for instance in state.instances if instance.leaving] == ["i-00703"]
    names = {"describe_auto_scaling_groups": 1, "describe_instances": 1}
    assert {name: watched.account.calls[name] for name in names} == names


def test_notice_for_an_instance_of_others_costs_no_call(watched: Watched) -> None:
    """The queue has the notices of every instance of the account."""
    watched.account.calls.clear()
    assert not watched.cloud.expect_end([InstanceId("i-foreign")])
    watched.cloud.observe([HOME])
    assert not watched.account.calls


def test_instance_that_is_gone_is_forgotten_with_the_next_answer(watched: Watched) -> None:
    """A node that is gone would count until the next full answer."""
    watched.account.desired["group-007"] = EACH + 1
    watched.seconds = 130.0
    watched.cloud.observe([HOME])
    gone = watched.account.members["group-007"].pop()
    state = watched.cloud.observe([HOME])
    assert gone not in {instance.id for instance in state.instances}
    assert len(state.instances) == GROUPS * EACH - 1


def test_group_whose_refresh_is_not_known_ends_no_instance(watched: Watched) -> None:
    """Auto Scaling throttles when much goes on: a refresh would be disturbed just then."""
    name, first = FleetId("group-007"), InstanceId("i-00700")
    watched.account.throttled = {"describe_instance_refreshes"}
    assert "is not known" in watched.cloud.fleet(HOME, name).removals_halted
    with pytest.raises(Conflict, match="is not known: AWS does not show it"):
        watched.cloud.terminate(HOME, name, [first], lower_target=True)
    watched.account.throttled.clear()
    assert not watched.cloud.fleet(HOME, name).removals_halted


def test_group_whose_refresh_is_not_answered_ends_no_instance(watched: Watched) -> None:
    """One part of Auto Scaling that is down is no reason to do nothing at all."""
    watched.account.down = {"describe_instance_refreshes"}
    assert "is not known" in watched.cloud.fleet(HOME, FleetId("group-007")).removals_halted


def test_groups_are_observed_while_activities_and_refreshes_are_not_answered(
    watched: Watched,
) -> None:
    """The loop failed in each cycle, as soon as one group was short: nothing was bought."""
    short = ["group-007", "group-008"]
    for name in short:
        watched.account.desired[name] = EACH + 1
    watched.account.leaving = "i-00703"
    watched.account.down = {"describe_instance_refreshes", "describe_scaling_activities"}
    watched.seconds = 130.0
    watched.account.calls.clear()
    state = watched.cloud.observe([HOME])
    assert [fleet.id for fleet in state.fleets if fleet.removals_halted] == ["group-007"]
    assert watched.account.calls["describe_scaling_activities"] == 1, "asked in vain again"


def test_group_that_cannot_be_read_is_an_error_of_the_port(watched: Watched) -> None:
    """It ended the capacity loop with a traceback."""
    watched.account.desired["group-007"] = -1
    with pytest.raises(Unavailable, match="a form that is not known"):
        watched.cloud.fleet(HOME, FleetId("group-007"))


class Details:
    """What is known of the next nodes of groups that name no instance type, and its clock."""

    def __init__(self) -> None:
        self.account = Account()
        self.seconds = 0.0
        self.details = GroupDetails(lambda: NOW, lambda: self.seconds)

    def numbers(self, *names: str) -> dict[str, int]:
        """The latest versions of these groups' launch templates, as far as they are known."""
        groups = [self.account.group(name) for name in names]
        found = self.details.answers(cast("Clients", self.account), HOME, groups)
        templates = [t for each in found for t in each.get("LaunchTemplates", [])]
        return {
            template["LaunchTemplateId"]: template["LatestVersionNumber"] for template in templates
        }

    def types(self, *names: str) -> list[str]:
        """The instance types of these groups' next nodes."""
        groups = [self.account.group(name) for name in names]
        for group in groups:
            del group["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"]
        found = self.details.answers(cast("Clients", self.account), HOME, groups)
        versions = [v for each in found for v in each.get("LaunchTemplateVersions", [])]
        return [version["LaunchTemplateData"]["InstanceType"] for version in versions]


def test_version_that_a_word_stands_for_is_not_kept_for_ever() -> None:
    """When the first question was throttled, nodes were planned of a type that is long replaced."""
    details = Details()
    details.account.throttled = {"describe_launch_templates"}
    assert details.types("group-000") == ["r1.xlarge"]
    details.account.version = 2
    details.seconds = 61.0
    assert details.types("group-000") == ["r2.xlarge"]


def test_group_that_came_while_ec2_throttles_hides_no_version_of_others() -> None:
    """Halted rolling updates of all groups went on when a group was made at the wrong time."""
    details = Details()
    assert details.numbers("group-000") == {"lt-group-000": 1}
    details.account.throttled = {"describe_launch_templates"}
    assert details.numbers("group-000", "group-001") == {"lt-group-000": 1}


def test_what_is_about_no_group_any_more_is_forgotten() -> None:
    """A year of template versions would stay in memory."""
    details = Details()
    details.types("group-000", "group-001")
    details.types("group-001")
    details.account.calls.clear()
    details.types("group-000", "group-001")
    assert details.account.calls["describe_launch_template_versions"] == 1


@pytest.mark.parametrize(("pool_state", "asked"), [("", 0), ("Stopped", 0), ("Running", 1)])
def test_activities_tell_when_an_instance_that_ran_in_a_warm_pool_went_into_service(
    pool_state: str, asked: int
) -> None:
    """Nothing else does, and a kubelet that starts then would be hours late."""
    watched = Watched()
    watched.account.pool_state = pool_state
    watched.cloud.observe([HOME])
    watched.cloud.close()
    assert watched.account.calls["describe_scaling_activities"] == asked
