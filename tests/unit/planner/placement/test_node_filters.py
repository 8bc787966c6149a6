"""Filters that read one pod and one node: affinity, taints, readiness, resources, ports."""

from typing import Any

import pytest

from reconciler.model.cluster import HostPort, Taint, TaintEffect, Toleration
from reconciler.model.selectors import (
    NodeSelector,
    NodeSelectorTerm,
    Operator,
    Requirement,
)
from tests.builders import amounts, make_node, make_pod
from tests.unit.planner.placement.fitting import fits, places

ANY = "0.0.0.0"  # noqa: S104 - every address of a node


def term(*lines: tuple[str, Operator, tuple[str, ...]]) -> NodeSelectorTerm:
    """A term of requirements on labels."""
    return NodeSelectorTerm(
        expressions=tuple(Requirement(key=k, operator=o, values=v) for k, o, v in lines)
    )


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, True),
        ({"disk": "ssd"}, True),
        ({"disk": "hdd"}, False),
        ({"absent": ""}, False),
        ({"disk": "ssd", "absent": "x"}, False),
    ],
)
def test_node_selector_wants_every_label(selector: dict[str, str], expected: bool) -> None:
    """Pods would be promised nodes that the scheduler refuses."""
    node = make_node("n", labels={"disk": "ssd", "gen": "5"})
    assert fits(make_pod(node_selector=selector), node) == expected


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ((term(("disk", "In", ("ssd", "nvme"))),), True),
        ((term(("disk", "In", ("hdd",))),), False),
        ((term(("disk", "NotIn", ("hdd",))),), True),
        ((term(("absent", "NotIn", ("x",))),), True),
        ((term(("disk", "Exists", ())),), True),
        ((term(("absent", "Exists", ())),), False),
        ((term(("absent", "DoesNotExist", ())),), True),
        ((term(("disk", "DoesNotExist", ())),), False),
        ((term(("gen", "Gt", ("4",))),), True),
        ((term(("gen", "Gt", ("5",))),), False),
        ((term(("gen", "Lt", ("6",))),), True),
        ((term(("disk", "Gt", ("4",))),), False),
        ((term(("gen", "Gt", ("four",))),), False),
        ((term(("gen", "Gt", ("4.5",))),), False),
        ((term(("gen", "Gt", ("-3",))),), True),
        ((term(("gen", "Lt", ("9223372036854775807",))),), True),
        ((term(("gen", "Lt", ("9223372036854775808",))),), False),
        ((term(("gen", "Gt", ("1", "2"))),), False),
        ((term(("absent", "Lt", ("6",))),), False),
        ((term(("disk", "In", ("hdd",))), term(("gen", "In", ("5",)))), True),
        ((term(("disk", "In", ("ssd",)), ("gen", "In", ("4",))),), False),
        ((term(),), False),
        ((), False),
        ((term(), term(("disk", "Exists", ()))), True),
    ],
)
def test_node_affinity_follows_the_operators_of_kubernetes(
    terms: tuple[NodeSelectorTerm, ...], expected: bool
) -> None:
    """One operator read differently and its pods wait for ever beside bought nodes."""
    node = make_node("n", labels={"disk": "ssd", "gen": "5"})
    assert fits(make_pod(node_affinity=NodeSelector(terms=terms)), node) == expected


@pytest.mark.parametrize(("name", "expected"), [("n", True), ("m", False)])
def test_node_affinity_by_name_reads_the_field(name: str, expected: bool) -> None:
    """Pods pinned to one node would be placed on any."""
    field = Requirement(key="metadata.name", operator="In", values=(name,))
    affinity = NodeSelector(terms=(NodeSelectorTerm(fields=(field,)),))
    assert fits(make_pod(node_affinity=affinity), make_node("n")) == expected


