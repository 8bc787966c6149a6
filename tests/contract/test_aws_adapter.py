"""The real Cloud adapter under failures: throttling, missing rights, lost replies."""

from contextlib import closing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from reconciler.adapters.aws import AutoScalingCloud, Clients
from reconciler.model.errors import (
    Conflict,
    Forbidden,
    NotFound,
    OutcomeUnknown,
    PortError,
    Refused,
    Throttled,
    Unavailable,
)
from reconciler.model.ids import InstanceId
from reconciler.model.snapshot import Ignored
from tests.contract.scripted import Answer
from tests.contract.scripted_ec2 import (
    ALIVE,
    AWAY,
    FLEET,
    GONE,
    HOME,
    IMPATIENT,
    Ec2Script,
    Make,
    fleet_xml,
    instances,
    make_scripted,
    refusal,
    xml,
)

__all__ = ["make_scripted"]


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("RequestLimitExceeded", 503, Throttled),
        ("Throttling", 400, Throttled),
        ("UnauthorizedOperation", 403, Forbidden),
        ("AuthFailure", 401, Forbidden),
        ("InvalidFleetId.NotFound", 400, NotFound),
        ("FleetNotInModifiableState", 400, Conflict),
        ("IncorrectState", 400, Conflict),
        ("InvalidParameterValue", 400, Refused),
        ("InternalError", 500, OutcomeUnknown),
        ("Unavailable", 503, Unavailable),
    ],
)
def test_error_code_decides_the_next_step(
    cloud: Make, code: str, status: int, error: type[PortError]
) -> None:
    """A throttled call repeated at once throttles the whole account."""
    with (
        cloud(lambda *_: refusal(code, status)).open() as port,
        pytest.raises(error, match="fleet-1"),
    ):
        port.set_target_capacity(HOME, FLEET, 3)


def test_lost_reply_to_a_change_is_an_unknown_outcome(cloud: Make) -> None:
    """The target may have been set: it must be read before it is set again."""
    with cloud(lambda *_: None).open() as port:
        with pytest.raises(OutcomeUnknown):
            port.set_target_capacity(HOME, FLEET, 3)
        with pytest.raises(Unavailable):
            port.fleet(HOME, FLEET)


def test_unreachable_endpoint_changed_nothing(cloud: Make) -> None:
    """Nothing was sent: the change can simply be tried again."""
    with cloud(lambda *_: None).open() as port:
        pass
    with pytest.raises(Unavailable):
        port.set_target_capacity(HOME, FLEET, 3)


def test_date_of_ec2s_answers_is_its_time(cloud: Make) -> None:
    """A launch of a minute ago would look an hour old to a clock that is an hour ahead."""
    theirs = datetime.now(UTC) - timedelta(hours=1)  # noqa: TID251 - what EC2's clock shows

    def script(action: str, parameters: dict[str, list[str]]) -> Answer | None:
        found = by_region(frozenset())(action, parameters)
        assert found is not None
        return found._replace(headers={**found.headers, "Date": format_datetime(theirs)})

    with cloud(script).open() as adapter:
        told = adapter.observe([HOME]).server_time
    assert told is not None
    assert abs(told - theirs) < timedelta(minutes=1)


def test_target_is_absolute_and_ends_nothing(cloud: Make) -> None:
    """The provider's default would pick victims itself."""
    seen: list[dict[str, list[str]]] = []

    def script(action: str, parameters: dict[str, list[str]]) -> Answer:
        seen.append(parameters)
        return xml(action, "<return>true</return>")

    with cloud(script).open() as port:
        port.set_target_capacity(HOME, FLEET, 3)
    assert seen[0]["ExcessCapacityTerminationPolicy"] == ["no-termination"]
    assert seen[0]["TargetCapacitySpecification.TotalTargetCapacity"] == ["3"]


