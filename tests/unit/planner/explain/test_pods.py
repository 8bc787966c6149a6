"""`--explain` for pods: the code, the numbers, and changes that really place the pod."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from reconciler.model.cluster import Pod, Taint
from reconciler.model.errors import UsageError
from reconciler.model.selectors import NodeSelector
from reconciler.model.snapshot import Snapshot
from reconciler.planner.explain.answers import PodExplanation
from reconciler.planner.explain.explain import explain
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from reconciler.planner.system_reserve import SystemReserve
from tests.builders import (
    HOSTNAME,
    ZONE,
    amounts,
    capacity_error,
    labelled,
    make_cloud,
    make_daemon_set,
    make_fleet,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
    near,
    requiring,
    spread,
)

DEDICATED = Taint(key="dedicated", value="db", effect="NoSchedule")


def explained(snapshot: Snapshot, settings: PlannerSettings, pod: str = "ns/pod") -> PodExplanation:
    """The explanation of one pod."""
    made = plan(snapshot, settings)
    return explain(snapshot, settings, made, pods=[pod]).pods[0]


def of_small(pod: Pod, **fleet: Any) -> PodExplanation:
    """The explanation of a pod on an empty cluster with one small fleet."""
    settings = make_settings(make_fleet_settings("small", **fleet))
    return explained(make_snapshot(pod), settings)


def test_too_much_memory_names_the_largest_request_and_the_size_that_would_do() -> None:
    """`insufficient-memory` alone leaves the reader to look the numbers up."""
    found = of_small(make_pod(memory="300Gi"), memory="28Gi")
    assert found.verdict == "unplaceable"
    assert found.fleets[0].code == "insufficient-memory"
    assert found.change == ("lower the pod's memory request to 28Gi",)
    assert found.fleets[0].ways[1] == (
        "add a size to the sector of primary-small whose nodes offer at least 300Gi memory",
    )


@pytest.mark.parametrize(
    ("cpu", "memory", "advice"),
    [
        ("3500m", "1Gi", ("lower reserved_cpus to 500m",)),
        ("1", "14Gi", ("lower reserved_memory to 2Gi",)),
        ("3500m", "14Gi", ("lower reserved_cpus to 500m", "lower reserved_memory to 2Gi")),
    ],
)
def test_reserve_that_keeps_a_pod_off_is_to_be_lowered(
    cpu: str, memory: str, advice: tuple[str, ...]
) -> None:
    """Nodes have the room that the pod needs: the advice was to buy a larger size."""
    reserve = amounts(cpu=1, memory="4Gi")
    settings = make_settings(make_fleet_settings("small"), reserve=SystemReserve(amounts=reserve))
    pod = make_pod(cpu=cpu, memory=memory)
    assert advice in explained(make_snapshot(pod), settings).fleets[0].ways
    lower = SystemReserve(amounts=amounts(cpu="500m", memory="2Gi"))
    settings = make_settings(make_fleet_settings("small"), reserve=lower)
    assert not plan(make_snapshot(pod), settings).unplaceable


@pytest.mark.parametrize(("cpu", "daemon_cpu"), [("3950m", "1m"), ("3500m", "500m"), ("5", "1m")])
def test_reserve_is_not_to_be_lowered_below_what_system_and_daemons_take(
    cpu: str, daemon_cpu: str
) -> None:
    """A node would be bought, and the pod wait on."""
    reserve = SystemReserve(amounts=amounts(cpu=1, memory="4Gi"))
    settings = make_settings(make_fleet_settings("small"), reserve=reserve)
    daemon = make_daemon_set(cpu=daemon_cpu, memory="1Mi")
    found = explained(make_snapshot(make_pod(cpu=cpu), daemon_sets=(daemon,)), settings)
    assert found.fleets[0].code == "insufficient-cpu"
    assert found.fleets[0].ways[1][0].startswith("add a size to the sector of primary-small")


def test_found_groups_have_no_sector_to_which_a_size_could_be_added() -> None:
    """A config with `cluster` alone has no sectors."""
    found = of_small(make_pod(memory="300Gi"), sector="", provider="asg")
    assert found.fleets[0].ways[1] == ("add a group whose nodes offer at least 300Gi memory",)


def test_lowered_request_places_the_pod() -> None:
    """Advice that does not work costs a deployment."""
    settings = make_settings(make_fleet_settings("small", memory="28Gi"))
    assert not plan(make_snapshot(make_pod(memory="28Gi")), settings).unplaceable


def test_smallest_change_is_the_one_that_takes_least_away() -> None:
    """Of two sizes that are too small the larger one is nearer to what the pod wants."""
    fleets = [make_fleet_settings("small", memory="8Gi"), make_fleet_settings("big", memory="64Gi")]
    found = explained(make_snapshot(make_pod(memory="300Gi")), make_settings(*fleets))
    assert found.change == ("lower the pod's memory request to 64Gi",)


def test_lowered_request_is_never_rounded_up() -> None:
    """A request of 2Gi does not fit a node that offers a little less."""
    found = of_small(make_pod(memory="8Gi"), memory="2038.5Mi")
    assert found.change == ("lower the pod's memory request to 2038Mi",)


def test_every_lowered_resource_is_a_change_of_its_own() -> None:
    """Three requests to lower are more to ask than one new size."""
    found = of_small(make_pod(cpu=64, memory="300Gi", requests={"nvidia.com/gpu": 1}))
    assert found.change[0].startswith("add a size")
    assert found.fleets[0].ways[1] == (
        "lower the pod's cpu request to 4",
        "lower the pod's memory request to 16Gi",
        "ask for no nvidia.com/gpu",
    )


def test_fleet_at_its_maximum_names_the_next_one() -> None:
    """The number must count what the fleet will have, not what it has."""
    fleet = make_fleet_settings("small", max_capacity=2)
    pods = make_pods(3, cpu=4)
    found = explained(make_snapshot(*pods), make_settings(fleet), "ns/pod-2")
    assert found.fleets[0].code == "max-capacity"
    assert found.change == ("raise max_capacity of primary-small to 3",)
    raised = make_settings(replace(fleet, max_capacity=3))
    assert not plan(make_snapshot(*pods), raised).unplaceable


def test_taint_is_to_be_tolerated_or_taken_off() -> None:
    """Both sides of a refusal can give way; the pod's is the smaller change."""
    found = of_small(make_pod(), taints=(DEDICATED,))
    assert found.fleets[0].ways == (
        ("tolerate dedicated=db:NoSchedule",),
        ("take the taint dedicated=db:NoSchedule off primary-small",),
    )