@pytest.mark.parametrize(
    ("effect", "toleration", "expected"),
    [
        ("NoSchedule", None, False),
        ("NoExecute", None, False),
        ("PreferNoSchedule", None, True),
        ("NoSchedule", {"key": "k", "value": "v"}, True),
        ("NoSchedule", {"key": "k", "value": "w"}, False),
        ("NoSchedule", {"key": "k", "operator": "Exists"}, True),
        ("NoSchedule", {"key": "other", "operator": "Exists"}, False),
        ("NoSchedule", {"operator": "Exists"}, True),
        ("NoSchedule", {"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ("NoExecute", {"key": "k", "value": "v", "effect": "NoExecute"}, True),
        ("NoSchedule", {"key": "k", "operator": "", "value": "v"}, True),
    ],
)
def test_hard_taints_want_a_toleration(
    effect: TaintEffect, toleration: dict[str, str] | None, expected: bool
) -> None:
    """Pods would be sent to dedicated nodes, or kept off their own."""
    node = make_node("n", taints=(Taint(key="k", value="v", effect=effect),))
    tolerations = () if toleration is None else (Toleration(**toleration),)
    assert fits(make_pod(tolerations=tolerations), node) == expected


def test_every_taint_wants_its_own_toleration() -> None:
    """The second taint would be overlooked."""
    taints = (Taint(key="a", effect="NoSchedule"), Taint(key="b", effect="NoSchedule"))
    pod = make_pod(tolerations=(Toleration(key="a", operator="Exists"),))
    assert not fits(pod, make_node("n", taints=taints))


@pytest.mark.parametrize(
    "changed",
    [
        {"ready": False},
        {"unschedulable": True},
        {"unreadable": True},
        {"deleting": True},
        {"draining": True},
    ],
)
def test_node_that_takes_nothing_new_takes_no_pod(changed: dict[str, Any]) -> None:
    """Pods would be promised a node that is on its way out or was never in."""
    assert not fits(make_pod(), make_node("n", **changed))


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({"cpu": "1", "memory": "1Gi"}, True),
        ({"cpu": "1001m", "memory": "1Gi"}, False),
        ({"cpu": "0", "memory": "1025Mi"}, False),
        ({"cpu": "0", "memory": "0"}, True),
        ({"cpu": "1", "requests": {"example.com/fpga": 1}}, True),
        ({"cpu": "1", "requests": {"example.com/fpga": 2}}, False),
        ({"cpu": "1", "requests": {"example.com/other": 1}}, False),
        ({"cpu": "1", "requests": {"ephemeral-storage": "1Gi"}}, True),
        ({"cpu": "1", "requests": {"ephemeral-storage": "2Gi"}}, False),
        ({"cpu": "1", "requests": {"hugepages-2Mi": "64Mi"}}, True),
    ],
)
def test_every_resource_must_fit_beside_what_runs(pod: dict[str, Any], expected: bool) -> None:
    """A resource that is not looked at overcommits nodes; one too many wastes them."""
    allocatable = amounts(
        cpu=2, memory="2Gi", pods=3, ephemeral_storage="1Gi", hugepages_2Mi="64Mi"
    )
    allocatable = type(allocatable)({**allocatable, "example.com/fpga": 1})
    runs = make_pod("runs", node="n", cpu="1", memory="1Gi")
    assert fits(make_pod(**pod), make_node("n", allocatable=allocatable), runs) == expected


def test_only_what_a_pod_asks_for_is_looked_at() -> None:
    """A node overcommitted in memory still takes pods that ask for none, as the scheduler does."""
    node = make_node("n", allocatable=amounts(cpu=2, memory="1Gi", pods=5))
    runs = make_pod("runs", node="n", cpu="1", memory="3Gi")
    assert fits(make_pod(cpu="1", memory="0"), node, runs)


@pytest.mark.parametrize(
    ("phase", "expected"), [("Running", False), ("Succeeded", True), ("Failed", True)]
)
def test_finished_pods_hold_nothing(phase: str, expected: bool) -> None:
    """Nodes full of finished Jobs would look full."""
    node = make_node("n", allocatable=amounts(cpu=1, memory="4Gi", pods=5))
    assert (
        fits(make_pod(cpu="1"), node, make_pod("old", node="n", cpu="1", phase=phase)) == expected
    )


@pytest.mark.parametrize(
    ("priority", "preempts", "expected"),
    [(0, True, True), (1000, False, False), (-10, True, False)],
)
def test_room_of_balloon_pods_is_for_pods_that_may_preempt(
    priority: int, preempts: bool, expected: bool
) -> None:
    """kube-scheduler evicts nobody for preemptionPolicy Never: such a pod needs a real node."""
    node = make_node("n", allocatable=amounts(cpu=1, memory="4Gi", pods=5))
    balloon = make_pod("balloon", node="n", cpu="1", priority=-10)
    pod = make_pod(cpu="1", priority=priority, preempts=preempts)
    assert fits(pod, node, balloon) == expected


def test_pod_slots_run_out() -> None:
    """The ENI limit of a node would be overrun by small pods."""
    node = make_node("n", allocatable=amounts(cpu=4, memory="4Gi", pods=2))
    pods = [make_pod(f"p{i}", cpu="1m", memory="1Mi") for i in range(3)]
    assert len(places(node, *pods)) == 2


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ((ANY, "TCP", 80), (ANY, "TCP", 80), False),
        ((ANY, "TCP", 80), (ANY, "UDP", 80), True),
        ((ANY, "TCP", 80), (ANY, "TCP", 81), True),
        ((ANY, "TCP", 80), ("10.0.0.1", "TCP", 80), False),
        (("10.0.0.1", "TCP", 80), (ANY, "TCP", 80), False),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), False),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), True),
    ],
)
def test_host_ports_collide_by_port_protocol_and_address(
    first: tuple[str, str, int], second: tuple[str, str, int], together: bool
) -> None:
    """Two ingress pods would be promised one node."""

    def port(of: tuple[str, str, int]) -> tuple[HostPort, ...]:
        return (HostPort(address=of[0], protocol=of[1], port=of[2]),)

    runs = make_pod("runs", node="n", host_ports=port(first))
    assert fits(make_pod(host_ports=port(second)), make_node("n"), runs) == together
    waits = make_pod("waits", host_ports=port(first))
    both = places(make_node("n"), waits, make_pod(host_ports=port(second)))
    assert len(both) == (2 if together else 1)


def test_pod_that_names_one_port_twice_does_not_collide_with_itself() -> None:
    """kube-scheduler compares a pod's ports with those of others: it would bind this one."""
    twice = (
        HostPort(address=ANY, protocol="TCP", port=80),
        HostPort(address="10.0.0.1", protocol="TCP", port=80),
    )
    pod = make_pod(host_ports=twice)
    assert fits(pod, make_node("n"))
    other = HostPort(address="10.0.0.2", protocol="TCP", port=80)
    assert not fits(pod, make_node("n"), make_pod("runs", node="n", host_ports=(other,)))