def terminating(denied: str, *left: str, state: str = "running") -> Ec2Script:
    """Refuses to end `denied`; of the instances asked after, only `left` exist."""

    def script(action: str, parameters: dict[str, list[str]]) -> Answer:
        if action == "DescribeInstances":
            return instances(*left, state=state)
        asked = {value for key, values in parameters.items() for value in values if "Id." in key}
        return refusal("UnauthorizedOperation", 403) if denied in asked else xml(action)

    return script


@pytest.mark.parametrize("left", [(), (ALIVE,)])
def test_denied_end_of_an_instance_that_is_gone_counts_as_done(
    cloud: Make, left: tuple[str, ...]
) -> None:
    """Rights scoped by tag deny what has no tags any more; retrying would never end."""
    scripted = cloud(terminating(GONE, *left))
    with scripted.open() as port:
        port.terminate_instances(HOME, [GONE, *map(InstanceId, left)])
    ended = scripted.asked.count("TerminateInstances")
    assert ended == 1 + len(left)


def test_denied_end_of_a_living_instance_is_forbidden(cloud: Make) -> None:
    """A missing right must be reported, not taken for done."""
    with cloud(terminating(GONE, GONE)).open() as port, pytest.raises(Forbidden):
        port.terminate_instances(HOME, [GONE])


def test_denied_end_of_an_instance_that_is_ending_counts_as_done(cloud: Make) -> None:
    """EC2 shows a terminated instance for an hour."""
    with cloud(terminating(GONE, GONE, state="terminated")).open() as port:
        port.terminate_instances(HOME, [GONE])


def by_region(silent: frozenset[str]) -> Ec2Script:
    """Answers with nothing; no connection of silent regions is answered."""

    def script(action: str, _parameters: dict[str, list[str]]) -> Answer | None:
        return None if action in silent else xml(action)

    return script


def test_no_region_answering_is_an_error(cloud: Make) -> None:
    """An empty answer would make every fleet missing."""
    with (
        cloud(by_region(frozenset({"DescribeFleets"}))).open() as port,
        pytest.raises(Unavailable),
    ):
        port.observe([HOME, AWAY])


def test_history_is_read_only_of_fleets_in_trouble(cloud: Make) -> None:
    """One call per fleet and cycle would use up the account's requests."""
    asked: list[str] = []

    def script(action: str, parameters: dict[str, list[str]]) -> Answer:
        if action == "DescribeFleets":
            return xml(
                action,
                f"<fleetSet>{fleet_xml('fleet-a', fulfilled=2)}{fleet_xml('fleet-b')}</fleetSet>",
            )
        if action == "DescribeFleetHistory":
            asked.extend(parameters["FleetId"])
        return xml(action)

    scripted = cloud(script)
    with scripted.open() as port:
        state = port.observe([HOME])
    assert [fleet.id for fleet in state.fleets] == ["fleet-a", "fleet-b"]
    assert asked == ["fleet-b"]
    assert scripted.asked.count("DescribeFleets") == 1
    assert scripted.asked.count("DescribeInstances") == 1


@pytest.mark.parametrize(
    ("state", "history", "told"),
    [
        ("active", refusal("InvalidFleetId.NotFound"), ()),
        ("active", refusal("RequestLimitExceeded", 503), ()),
        ("active", refusal("InternalError", 500), ()),
        ("active", refusal("Unavailable", 503), ()),
        ("active", refusal("UnauthorizedOperation", 403), ("fleet-1", "fleet-2")),
        ("active", refusal("InvalidParameterValue"), ("fleet-1", "fleet-2")),
        ("deleted_running", refusal("InvalidFleetId.NotFound"), ()),
    ],
)
def test_history_that_cannot_be_had_leaves_the_region_readable(
    cloud: Make, state: str, history: Answer, told: tuple[str, ...]
) -> None:
    """One fleet that was deleted just now must not hide all others of its region.

    A right that is missing is told: without it no capacity error would ever be seen.
    """

    def script(action: str, _: dict[str, list[str]]) -> Answer:
        if action == "DescribeFleets":
            items = fleet_xml("fleet-1", state) + fleet_xml("fleet-2")
            return xml(action, f"<fleetSet>{items}</fleetSet>")
        return history if action == "DescribeFleetHistory" else instances()

    with cloud(script).open() as adapter:
        observed = adapter.observe([HOME])
    assert observed.silent == frozenset()
    assert "fleet-2" in {fleet.id for fleet in observed.fleets}
    assert observed.ignored == tuple(
        Ignored(code="unreadable", kind="FleetHistory", name=name) for name in told
    )


