"""Pods that ask for more than is planned for: they wait alone, and where they run they count."""

from dataclasses import replace

import pytest

from reconciler.model.cluster import ANY_ADDRESS, HostPort, PodAffinityTerm
from reconciler.model.frozen import FrozenMap
from reconciler.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from reconciler.model.unplaceable import DETAIL_MAX
from reconciler.planner.explain.explain import explain
from reconciler.planner.planner import plan
from reconciler.planner.rules import Subject, Terms, Verdict, rule_on
from tests.builders import (
    HOSTNAME,
    make_fleet_settings,
    make_node,
    make_option,
    make_pod,
    make_settings,
    make_snapshot,
)

EXCESS = "has 8,000 topologySpreadConstraints, at most 16 are planned for"
SMALL = make_fleet_settings("small", cpu="4", memory="16Gi")


def test_pod_beyond_a_limit_is_unplaceable_with_its_own_code() -> None:
    """It would freeze the plan for every tenant, or wait without anybody knowing why."""
    hostile = make_pod("hostile", too_complex=EXCESS)
    snapshot, settings = make_snapshot(hostile, make_pod("other")), make_settings(SMALL)
    made = plan(snapshot, settings)
    (refused,) = made.unplaceable
    assert [(r.code, r.detail, r.fleet) for r in refused.reasons] == [("too-complex", EXCESS, "")]
    assert [p.pod.name for p in made.placements] == ["other"]
    (told,) = explain(snapshot, settings, made, pods=["ns/hostile"]).pods
    assert told.verdict == "unplaceable"
    assert told.because == f"it {EXCESS}: no fleet is asked until it asks for less"


def test_pod_beyond_a_limit_that_is_none_of_ours_is_ignored_as_such() -> None:
    """A pod that other means serve would be reported as one that we refuse."""
    settings = make_settings(SMALL, default_sector=None)
    made = plan(make_snapshot(make_pod(too_complex=EXCESS)), settings)
    assert [i.code for i in made.ignored] == ["no-sector"]
    assert not made.unplaceable


def test_running_pod_beyond_a_limit_takes_its_resources_and_stays() -> None:
    """Its node would be filled twice over, or drained by rules that are known in part only."""
    node = make_node("n", SMALL)
    running = make_pod("r", node="n", cpu="3", too_complex=EXCESS)
    made = plan(make_snapshot(node, running, make_pod("p", cpu="2")), make_settings(SMALL))
    (placed,) = made.placements
    assert placed.node is None
    ruling = rule_on(Subject(pod=running), Terms())
    assert (ruling.verdict, ruling.code) == (Verdict.BLOCK, "too-complex")


def test_pod_whose_devices_and_ports_were_left_out_takes_all_of_its_node() -> None:
    """Others would be promised devices that it holds."""
    option = make_option("gpu.type", "8", "16Gi", 58, example__gpu=4)
    gpus = make_fleet_settings("gpu", options=[option])
    node = make_node("n", gpus)
    other = make_pod("p", cpu="1", requests={"example/gpu": 1})
    settings = make_settings(gpus)
    for takes_all, expected in ((False, "n"), (True, None)):
        running = make_pod("r", node="n", too_complex=EXCESS, takes_all=takes_all)
        (placed,) = plan(make_snapshot(node, running, other), settings).placements
        assert placed.node == expected


def test_anti_affinity_that_stands_for_too_much_keeps_its_namespace_off() -> None:
    """Pods would be promised to a node from which kube-scheduler keeps them off."""
    node = make_node("n", SMALL)
    term = PodAffinityTerm(topology_key=HOSTNAME, selector=LabelSelector())
    running = make_pod(
        "r", "hostile", node="n", cpu="1", too_complex=EXCESS, pod_anti_affinity=(term,)
    )
    own, foreign = make_pod("p", "hostile", cpu="1"), make_pod("p", "peaceful", cpu="1")
    made = plan(make_snapshot(node, running, own, foreign), make_settings(SMALL))
    assert {p.pod.namespace: p.node for p in made.placements} == {"hostile": None, "peaceful": "n"}


