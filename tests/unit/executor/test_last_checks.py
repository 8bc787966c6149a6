"""What is looked at once more before anything ends: pods, nodes, fleets, and silence."""

from dataclasses import replace

import pytest

from reconciler.model.actions import DeleteNode, TerminateInstance
from reconciler.model.errors import Throttled, Unavailable
from reconciler.model.ids import FleetId, InstanceId, Region
from tests.builders import HOME, make_pod
from tests.unit.executor.scene import Scene


def test_node_with_a_pod_that_came_late_is_not_ended(scene: Scene) -> None:
    """Between plan and act the scheduler may have used the node."""
    pod = make_pod("late", node=scene.nodes[0].name)
    scene.world.add_pod(pod)
    assert scene.run(scene.ended(0), scene.ended(1)) == ["refused", "applied"]
    assert scene.world.target(scene.fleet) == 2
    assert "late" in scene.reported[0].detail


def test_pod_that_hangs_in_deletion_does_not_keep_its_node(scene: Scene) -> None:
    """A finalizer that nobody takes off would keep the node, and every cycle refuse its end."""
    hangs = [scene.world.add_pod(make_pod(f"h{n}", node=scene.nodes[n].name)) for n in (0, 1)]
    scene.world.add_pod(make_pod("late", node=scene.nodes[1].name))
    first, second = (replace(scene.ended(n), stuck_terminating=(hangs[n],)) for n in (0, 1))
    assert scene.run(first, second) == ["applied", "refused"]
    assert "late" in scene.reported[-1].detail


def test_instance_that_never_joined_is_a_subject_of_its_own(scene: Scene) -> None:
    """Two instances without a node must not be taken for one."""
    known = scene.ended(0, decrement=False)
    scene.world.objects.remove_node(scene.nodes[0].name)
    first, second = (
        TerminateInstance(
            instance=InstanceId(name),
            node=None,
            fleet=known.fleet,
            fleet_id=known.fleet_id,
            provider=known.provider,
            region=known.region,
            decrement=False,
            precondition="never-joined",
            policy="stuck-instance",
            because="never joined",
        )
        for name in ("i-0", str(known.instance))
    )
    scene.world.fail_next("instances", Unavailable("ec2", "does not answer"))
    assert scene.run(first, second) == ["failed", "applied"]


def test_instance_that_became_a_node_meanwhile_is_not_ended_as_stuck(scene: Scene) -> None:
    """The plan was made from a stale or holey list: a machine at work would be ended."""
    stuck = replace(scene.ended(decrement=False), node=None, precondition="never-joined")
    assert scene.run(stuck) == ["refused"]
    assert scene.changes() == []
    assert "is a node by now" in scene.reported[0].detail
    scene.world.objects.remove_node(scene.nodes[0].name)
    assert scene.run(stuck) == ["applied"]


def test_instance_is_not_ended_as_stuck_while_nobody_can_tell(scene: Scene) -> None:
    """An API server that does not answer is no proof that a machine is idle."""
    stuck = replace(scene.ended(decrement=False), node=None, precondition="never-joined")
    scene.world.fail_next("nodes", Unavailable("nodes", "503"))
    assert scene.run(stuck) == ["failed"]
    assert scene.changes() == []


def deleted(scene: Scene, number: int = 0, *, region: Region | None = HOME) -> DeleteNode:
    """The end of a Node object, with the instance that it was."""
    node = scene.nodes[number]
    return DeleteNode(
        node=node.name,
        instance=node.instance_id,
        region=region,
        policy="stuck-instance",
        because="test",
    )


def test_node_whose_instance_lives_after_all_is_not_deleted(scene: Scene) -> None:
    """Its pods run, and the garbage collector would kill every one of them."""
    assert scene.run(deleted(scene)) == ["refused"]
    assert len(scene.nodes) == 3


def test_node_whose_instance_is_gone_is_deleted(scene: Scene) -> None:
    """A name without a machine keeps its pods from being made anew."""
    action = deleted(scene)
    assert action.instance is not None
    scene.world.end_instance(action.instance)
    assert scene.run(action) == ["applied"]


