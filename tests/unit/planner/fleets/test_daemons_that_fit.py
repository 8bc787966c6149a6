"""DaemonSets that a tenant writes: only what really runs on a new node is taken off its offer."""

from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.cluster import HostPort, Owner, Pod, PodAffinityTerm
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.model.selectors import LabelSelector, Requirement
from reconciler.model.snapshot import Ignored
from reconciler.planner.planner import plan
from tests.builders import (
    HOSTNAME,
    amounts,
    make_daemon_set,
    make_fleet_settings,
    make_node,
    make_option,
    make_pod,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.fleets.offered import offered

FLEET = make_fleet_settings(options=(make_option("m5.xlarge", 4, "16Gi", 20),))
HTTPS = HostPort(address="0.0.0.0", protocol="TCP", port=443)  # noqa: S104 - any address
WEB = make_pod("web", cpu="1", memory="1Gi")


def planned(*objects: Any, **changed: Any) -> Plan:
    """The plan for these objects and one fleet."""
    return plan(make_snapshot(*objects, **changed), make_settings(FLEET))


def refusal(made: Plan) -> str:
    """Why the only pod that nothing takes waits."""
    (refused,) = made.unplaceable
    return refused.reasons[0].detail


def test_daemon_that_is_larger_than_the_node_takes_nothing_of_it() -> None:
    """One DaemonSet of 1,000 CPUs would end scale-up for every tenant."""
    assert offered(FLEET, daemon_sets=(make_daemon_set("hog", memory="1000Gi"),)) == "16Gi"
    assert planned(WEB, daemon_sets=(make_daemon_set("hog", cpu="1000"),)).unplaceable == ()


@pytest.mark.parametrize("asks", [{"cpu": "4"}, {"memory": "16Gi"}, {"cpu": "3950m"}])
def test_daemon_that_leaves_the_kubelet_no_room_does_not_fit_a_machine(asks: Any) -> None:
    """No pod ever gets all of a machine: such a DaemonSet runs nowhere."""
    assert planned(WEB, daemon_sets=(make_daemon_set("hog", **asks),)).unplaceable == ()


@pytest.mark.parametrize(
    ("changed", "left"),
    [
        ({}, "13Gi"),
        ({"owner": Owner(kind="DaemonSet", name="agent", uid="other")}, "15Gi"),
        ({"namespace": "tenant"}, "15Gi"),
        ({"phase": "Pending"}, "15Gi"),
        ({"deleting": True}, "15Gi"),
        ({"memory": "0.5Gi"}, "15Gi"),
    ],
)
def test_daemon_whose_pods_ask_for_more_than_its_template_takes_that(
    changed: dict[str, Any], left: str
) -> None:
    """A node would be bought for a pod that the overhead of its RuntimeClass leaves no room for."""
    agent = replace(make_daemon_set("agent", memory="1Gi"), uid="u")
    owner = Owner(kind="DaemonSet", name="agent", uid="u")
    own = {"namespace": "kube-system", "owner": owner, "memory": "3Gi", **changed}
    pods = [make_pod(f"agent-{i}", node="elsewhere", **own) for i in range(2)]
    assert offered(FLEET, make_node("elsewhere"), *pods, daemon_sets=(agent,)) == left


def test_daemon_is_no_larger_than_the_least_of_its_pods() -> None:
    """A tenant writes one large pod that names it as its owner."""
    agent = replace(make_daemon_set("agent", memory="1Gi"), uid="u")
    owner = Owner(kind="DaemonSet", name="agent", uid="u")
    pods = [
        make_pod(f"agent-{asks}", "kube-system", node="elsewhere", owner=owner, memory=asks)
        for asks in ("2Gi", "12Gi")
    ]
    assert offered(FLEET, make_node("elsewhere"), *pods, daemon_sets=(agent,)) == "14Gi"


def test_daemon_that_fits_what_nodes_show_is_taken_off() -> None:
    """What nodes offer is known exactly where there are some."""
    node = make_node("n", FLEET, allocatable=amounts(cpu=4, memory="15Gi", pods=20))
    assert offered(FLEET, node, daemon_sets=(make_daemon_set(memory="15Gi"),)) == "0"
    assert offered(FLEET, node, daemon_sets=(make_daemon_set(memory="15.1Gi"),)) == "15Gi"


def test_of_daemons_that_do_not_fit_together_the_highest_priority_runs() -> None:
    """Each of them alone would fit; what they ask for together no node has."""
    large = make_daemon_set("a", memory="9Gi")
    system = make_daemon_set("b", memory="8Gi", priority=2_000_001_000)
    small = make_daemon_set("c", memory="2Gi")
    assert offered(FLEET, daemon_sets=(large, system, small)) == "6Gi"


def test_storage_of_which_no_amount_is_known_is_enough_for_all_daemons() -> None:
    """Only the first that asked for some counted: nodes were bought for pods that do not fit."""
    disk = {"ephemeral-storage": "1Gi"}
    sets = tuple(make_daemon_set(name, memory="4Gi", requests=disk) for name in "ab")
    assert offered(FLEET, daemon_sets=sets) == "8Gi"


def test_daemons_take_no_more_pod_slots_than_there_are() -> None:
    """Two hundred DaemonSets that ask for nothing are two hundred pods all the same."""
    sets = tuple(make_daemon_set(f"d{i:03}", cpu="0", memory="0") for i in range(200))
    detail = refusal(planned(WEB, daemon_sets=sets))
    told = "20 DaemonSets take 20 there, kube-system/d000 1 of it"
    assert detail == f"requests 1 pods, a new node offers 0: {told}"


def test_refusal_names_the_daemon_that_takes_the_room() -> None:
    """Nobody could tell why a new node of 4 CPUs offers almost none."""
    detail = refusal(planned(WEB, daemon_sets=(make_daemon_set("hog", cpu="3500m"),)))
    assert detail == (
        "requests 1, a new node offers 500m: DaemonSet kube-system/hog takes 3500m there"
    )
    small = make_daemon_set("log", cpu="100m")
    detail = refusal(planned(WEB, daemon_sets=(small, make_daemon_set("hog", cpu="3500m"))))
    assert detail.endswith("2 DaemonSets take 3600m there, kube-system/hog 3500m of it")
    too_large = make_pod("web", cpu="8")
    assert refusal(planned(too_large, daemon_sets=(small,))).endswith("offers 3900m")


def test_host_port_is_taken_by_the_daemon_that_runs() -> None:
    """A DaemonSet that no node has room for holds no port."""
    web = replace(WEB, spec=replace(WEB.spec, host_ports=(HTTPS,)))
    ingress = make_daemon_set("ingress", cpu="1", host_ports=(HTTPS,))
    detail = refusal(planned(web, daemon_sets=(ingress,)))
    expected = (
        "wants host port TCP/443, which DaemonSet kube-system/ingress takes on every new node"
    )
    assert detail == expected
    hog = make_daemon_set("hog", cpu="1000", host_ports=(HTTPS,))
    assert planned(web, daemon_sets=(hog,)).unplaceable == ()


def test_second_daemon_with_the_same_host_port_takes_nothing() -> None:
    """Only one of them can run on a node."""
    first = make_daemon_set("a", memory="2Gi", host_ports=(HTTPS,))
    second = make_daemon_set("b", memory="8Gi", host_ports=(replace(HTTPS, address="10.0.0.1"),))
    assert offered(FLEET, daemon_sets=(first, second)) == "14Gi"


def test_daemon_set_whose_pods_are_forbidden_takes_nothing() -> None:
    """A ResourceQuota forbids them, and no node ever has one."""
    forbidden = replace(make_daemon_set("half", memory="8Gi"), makes_no_pods=True)
    assert offered(FLEET, daemon_sets=(forbidden,)) == "16Gi"


def apart_from(*lines: Requirement, **more: Any) -> PodAffinityTerm:
    """Anti-affinity to pods by their labels."""
    selector = LabelSelector(match_expressions=lines)
    return PodAffinityTerm(topology_key=HOSTNAME, selector=selector, **more)


EVERYWHERE = {"namespace_selector": LabelSelector()}
BY_NAME = Requirement(key="kubernetes.io/metadata.name", operator="In", values=("kube-system",))
OF_THE_SYSTEM = {"namespace_selector": LabelSelector(match_expressions=(BY_NAME,))}
OF_OTHERS = {"namespaces": frozenset({"other"})}
NO_CNI = Requirement(key="app", operator="NotIn", values=("cni",))


@pytest.mark.parametrize(
    ("term", "runs"),
    [
        (apart_from(**EVERYWHERE), False),
        (apart_from(**OF_THE_SYSTEM), False),
        (apart_from(namespaces=frozenset({"kube-system"})), False),
        (apart_from(NO_CNI, **EVERYWHERE), True),
        (apart_from(**OF_OTHERS), True),
        (apart_from(), True),
        (replace(apart_from(**EVERYWHERE), topology_key="rack"), True),
    ],
)
def test_daemon_that_shares_no_node_with_the_system_runs_nowhere(
    term: PodAffinityTerm, *, runs: bool
) -> None:
    """It would keep every pod of every tenant off every new node."""
    cni = make_daemon_set("cni", cpu="50m", memory="0", priority=2_000_001_000)
    cni = replace(cni, labels=FrozenMap({"app": "cni"}))
    loner = make_daemon_set("loner", memory="8Gi", pod_anti_affinity=(term,))
    loner = replace(loner, namespace="tenant")
    assert offered(FLEET, daemon_sets=(loner, cni)) == ("8Gi" if runs else "16Gi")
    if not runs:
        assert planned(WEB, daemon_sets=(loner, cni)).unplaceable == ()


def test_daemon_that_the_system_keeps_off_runs_nowhere() -> None:
    """Anti-affinity of what runs counts against what comes."""
    cni = make_daemon_set(
        "cni", memory="0", priority=2_000_001_000, pod_anti_affinity=(apart_from(**EVERYWHERE),)
    )
    log = replace(make_daemon_set("log", memory="8Gi"), namespace="tenant")
    assert offered(FLEET, daemon_sets=(cni, log)) == "16Gi"


def claims_to_be_a_daemon(**changed: Any) -> Pod:
    """A pod that names a DaemonSet as its controller."""
    pod = make_pod("hog-1", "tenant", owner="DaemonSet", memory="8Gi", node="foreign")
    return replace(pod, **changed)


FOREIGN = make_node("foreign")


@pytest.mark.parametrize(
    "changed",
    [{"node_name": None, "phase": "Pending", "gated": True}, {"phase": "Pending"},
     {"deleting": True}, {"phase": "Succeeded"}],
)  # fmt: skip
def test_pod_that_runs_nowhere_stands_for_no_daemon_set(changed: dict[str, Any]) -> None:
    """One pod that waits for ever and names a DaemonSet would end scale-up."""
    assert offered(FLEET, FOREIGN, claims_to_be_a_daemon(**changed)) == "16Gi"
    assert offered(FLEET, FOREIGN, claims_to_be_a_daemon()) == "8Gi"


def test_pods_stand_for_no_daemon_set_where_these_are_listed() -> None:
    """The API server lists them all: what a pod says of its owner is only what it says."""
    log = make_daemon_set("log", memory="1Gi")
    assert offered(FLEET, FOREIGN, claims_to_be_a_daemon(), daemon_sets=(log,)) == "15Gi"


def test_pods_stand_for_a_daemon_set_that_cannot_be_read() -> None:
    """It runs on every node all the same."""
    log = make_daemon_set("log", memory="1Gi")
    pod = claims_to_be_a_daemon()
    assert pod.owner is not None
    unreadable = Ignored(
        code="unreadable", kind="DaemonSet", namespace="tenant", name=pod.owner.name
    )
    found = offered(FLEET, FOREIGN, pod, daemon_sets=(log,), ignored=(unreadable,))
    assert found == "7Gi"