def test_deleted_fleet_is_not_asked_for_its_history(cloud: Make) -> None:
    """EC2 lists it for days, below a target that nobody will reach."""
    listed = f"<fleetSet>{fleet_xml('fleet-1', 'deleted_running')}</fleetSet>"
    scripted = cloud(
        lambda action, _: xml(action, listed) if action == "DescribeFleets" else instances()
    )
    with scripted.open() as adapter:
        adapter.observe([HOME])
    assert "DescribeFleetHistory" not in scripted.asked


def test_without_credentials_it_is_forbidden(cloud: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator reads what is missing instead of a traceback."""
    with cloud(lambda *_: None).open() as port:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
        monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
        with pytest.raises(Forbidden, match="credentials"):
            port.observe([HOME])


ODD_ANSWERS = {
    "time that is none": ("<type>", "<createTime>soon</createTime><type>"),
    "number that is none": ("<totalTargetCapacity>2", "<totalTargetCapacity>"),
    "tag without key": ("<key>cluster</key>", ""),
}
"""What is replaced in DescribeFleets, and by what."""


ODD_TAG = "<Tags><member><Value>a</Value></member></Tags>"


@pytest.mark.parametrize("name", ODD_ANSWERS)
def test_answer_with_a_value_that_cannot_be_read_is_an_error_of_that_answer(
    cloud: Make, name: str
) -> None:
    """It ended the program; the next cycle asks again."""
    listed = f"<fleetSet>{fleet_xml('fleet-1').replace(*ODD_ANSWERS[name])}</fleetSet>"
    scripted = cloud(
        lambda action, _: xml(action, listed) if action == "DescribeFleets" else instances()
    )
    with scripted.open() as adapter:
        with pytest.raises(Unavailable):
            adapter.observe([HOME])
        with pytest.raises(Unavailable):
            adapter.fleet(HOME, FLEET)


def test_instance_without_the_time_of_its_launch_is_an_error_of_that_answer(cloud: Make) -> None:
    """EC2 states a time for each; an empty one is none."""
    odd = "<item><instancesSet><item><instanceId>i-1</instanceId><launchTime></launchTime></item>"
    found = f"<reservationSet>{odd}</instancesSet></item></reservationSet>"
    with cloud(lambda action, _: xml(action, found)).open() as adapter:
        with pytest.raises(Unavailable, match="describe_instances"):
            adapter.observe([HOME])
        with pytest.raises(Unavailable, match="describe_instances"):
            adapter.instances(HOME, [ALIVE])


@pytest.mark.parametrize(
    ("before", "instead"),
    [
        ("<fulfilledCapacity>1", "<fulfilledCapacity>INF"),
        ("<fulfilledCapacity>1", "<fulfilledCapacity>NaN"),
        ("<fleetId>fleet-2</fleetId>", ""),
        ("<type>", "<createTime>9999-12-31T23:59:59-01:00</createTime><type>"),
    ],
)
def test_fleet_that_cannot_be_read_is_reported_and_the_others_count(
    cloud: Make, before: str, instead: str
) -> None:
    """It ended the program, in the first cycle or in the second one."""
    items = fleet_xml("fleet-1", fulfilled=2) + fleet_xml("fleet-2").replace(before, instead)
    listed = f"<fleetSet>{items}</fleetSet>"
    scripted = cloud(
        lambda action, _: xml(action, listed) if action == "DescribeFleets" else instances()
    )
    with scripted.open() as adapter:
        for _ in range(2):
            observed = adapter.observe([HOME])
            assert [fleet.id for fleet in observed.fleets] == ["fleet-1"]
            assert {(each.code, each.kind) for each in observed.ignored} == {
                ("unreadable", "Fleet")
            }


@pytest.mark.parametrize("odd", ["<CreatedTime>soon</CreatedTime>", ODD_TAG])
def test_group_that_cannot_be_read_is_an_error_of_that_answer(cloud: Make, odd: str) -> None:
    """As above, for Auto Scaling."""
    group = f"<member><AutoScalingGroupName>a</AutoScalingGroupName>{odd}</member>"
    result = f"<AutoScalingGroups>{group}</AutoScalingGroups>"
    body = f"<DescribeAutoScalingGroupsResult>{result}</DescribeAutoScalingGroupsResult>"
    with cloud(lambda action, _: xml(action, body)).open():
        groups = AutoScalingCloud("analytics", frozenset, Clients(IMPATIENT))
        with closing(groups), pytest.raises(Unavailable):
            groups.observe([HOME])


def test_date_beyond_the_calendar_is_none(cloud: Make) -> None:
    """The header ended the program, whatever the answer said."""
    odd = {"Date": "Fri, 31 Dec 9999 23:59:59 -1400"}
    with cloud(lambda action, _: xml(action)._replace(headers=odd)).open() as adapter:
        assert adapter.observe([HOME]).server_time is None


def test_target_that_may_have_been_set_back_is_not_lowered(cloud: Make) -> None:
    """EC2 shows the target of before our change: it is late, or a person has set it once more."""

    def script(action: str, parameters: dict[str, list[str]]) -> Answer | None:
        del parameters
        if action == "DescribeFleets":
            return xml(action, f"<fleetSet>{fleet_xml(FLEET)}</fleetSet>")
        return xml(action, "<return>true</return>")

    scripted = cloud(script)
    with scripted.open() as port:
        assert port.fleet(HOME, FLEET).target_capacity == 2
        port.set_target_capacity(HOME, FLEET, 1)
        assert port.fleet(HOME, FLEET).target_capacity == 1, "for a minute ours counts"
        with pytest.raises(Refused, match="is 2, not 1"):
            port.terminate(HOME, FLEET, [ALIVE], lower_target=True, expected_target=1)
    assert scripted.asked.count("ModifyFleet") == 1
    assert "TerminateInstances" not in scripted.asked


SIGN_IN = b'<html xmlns="http://www.w3.org/1999/xhtml"><body>Please log in</body></html>'


@pytest.mark.parametrize("action", ["DescribeFleets", "DescribeInstances"])
def test_page_of_a_proxy_is_no_empty_list(cloud: Make, action: str) -> None:
    """A sign-in page that is well-formed XML looked like a region without fleets."""

    def script(asked: str, _parameters: dict[str, list[str]]) -> Answer:
        if asked == action:
            return Answer(body=SIGN_IN)
        if asked == "DescribeFleets":
            return xml(asked, f"<fleetSet>{fleet_xml('fleet-2', fulfilled=1)}</fleetSet>")
        return xml(asked)

    with cloud(script).open() as port, pytest.raises(Unavailable, match="no list of"):
        port.observe([HOME])


def test_history_that_is_a_page_of_a_proxy_is_not_reported(cloud: Make) -> None:
    """A fleet in trouble looked as if it had none."""

    def script(asked: str, _parameters: dict[str, list[str]]) -> Answer:
        if asked == "DescribeFleets":
            return xml(asked, f"<fleetSet>{fleet_xml('fleet-2', fulfilled=1)}</fleetSet>")
        return Answer(body=SIGN_IN) if asked == "DescribeFleetHistory" else xml(asked)

    with cloud(script).open() as port:
        (answers,) = port.raw([HOME]).values()
    assert not [answer for answer in answers if "HistoryRecords" in answer]
