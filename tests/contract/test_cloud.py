"""What every Cloud promises; a difference between the twins is a bug in one of them."""

from collections.abc import Iterator

import pytest

from reconciler.model.errors import NotFound, Refused, TerminationProtected
from reconciler.model.ids import FleetId
from tests.contract.cloud_worlds import (
    AWAY,
    HOME,
    UNKNOWN,
    CloudWorld,
    EmulatedAws,
    GroupsOverHttp,
    InMemory,
    OverHttp,
    emulated_aws,
)


@pytest.fixture(scope="module")
def emulated() -> Iterator[EmulatedAws]:
    """EC2's API on loopback."""
    with emulated_aws() as running:
        yield running


FLEETS = ("memory", "http")
GROUPS = ("memory-groups", "http-groups")


@pytest.fixture(params=[*FLEETS, *GROUPS])
def world(request: pytest.FixtureRequest, emulated: EmulatedAws) -> Iterator[CloudWorld]:
    """An account without fleets or groups of the cluster."""
    made: CloudWorld
    match request.param:
        case "memory":
            made = InMemory()
        case "memory-groups":
            made = InMemory("asg")
        case "http":
            made = OverHttp(emulated)
        case _:
            made = GroupsOverHttp(emulated)
    yield made
    made.close()


fleets_only = pytest.mark.parametrize("world", FLEETS, indirect=True)
groups_only = pytest.mark.parametrize("world", GROUPS, indirect=True)


@pytest.fixture
def over_http(emulated: EmulatedAws) -> Iterator[OverHttp]:
    """The real adapter's world, for what memory does not have."""
    made = OverHttp(emulated)
    yield made
    made.close()


def test_fleet_and_members_are_observed(world: CloudWorld) -> None:
    """A fleet that is not seen is reported missing, and its pods wait."""
    fleet_id = world.add_fleet("primary-small", 2)
    world.advance(60)
    state = world.port.observe([HOME, AWAY])
    (fleet,) = state.fleets
    assert (fleet.id, fleet.name, fleet.region) == (fleet_id, "primary-small", HOME)
    assert (fleet.state, fleet.target_capacity, fleet.fulfilled_capacity) == ("active", 2, 2.0)
    assert fleet.instance_types == ("r5.xlarge",)
    assert fleet.tags["cluster"] == world.cluster
    assert [(i.state, i.lifecycle, i.fleet_id) for i in state.instances] == [
        ("running", "spot", fleet_id)
    ] * 2
    assert all(instance.launched_at is not None for instance in state.instances)
    assert {i.launch_template_version for i in state.instances} == {fleet.launch_template_version}
    assert state.regions == {HOME, AWAY}
    assert state.instances_known


@fleets_only
def test_raised_target_launches_and_lowered_target_ends_nothing(world: CloudWorld) -> None:
    """EC2 would pick victims itself, pods and all."""
    fleet_id = world.add_fleet("primary-small", 1)
    world.port.set_target_capacity(HOME, fleet_id, 3)
    world.advance(60)
    assert len(world.members(fleet_id)) == 3
    world.port.set_target_capacity(HOME, fleet_id, 1)
    world.advance(60)
    assert world.port.fleet(HOME, fleet_id).target_capacity == 1
    assert len(world.members(fleet_id)) == 3


@groups_only
def test_target_of_a_group_is_raised_and_never_lowered(world: CloudWorld) -> None:
    """The group would end instances of its own choice, pods and all."""
    fleet_id = world.add_fleet("primary-small", 1)
    world.port.set_target_capacity(HOME, fleet_id, 3)
    world.advance(60)
    assert len(world.members(fleet_id)) == 3
    with pytest.raises(Refused, match="not lowered from 3 to 1"):
        world.port.set_target_capacity(HOME, fleet_id, 1)
    world.advance(60)
    assert world.port.fleet(HOME, fleet_id).target_capacity == 3
    assert len(world.members(fleet_id)) == 3


