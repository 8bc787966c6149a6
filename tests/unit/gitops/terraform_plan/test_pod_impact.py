"""What a Terraform plan means for running pods."""

from dataclasses import replace

from reconciler.gitops.terraform_plan.planned import fleets
from reconciler.gitops.terraform_plan.pod_impact import PodImpact, impact_json, pod_impacts
from reconciler.model.cluster import Node, Pod
from reconciler.model.ids import Region
from reconciler.planner.settings import RaiseLimits
from tests.builders import make_fleet_settings, make_node, make_pod, make_settings, make_snapshot
from tests.unit.gitops.plans import fleet_arn, fleet_attributes, fleet_change, plan, resource

SMALL = make_fleet_settings("small")
LARGE = make_fleet_settings("large", cpu=32, memory="128Gi", price="0.90")
NODES = (make_node("a", SMALL), make_node("b", SMALL))


def impacts(*objects: Pod | Node, change: list[str]) -> tuple[PodImpact, ...]:
    """What a change of primary-small means when only primary-large stays in the config."""
    planned = fleets(plan(fleet_change(change)))
    return pod_impacts(planned, make_snapshot(*objects), make_settings(LARGE))


def test_pods_of_a_destroyed_fleet_are_reported_where_they_would_go() -> None:
    """The reviewer approves the end of nodes that serve people."""
    pods = (make_pod("x", node="a"), make_pod("y", node="b"), make_pod("elsewhere", node="c"))
    others = (make_node("c", LARGE),)
    (found,) = impacts(*NODES, *others, *pods, change=["delete"])
    assert (found.fleet, found.nodes, found.pods) == ("primary-small", 2, 2)
    assert found.places == {"existing nodes": 2}
    assert found.unplaceable == ()


def test_without_room_new_nodes_of_another_fleet_are_named() -> None:
    """Then the change costs money, and the summary must say where."""
    (found,) = impacts(*NODES, make_pod("x", node="a"), change=["delete", "create"])
    assert found.places == {"primary-large": 1}


def test_pod_that_nothing_else_takes_is_named_with_its_reason() -> None:
    """Approving this plan would leave it pending for ever."""
    pinned = make_pod("x", node="a", node_selector={"size": "small"})
    (found,) = impacts(*NODES, pinned, change=["delete"])
    assert found.unplaceable == (("ns/x", "node-selector"),)
    assert impact_json(found)["unplaceable"] == [{"pod": "ns/x", "codes": "node-selector"}]


def test_pods_that_a_later_cycle_buys_for_have_a_place() -> None:
    """With one node a cycle, a change of six nodes seemed to leave five pods pending."""
    nodes = [make_node(f"n{number}", SMALL) for number in range(6)]
    pods = [make_pod(f"p{number}", node=f"n{number}", cpu="3") for number in range(6)]
    settings = replace(make_settings(SMALL), raise_limits=RaiseLimits(nodes_per_cycle=1))
    planned = fleets(plan(fleet_change(["delete", "create"])))
    (found,) = pod_impacts(planned, make_snapshot(*nodes, *pods), settings)
    assert (found.places, found.unplaceable) == ({"primary-small": 6}, ())


def test_daemons_and_finished_pods_are_nobodys_loss() -> None:
    """Every node has them; they would hide the pods that matter."""
    pods = (
        make_pod("daemon", node="a", owner="DaemonSet"),
        make_pod("done", node="a", phase="Succeeded"),
        make_pod("leaving", node="a", deleting=True),
    )
    (found,) = impacts(*NODES, *pods, change=["delete"])
    assert (found.pods, found.places, found.unplaceable) == (0, {}, ())


def test_fleet_that_stays_as_it_is_is_not_mentioned() -> None:
    """A plan for one fleet says nothing about the pods of forty others."""
    assert impacts(*NODES, make_pod("x", node="a"), change=["no-op"]) == ()
    assert impacts(make_pod("x"), change=["delete"]) == ()


def test_nodes_of_the_same_fleet_in_another_region_are_not_touched() -> None:
    """A root module is of one region: the plan for the other one ended four nodes for one."""
    east = Region("us-east-1")
    nodes = (
        *NODES,
        make_node("east", SMALL, region=east, zone="us-east-1a"),
        make_node("unknown", SMALL, labels={"topology.kubernetes.io/region": ""}),
    )
    pods = (make_pod("x", node="a"), make_pod("y", node="b"), make_pod("z", node="east"))
    (found,) = impacts(*nodes, *pods, change=["delete"])
    assert (found.nodes, found.pods) == (3, 2)
    gone = resource(
        "aws_ec2_fleet", ["delete"], fleet_attributes(arn=fleet_arn("primary-small", east)), None
    )
    planned = fleets(plan(gone))
    (found,) = pod_impacts(planned, make_snapshot(*nodes, *pods), make_settings(LARGE))
    assert (found.nodes, found.pods) == (2, 1)