def test_label_that_a_fleet_may_carry_is_given_to_it() -> None:
    """A selector is mostly meant: the fleet lacks the label."""
    found = of_small(make_pod(node_selector={"disk": "ssd"}))
    assert found.change == ("give primary-small the label disk=ssd",)


def test_size_label_is_never_given_to_a_fleet() -> None:
    """The config refuses our own labels in `labels`."""
    found = of_small(make_pod(node_selector={"size": "huge"}))
    assert found.change == ("drop size=huge from the pod's nodeSelector",)


def test_zone_that_the_fleet_does_not_promise_is_given_to_a_fleet() -> None:
    """A pod that must be in one zone waits for ever on a fleet of several."""
    pod = make_pod(node_selector={ZONE: "us-west-2b"})
    found = of_small(pod, zones=("us-west-2a", "us-west-2b"))
    assert found.fleets[0].code == "zone"
    assert found.change == ("give a fleet like primary-small `zone: us-west-2b`",)
    there = make_settings(make_fleet_settings("small", zone="us-west-2b"))
    assert not plan(make_snapshot(pod), there).unplaceable


def test_node_affinity_names_the_expression_that_fails() -> None:
    """Dropping the whole affinity would be more than is needed."""
    found = of_small(make_pod(node_affinity=requiring("gpu", "In", "a100")))
    assert found.change == ("drop gpu In (a100) from the pod's required node affinity",)


def test_node_affinity_of_which_no_line_of_a_term_would_be_left_is_dropped_as_a_whole() -> None:
    """Without its only line the term selects no node, and the other term none of this fleet."""
    lines = [requiring("disk", "Exists").terms, requiring("size", "NotIn", "small").terms]
    pod = make_pod(node_affinity=NodeSelector(terms=(*lines[0], *lines[1])))
    assert of_small(pod).change == ("drop the pod's required node affinity",)


def test_two_obstacles_are_lifted_together() -> None:
    """One change that is not enough is no answer."""
    found = of_small(make_pod(cpu=16), taints=(DEDICATED,))
    assert found.change == ("tolerate dedicated=db:NoSchedule", "lower the pod's cpu request to 4")


def test_cost_limit_names_the_least_that_pays_for_the_node() -> None:
    """A budget is raised once, not by trial."""
    settings = make_settings(make_fleet_settings("small"), usd_per_hour_max=Decimal("0.05"))
    found = explained(make_snapshot(make_pod()), settings)
    assert found.fleets[0].code == "max-cost"
    assert found.change == ("raise max_hourly_usd to 0.1000",)