@fleets_only
def test_fleet_is_modifying_for_a_while_and_keeps_the_new_target(world: CloudWorld) -> None:
    """A fleet read too early must not look unchanged."""
    fleet_id = world.add_fleet("primary-small", 1)
    world.advance(60)
    world.port.set_target_capacity(HOME, fleet_id, 2)
    assert world.port.fleet(HOME, fleet_id).state == "modifying"
    assert world.port.fleet(HOME, fleet_id).target_capacity == 2
    world.advance(60)
    assert world.port.fleet(HOME, fleet_id).state == "active"


def test_terminated_instance_is_replaced_unless_the_target_goes_down_with_it(
    world: CloudWorld,
) -> None:
    """Terminating before lowering buys a new node for each that is ended."""
    fleet_id = world.add_fleet("primary-small", 2)
    world.advance(60)
    first, second = (member.id for member in world.members(fleet_id))
    world.port.terminate(HOME, fleet_id, [first], lower_target=False)
    world.advance(60)
    assert len(world.members(fleet_id)) == 2
    world.port.terminate(HOME, fleet_id, [second], lower_target=True)
    world.advance(60)
    assert len(world.members(fleet_id)) == 1
    states = {
        instance.id: instance.state for instance in world.port.instances(HOME, [first, second])
    }
    assert set(states.values()) <= {"terminated"}


def test_terminating_with_a_lower_target_leaves_the_fleet_smaller(world: CloudWorld) -> None:
    """The fleet would buy a new node for each that is ended, or lose two at once."""
    fleet_id = world.add_fleet("primary-small", 3)
    world.advance(60)
    first, second, third = (member.id for member in world.members(fleet_id))
    lowered = world.port.terminate(
        HOME, fleet_id, [first, second, first], lower_target=True, expected_target=3
    )
    assert lowered == 1
    world.advance(60)
    assert [member.id for member in world.members(fleet_id)] == [third]
    assert world.port.fleet(HOME, fleet_id).target_capacity == 1


def test_terminating_from_another_target_changes_nothing(world: CloudWorld) -> None:
    """After a lost reply the target would go down twice, or over what Terraform has set."""
    fleet_id = world.add_fleet("primary-small", 2)
    world.advance(60)
    (first, _) = (member.id for member in world.members(fleet_id))
    with pytest.raises(Refused, match="is 2, not 3"):
        world.port.terminate(HOME, fleet_id, [first], lower_target=True, expected_target=3)
    world.advance(60)
    assert len(world.members(fleet_id)) == 2
    assert world.port.fleet(HOME, fleet_id).target_capacity == 2


def test_terminating_in_a_fleet_that_is_gone_ends_nothing(world: CloudWorld) -> None:
    """A lower target of a fleet that does not exist cannot be promised."""
    fleet_id = world.add_fleet("primary-small", 1)
    world.advance(60)
    (member,) = world.members(fleet_id)
    with pytest.raises(NotFound):
        world.port.terminate(HOME, FleetId("fleet-gone"), [member.id], lower_target=True)
    assert len(world.members(fleet_id)) == 1


def test_ending_what_has_ended_is_done_already(world: CloudWorld) -> None:
    """A plan carried out twice must not fail the second time."""
    fleet_id = world.add_fleet("primary-small", 1)
    world.advance(60)
    (member,) = world.members(fleet_id)
    world.port.terminate(HOME, fleet_id, [member.id], lower_target=False)
    world.advance(60)
    world.port.terminate(HOME, fleet_id, [member.id, UNKNOWN], lower_target=False)
    world.port.terminate(HOME, fleet_id, [], lower_target=False)


def test_one_unknown_instance_does_not_save_the_others(world: CloudWorld) -> None:
    """EC2 fails the whole call for one id that it has forgotten."""
    fleet_id = world.add_fleet("primary-small", 1)
    world.advance(60)
    (member,) = world.members(fleet_id)
    world.port.terminate(HOME, fleet_id, [UNKNOWN, member.id], lower_target=True)
    world.advance(60)
    assert world.members(fleet_id) == []