def test_node_is_not_deleted_while_ec2_does_not_answer(scene: Scene) -> None:
    """Silence is no proof that an instance is gone."""
    action = deleted(scene)
    assert action.instance is not None
    scene.world.end_instance(action.instance)
    scene.world.fail_next("instances", Unavailable("ec2", "no answer"))
    assert scene.run(action) == ["failed"]


def orphaned(scene: Scene, number: int = 0) -> TerminateInstance:
    """The end of an instance whose fleet is believed to be gone."""
    return replace(scene.ended(number, decrement=False), precondition="orphan")


def test_orphan_whose_fleet_is_gone_is_ended(scene: Scene) -> None:
    """It would be billed for ever."""
    action = orphaned(scene)
    scene.world.delete_fleet(scene.fleet)
    assert scene.run(action) == ["applied"]
    assert [name for name, _ in scene.changes()] == ["terminate_instances"]


def test_orphan_whose_fleet_is_there_after_all_is_left_alone(scene: Scene) -> None:
    """A list that left the fleet out would cost it all its nodes."""
    assert scene.run(orphaned(scene)) == ["refused"]
    assert scene.changes() == []


def test_orphan_is_left_alone_while_nobody_can_tell(scene: Scene) -> None:
    """Throttled is not gone."""
    action = orphaned(scene)
    scene.world.delete_fleet(scene.fleet)
    scene.world.fail_next("fleet", Throttled("fleet", "slow down"))
    assert scene.run(action) == ["refused"]
    assert scene.changes() == []


def test_orphan_with_a_pod_that_came_late_is_not_ended(scene: Scene) -> None:
    """The last check holds for orphans too."""
    action = orphaned(scene)
    scene.world.add_pod(make_pod("late", node=scene.nodes[0].name))
    scene.world.delete_fleet(scene.fleet)
    assert scene.run(action) == ["refused"]


@pytest.mark.parametrize(("orphan", "decrement"), [(True, False), (False, True), (False, False)])
def test_instance_that_belongs_to_another_fleet_is_left_alone(
    scene: Scene, orphan: bool, decrement: bool
) -> None:
    """Somebody else's instance would be ended, and our fleet's target be lowered for it."""
    action = replace(scene.ended(0, decrement=decrement), fleet_id=FleetId("fleet-other"))
    assert scene.run(replace(action, precondition="orphan" if orphan else "empty")) == ["refused"]
    assert scene.changes() == []


def test_instance_of_a_node_that_goes_by_its_private_name_is_not_stuck(scene: Scene) -> None:
    """A kubelet registers without a providerID, until the cloud controller has been there."""
    node = scene.nodes[0]
    assert node.instance_id is not None
    instances = scene.world.fleets.instances
    named = replace(instances[node.instance_id], private_dns_name=str(node.name))
    instances[node.instance_id] = named
    stuck = replace(scene.ended(decrement=False), node=None, precondition="never-joined")
    scene.world.objects.add_node(replace(node, instance_id=None, provider_id=""))
    assert scene.run(stuck) == ["refused"]


def test_node_that_is_ready_again_is_not_replaced(scene: Scene) -> None:
    """It came back between the plan and its end, and pods run there."""
    silent = replace(scene.ended(decrement=False), precondition="not-ready")
    assert scene.run(silent) == ["refused"]
    assert "is Ready again" in scene.reported[0].detail
    scene.world.objects.add_node(replace(scene.nodes[0], ready=False))
    assert scene.run(silent) == ["applied"]


def test_another_machine_of_the_name_keeps_its_node(scene: Scene) -> None:
    """Private names come back with their addresses: it would lose its object and all its pods."""
    old = scene.nodes[0]
    action = replace(deleted(scene), uid=old.uid)
    assert old.instance_id is not None
    scene.world.vanish(old.instance_id)
    scene.world.objects.add_node(replace(old, uid="new", instance_id=InstanceId("i-0feed")))
    assert scene.run(action) == ["already-done"]
    assert old.name in {node.name for node in scene.nodes}


def test_instance_that_was_protected_meanwhile_is_not_ended(scene: Scene) -> None:
    """A group at rest is read every minute or two, and AWS would end the instance."""
    action = scene.ended(0)
    known = scene.world.fleets.instances
    known[action.instance] = replace(known[action.instance], protected=True)
    assert scene.run(action, scene.ended(1)) == ["refused", "applied"]
    assert "protected from scale-in" in scene.reported[0].detail