def test_unavailable_fleet_is_to_be_waited_for() -> None:
    """No setting makes capacity that EC2 does not have."""
    fleet = make_fleet_settings("small")
    live = make_fleet(fleet, launch_errors=(capacity_error(),))
    found = explained(make_snapshot(make_pod(), cloud=make_cloud(live)), make_settings(fleet))
    assert found.fleets[0].code == "fleet-unavailable"
    assert found.change[0].startswith("wait for primary-small: InsufficientInstanceCapacity")


def test_anti_affinity_against_its_own_replicas_is_named() -> None:
    """The third replica over two zones can go nowhere: the other two hold the rule against it."""
    fleets = [make_fleet_settings("small", zone=f"us-west-2{z}") for z in "ab"]
    pods = make_pods(3, labels={"app": "db"}, pod_anti_affinity=(near(ZONE, app="db"),))
    found = explained(make_snapshot(*pods), make_settings(*fleets), "ns/pod-2")
    assert {f.code for f in found.fleets} == {"pod-anti-affinity"}
    assert found.change == ("add a fleet like primary-small-us-west-2a in another zone",)
    fleets.append(make_fleet_settings("small", zone="us-west-2c"))
    assert not plan(make_snapshot(*pods), make_settings(*fleets)).unplaceable


def test_anti_affinity_that_only_the_pod_holds_is_to_be_relaxed() -> None:
    """The pod's own rule gives way where nobody holds one against it."""
    fleet = make_fleet_settings("small", zone="us-west-2a", max_capacity=1)
    node = make_node("n1", fleet, unschedulable=True)
    other = make_pod("cache", node="n1", labels={"app": "cache"})
    pod = make_pod(pod_anti_affinity=(near(ZONE, app="cache"),))
    found = explained(make_snapshot(node, other, pod), make_settings(fleet))
    assert found.change == (
        f"make the pod anti-affinity over {ZONE} preferred",
        "raise max_capacity of primary-small-us-west-2a to 2",
    )


def test_spread_that_cannot_be_kept_is_named() -> None:
    """A minDomains beyond the zones there are blocks every pod after the first."""
    fleet = make_fleet_settings("small", zone="us-west-2a")
    rule = spread(ZONE, min_domains=3, app="web")
    pods = make_pods(2, labels={"app": "web"}, topology_spread=(rule,))
    found = explained(make_snapshot(*pods), make_settings(fleet), "ns/pod-1")
    assert found.fleets[0].code == "topology-spread"
    assert found.change == (f"make the topology spread over {ZONE} ScheduleAnyway",)


def test_mistyped_sector_is_answered_with_the_nearest_one() -> None:
    """The first of the config, or the cheapest, is seldom the one that was meant."""
    fleets = [make_fleet_settings(name=f"{s}-small", sector=s) for s in ("batch", "primary", "web")]
    found = explained(make_snapshot(make_pod(sector="primry")), make_settings(*fleets))
    assert found.change == ("name sector primary instead of primry in the pod's nodeSelector",)
    found = explained(make_snapshot(make_pod(sector="wbe")), make_settings(*fleets))
    assert found.change == ("name sector web instead of wbe in the pod's nodeSelector",)


def test_unknown_sector_is_answered_with_the_sectors_there_are() -> None:
    """A typo in a sector's name is the commonest reason of all."""
    found = of_small(make_pod(sector="primry"))
    assert found.change == ("name sector primary instead of primry in the pod's nodeSelector",)


def test_unknown_fleet_is_answered_with_one_that_there_is() -> None:
    """A pod without the label is left alone, or gets nodes of the default sector."""
    fleets = make_fleet_settings(sector="web"), make_fleet_settings("small")
    settings = make_settings(*fleets, default_sector=None)
    found = explained(make_snapshot(make_pod(node_selector={"fleet": "primary-huge"})), settings)
    assert found.change == (
        "name fleet primary-small instead of primary-huge in the pod's nodeSelector",
    )


def test_every_fleet_answers_with_its_own_code() -> None:
    """Why not the other fleet is the second question that everyone asks."""
    fleets = [
        make_fleet_settings("small", memory="8Gi"),
        make_fleet_settings("large", memory="64Gi", taints=(DEDICATED,)),
    ]
    found = explained(make_snapshot(make_pod(memory="32Gi")), make_settings(*fleets))
    assert {f.fleet: f.code for f in found.fleets} == {
        "primary-small": "insufficient-memory",
        "primary-large": "taint",
    }