def test_reason_stays_short_however_long_what_it_names_is() -> None:
    """Each is kept, logged and sent once per pod and fleet: 50 pods would take gigabytes."""
    line = Requirement(key="disk", operator="In", values=("ssd" * 300_000, *map(str, range(4000))))
    affinity = NodeSelector(terms=(NodeSelectorTerm(expressions=(line,)),))
    sectors = NodeSelector(
        terms=(
            NodeSelectorTerm(
                expressions=(Requirement(key="sector", operator="In", values=("x" * 900_000,)),)
            ),
        )
    )
    pods = [make_pod("disk", node_affinity=affinity), make_pod("sector", node_affinity=sectors)]
    settings = make_settings(SMALL)
    snapshot = make_snapshot(*pods)
    made = plan(snapshot, settings)
    reasons = {r.code: r.detail for unplaceable in made.unplaceable for r in unplaceable.reasons}
    assert reasons.keys() == {"node-affinity", "no-sector"}
    assert max(map(len, reasons.values())) <= DETAIL_MAX
    assert reasons["node-affinity"].startswith("requires disk In (ssdssd")
    told = explain(snapshot, settings, made, pods=["ns/disk", "ns/sector"]).pods
    assert (
        max(
            len(pod_explanation.because) + sum(map(len, pod_explanation.change))
            for pod_explanation in told
        )
        < 4 * DETAIL_MAX
    )


def test_host_ports_of_one_namespace_are_counted_up_to_a_limit_and_others_get_theirs() -> None:
    """Each port is a column of every node: 470 pods made a plan of twenty seconds and 7 GiB."""
    ports = [HostPort(address=ANY_ADDRESS, protocol="TCP", port=p) for p in range(1000, 3048)]
    node = make_node("n", SMALL)
    own = [
        make_pod(
            f"h{at:04}", namespace="hostile", cpu="10m", host_ports=tuple(ports[at : at + 128])
        )
        for at in range(0, len(ports), 128)
    ]
    theirs = [
        make_pod(f"a{port.port}", namespace="team", cpu="10m", memory="1Mi", host_ports=(port,))
        for port in (ports[0], ports[-1])
    ]
    made = plan(make_snapshot(node, *own, *theirs), make_settings(SMALL))
    placed = {p.pod.namespace for p in made.placements}
    assert placed == {"hostile", "team"}
    assert {p.pod.name for p in made.placements if p.pod.namespace == "team"} == {"a1000", "a3047"}
    refused = [u for u in made.unplaceable if u.pod.namespace == "hostile"]
    assert len(refused) == 8
    details = {(r.code, r.detail) for u in refused for r in u.reasons}
    assert details == {
        ("host-port", "its namespace's pods use over 1024 host ports, and no more are counted")
    }


@pytest.mark.parametrize("address", [ANY_ADDRESS, "10.0.0.9"])
def test_host_port_that_is_not_counted_for_its_namespace_is_taken_where_its_pod_runs(
    address: str,
) -> None:
    """Another namespace's pod was given a place there, where kube-scheduler refuses it for good."""
    many = [HostPort(address=ANY_ADDRESS, protocol="TCP", port=p) for p in range(1000, 2024)]
    own = [
        make_pod(f"h{at:04}", namespace="hostile", cpu="10m", host_ports=tuple(many[at : at + 128]))
        for at in range(0, len(many), 128)
    ]
    taken = HostPort(address=address, protocol="TCP", port=9000)
    runs = make_pod("runs", namespace="hostile", cpu="10m", node="n", host_ports=(taken,))
    wanted = "10.0.0.1" if address == ANY_ADDRESS else ANY_ADDRESS
    theirs = make_pod(
        "theirs", namespace="team", cpu="10m", host_ports=(replace(taken, address=wanted),)
    )
    made = plan(make_snapshot(make_node("n", SMALL), *own, runs, theirs), make_settings(SMALL))
    (place,) = [p for p in made.placements if p.pod.name == "theirs"]
    assert place.node != "n"


def test_host_ports_of_waiting_pods_are_counted_before_those_of_running_ones() -> None:
    """The 513th game server with a port of its own for TCP and UDP waited for ever."""

    def both(port: int) -> tuple[HostPort, ...]:
        return tuple(HostPort(address=ANY_ADDRESS, protocol=p, port=port) for p in ("TCP", "UDP"))

    running = [
        make_pod(f"r{n}", namespace="games", cpu="1m", memory="1Mi", node="n", host_ports=both(n))
        for n in range(7000, 7520)
    ]
    waiting = [
        make_pod(name, namespace="games", cpu="1m", memory="1Mi", host_ports=both(port))
        for name, port in (("same", 7000), ("other", 7600))
    ]
    offered = FrozenMap({"cpu": 4000, "memory": 2**34, "pods": 1000})
    node = make_node("n", SMALL, allocatable=offered)
    made = plan(make_snapshot(node, *running, *waiting), make_settings(SMALL))
    assert made.unplaceable == ()
    assert {p.pod.name: p.node for p in made.placements} == {"same": None, "other": "n"}