@fleets_only
def test_instance_protected_from_termination_stays_alone(world: CloudWorld) -> None:
    """EC2 refuses the whole call for one of them: the others would be paid for without an end."""
    fleet_id = world.add_fleet("primary-small", 4)
    world.advance(60)
    first, second, third, fourth = sorted(member.id for member in world.members(fleet_id))
    for each in (first, third):
        world.protect_from_termination(each)
    with pytest.raises(TerminationProtected) as caught:
        world.port.terminate(
            HOME, fleet_id, [UNKNOWN, first, second, third], lower_target=True, expected_target=4
        )
    assert caught.value.instances == {first, third}
    assert caught.value.target == world.port.fleet(HOME, fleet_id).target_capacity == 0
    world.advance(60)
    assert {member.id for member in world.members(fleet_id)} == {first, third, fourth}
    world.protect_from_termination(first, protected=False)
    world.port.terminate(HOME, fleet_id, [first], lower_target=False)
    world.advance(60)
    assert {member.id for member in world.members(fleet_id)} == {third, fourth}


def test_unknown_ids_are_left_out(world: CloudWorld) -> None:
    """Asking after an instance that is gone is how its end is noticed."""
    fleet_id = world.add_fleet("primary-small", 1)
    world.advance(60)
    (member,) = world.members(fleet_id)
    found = world.port.instances(HOME, [UNKNOWN, member.id])
    assert [instance.id for instance in found] == [member.id]
    assert world.port.instances(HOME, []) == ()


def test_missing_capacity_shows_as_an_error_of_the_fleet(world: CloudWorld) -> None:
    """Demand would wait for a fleet that EC2 cannot fill."""
    fleet_id = world.add_fleet("primary-small", 0)
    world.refuse_launches(fleet_id, "InsufficientInstanceCapacity")
    world.port.set_target_capacity(HOME, fleet_id, 2)
    world.advance(120)
    fleet = world.observed(fleet_id)
    assert "InsufficientInstanceCapacity" in {event.code for event in fleet.launch_errors} | {
        word for event in fleet.launch_errors for word in event.message.split()
    }
    assert fleet.fulfilled_capacity == 0


def test_fleet_that_is_gone_is_not_found(world: CloudWorld) -> None:
    """The executor must tell a vanished fleet from a failure."""
    gone = FleetId("fleet-00000000-0000-0000-0000-000000000000")
    with pytest.raises(NotFound):
        world.port.fleet(HOME, gone)
    with pytest.raises(NotFound):
        world.port.set_target_capacity(HOME, gone, 1)


def test_other_clusters_fleets_are_invisible(over_http: OverHttp) -> None:
    """Scaling a neighbour's fleet would be the worst of all mistakes."""
    foreign = over_http.add_fleet("primary-small", 1, cluster="neighbour")
    over_http.advance(60)
    state = over_http.port.observe([HOME])
    assert (state.fleets, state.instances) == ((), ())
    with pytest.raises(NotFound):
        over_http.port.fleet(HOME, foreign)


@pytest.mark.parametrize("kind", ["request", "instant"])
def test_fleet_of_another_type_is_there_and_not_scaled(over_http: OverHttp, kind: str) -> None:
    """Its instances would be ended as left behind by a fleet that is gone."""
    fleet_id = over_http.add_fleet("primary-small", 1, kind=kind)
    over_http.advance(60)
    state = over_http.port.observe([HOME])
    assert not state.fleets
    assert state.other_fleets == {fleet_id}
    assert {instance.fleet_id for instance in state.instances} == {fleet_id}
    assert over_http.port.fleet_state(HOME, fleet_id) == "active"


def test_fleet_of_anybody_has_a_state_until_it_is_gone(over_http: OverHttp) -> None:
    """An instance of another owner's fleet would look like an orphan, and be ended."""
    foreign = over_http.add_fleet("primary-large", 1, cluster="neighbour")
    over_http.advance(60)
    assert over_http.port.fleet_state(HOME, foreign) == "active"
    with pytest.raises(NotFound):
        over_http.port.fleet_state(HOME, FleetId("fleet-00000000-0000-0000-0000-000000000000"))