def test_pod_on_an_existing_node_says_what_was_free() -> None:
    """Nobody should have to add up requests by hand."""
    fleet = make_fleet_settings("small")
    snapshot = make_snapshot(make_node("n1", fleet), make_pod())
    found = explained(snapshot, make_settings(fleet))
    assert found.verdict == "placed"
    assert found.because == (
        "n1 exists and takes it by every filter: asks cpu 500m, memory 1Gi; free cpu 4, memory 16Gi"
    )
    assert found.fleets[0].code == "fits"


def test_pod_on_a_new_node_says_why_no_node_takes_it() -> None:
    """A purchase beside nodes that look free needs a reason."""
    fleet = make_fleet_settings("small")
    busy = make_node("n1", fleet, unschedulable=True)
    full = make_node("n2", fleet)
    load = make_pod("load", node="n2", cpu=4)
    found = explained(make_snapshot(busy, full, load, make_pod()), make_settings(fleet))
    assert found.fleets[0].code == "chosen"
    assert dict(found.nodes) == {"insufficient-cpu": 1, "taint": 1}
    assert found.because == (
        "no existing node takes it: the plan buys 1 node of primary-small, and it goes there "
        "(no other pod there); no cheaper purchase exists"
    )
    assert found.fleets[0].detail.endswith(" USD per node-hour")


def test_pod_on_one_of_several_new_nodes_says_on_which_and_with_whom() -> None:
    """`it gets new node 0, shared` does not say how many nodes come, or for how many pods."""
    fleet = make_fleet_settings("small")
    pods = make_pods(4, cpu="1500m", memory="64Mi")
    found = explained(make_snapshot(*pods), make_settings(fleet), str(pods[0].key))
    assert found.because == (
        "no existing node takes it: the plan buys 2 nodes of primary-small, and it goes on new "
        "node 0 (with 1 other pod); no cheaper purchase exists"
    )


def test_fleet_that_was_not_chosen_for_a_placed_pod_says_why() -> None:
    """A placed pod's other fleets either would take it or have their reason."""
    fleets = [
        make_fleet_settings("small"),
        make_fleet_settings("large", cpu=16, price="0.90"),
        make_fleet_settings("tiny", cpu="250m"),
    ]
    found = explained(make_snapshot(make_pod()), make_settings(*fleets))
    assert {f.fleet: f.code for f in found.fleets} == {
        "primary-small": "chosen",
        "primary-large": "fits",
        "primary-tiny": "insufficient-cpu",
    }


def test_running_and_ignored_pods_say_so() -> None:
    """The question is asked about any pod; none may end in a traceback."""
    fleet = make_fleet_settings("small")
    running = make_pod("runs", node="n1", ready=True)
    daemon = make_pod("agent", owner="DaemonSet")
    snapshot = make_snapshot(make_node("n1", fleet), running, daemon)
    assert explained(snapshot, make_settings(fleet), "ns/runs").because == "it runs on n1"
    assert explained(snapshot, make_settings(fleet), "ns/agent").verdict == "ignored"


def test_unknown_pod_is_a_usage_error_with_the_nearest_name() -> None:
    """A slip of the hand gets a hint, not an empty answer."""
    settings = make_settings(make_fleet_settings("small"))
    with pytest.raises(UsageError, match="did you mean ns/pod"):
        explained(make_snapshot(make_pod()), settings, "ns/pot")


def test_explaining_changes_no_plan() -> None:
    """Asking must not alter what is decided: classes asked about are in nobody's way."""
    fleet = make_fleet_settings("small", max_capacity=1)
    rule = near(HOSTNAME, app="db")
    pods = make_pods(3, labels={"app": "db"}, pod_anti_affinity=(rule,))
    snapshot, settings = make_snapshot(*pods), make_settings(fleet)
    before = plan(snapshot, settings)
    explain(snapshot, settings, before, pods=["ns/pod-2"])
    assert plan(snapshot, settings) == before
    assert labelled(app="db") == pods[0].labels


def test_reason_of_a_quarantined_pod_says_what_to_fix() -> None:
    """`no-progress` alone would send its owner to look for room that there is."""
    fleet = make_fleet_settings("small", labels={"team": "data"})
    pod = make_pod(node_selector={"team": "data"}, sector="primary")
    first = make_snapshot(pod, cloud=make_cloud(make_fleet(fleet)))
    (memory,) = plan(first, make_settings(fleet)).demands
    snapshot = make_snapshot(
        pod, cloud=make_cloud(make_fleet(fleet)), demands=(replace(memory, strikes=2),)
    )
    found = explained(snapshot, make_settings(fleet))
    assert (found.verdict, found.fleets[0].code) == ("unplaceable", "no-progress")
    assert found.change == (
        "fix the pod's template or primary-small's nodes: they differ from what was planned",
    )
