"""Which pods count, and for which sector (docs/scale-up.md)."""

from typing import Any

import pytest
from typing_extensions import override

from reconciler.model.cluster import Owner, Pod, PodSpec
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.model.selectors import NodeSelector, NodeSelectorTerm, Requirement
from reconciler.planner.demand import SECTOR, wanted_values
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from tests.builders import (
    make_fleet_settings,
    make_node,
    make_pod,
    make_settings,
    make_snapshot,
    requiring,
)

PRIMARY = make_fleet_settings("small", "primary")
OTHER = make_fleet_settings("large", "other", cpu=16, memory="64Gi")
SETTINGS = make_settings(PRIMARY, OTHER)


def told(made: Plan) -> str:
    """What the plan says of its one pod: a fleet, a node, `ignored: CODE` or a reason's code."""
    if made.ignored:
        return f"ignored: {made.ignored[0].code}"
    if made.unplaceable:
        return made.unplaceable[0].reasons[0].code
    return str(made.placements[0].fleet or made.placements[0].node)


def outcome(pod: Pod, settings: PlannerSettings = SETTINGS) -> str:
    """What becomes of a pod in an empty cluster."""
    return told(plan(make_snapshot(pod), settings))


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"owner": "DaemonSet"}, "daemonset"),
        ({"owner": "Node", "mirror": True}, "mirror"),
        ({"gated": True}, "gated"),
        ({"deleting": True}, "deleting"),
        ({"phase": "Succeeded"}, "finished"),
        ({"phase": "Failed"}, "finished"),
        ({"namespace": "kube-system"}, "kube-system"),
        ({"left_to_scheduler": True}, "other-scheduler"),
        ({"scheduler_name": "fargate-scheduler"}, "other-scheduler"),
        ({"scheduler_name": "fargate-scheduler", "namespace": "kube-system"}, "other-scheduler"),
    ],
)
def test_pod_that_never_causes_capacity_is_ignored_with_its_code(
    changed: dict[str, Any], code: str
) -> None:
    """Nodes would be bought for pods that cannot or must not wait for them."""
    made = plan(make_snapshot(make_pod(**changed)), SETTINGS)
    assert told(made) == f"ignored: {code}"
    assert made.actions == ()
    assert (made.placements, made.unplaceable) == ((), ())


def test_pod_that_its_own_scheduler_refuses_asks_for_a_node() -> None:
    """Pods of Volcano or YuniKorn would wait for ever."""
    assert outcome(make_pod(scheduler_name="volcano")) == "primary-small"


def test_pod_without_sector_and_default_is_ignored() -> None:
    """Pods of other schedulers' clusters would be given nodes of ours."""
    assert outcome(make_pod(), make_settings(PRIMARY, default_sector=None)) == "ignored: no-sector"


@pytest.mark.parametrize(
    "changed", [{"sector": "primary"}, {"node_selector": {"fleet": "primary-small"}}]
)
def test_pod_that_names_its_place_needs_no_default_sector(changed: dict[str, Any]) -> None:
    """Explicit pods would be dropped with the implicit ones."""
    settings = make_settings(PRIMARY, default_sector=None)
    assert outcome(make_pod(**changed), settings) == "primary-small"


def test_pod_that_names_only_a_size_is_of_the_default_sector() -> None:
    """`size` alone says nothing of a sector: it is the default one's, or nobody's."""
    pod = make_pod(node_selector={"size": "small"})
    assert outcome(pod) == "primary-small"
    assert outcome(pod, make_settings(PRIMARY, default_sector=None)) == "ignored: no-sector"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, "primary-small"),
        ({"sector": "other"}, "other-large"),
        ({"node_selector": {"fleet": "other-large"}}, "other-large"),
        ({"node_affinity": requiring("sector", "In", "other")}, "other-large"),
        ({"node_affinity": requiring("fleet", "In", "other-large")}, "other-large"),
        ({"sector": "absent"}, "no-sector"),
        ({"node_affinity": requiring("sector", "In", "absent")}, "no-sector"),
        ({"node_affinity": requiring("sector", "In", "absent", "other")}, "other-large"),
        ({"sector": "other", "node_selector": {"fleet": "primary-small"}}, "node-selector"),
        ({"node_affinity": requiring("sector", "NotIn", "other")}, "primary-small"),
    ],
)
def test_sector_is_the_one_named_else_the_fleets_else_the_default(
    changed: dict[str, Any], expected: str
) -> None:
    """Pods would land on, and be billed to, the wrong sector."""
    assert outcome(make_pod(**changed)) == expected


def test_terms_that_name_different_sectors_may_use_either() -> None:
    """Only the first alternative of an affinity would count."""
    terms = tuple(
        NodeSelectorTerm(expressions=(Requirement(key="sector", operator="In", values=(v,)),))
        for v in ("primary", "other")
    )
    pod = make_pod(cpu=8, node_affinity=NodeSelector(terms=terms))
    assert outcome(pod) == "other-large"


@pytest.mark.parametrize(
    "selector", [{"sector": "primary"}, {"fleet": "primary-small"}, {"size": "small"}]
)
def test_kube_system_pod_that_names_ours_counts(selector: dict[str, str]) -> None:
    """CoreDNS pinned to a sector would never get its node."""
    pod = make_pod(namespace="kube-system", node_selector=selector)
    assert outcome(pod) == "primary-small"


def test_other_namespaces_are_no_demand_but_hold_their_nodes() -> None:
    """With --pod-namespace the loop would act for tenants that are not its own."""
    settings = make_settings(PRIMARY, pod_namespace="mine")
    node = make_node("n", PRIMARY)
    runs = make_pod("runs", "theirs", node="n", cpu=4)
    waits = make_pod("waits", "theirs")
    mine = make_pod("mine", "mine")
    made = plan(make_snapshot(node, runs, waits, mine), settings)
    assert [(p.pod.name, p.new_node) for p in made.placements] == [("mine", 0)]
    assert made.unplaceable == ()


def test_without_sectors_every_pod_belongs_to_the_nameless_one() -> None:
    """A config without sectors would plan nothing at all."""
    fleet = make_fleet_settings("small", "", name="group")
    settings = make_settings(fleet, default_sector=None)
    assert outcome(make_pod(), settings) == "group"


def test_unschedulable_or_not_yet_seen_by_the_scheduler_counts_alike() -> None:
    """Scale-up would wait for the scheduler's verdict, a minute on a busy cluster."""
    assert outcome(make_pod(owner=Owner(kind="Job", name="j"))) == "primary-small"


def test_pod_with_an_unreadable_spec_asks_for_nothing() -> None:
    """A node would be bought for a pod of unknown size."""
    made = plan(make_snapshot(make_pod(unreadable=True)), SETTINGS)
    assert (made.actions, made.placements, made.unplaceable) == ((), (), ())


def test_names_of_unknown_sectors_are_reported_with_those_that_exist() -> None:
    """A typing error in a sector's name would look like a lack of capacity."""
    made = plan(make_snapshot(make_pod(sector="absent")), SETTINGS)
    assert made.unplaceable[0].reasons[0].detail == (
        "names sector absent; the config has: primary, other"
    )


def test_name_of_an_unknown_fleet_is_not_called_a_sector() -> None:
    """Its owner would look for a sector that the pod does not name."""
    pod = make_pod(node_selector={"fleet": "primary-huge"})
    (reason,) = plan(make_snapshot(pod), SETTINGS).unplaceable[0].reasons
    assert reason.code == "no-sector"
    assert reason.detail == "names fleet primary-huge; the config has no such fleet"


class Counted(str):
    """A name that counts how often one is compared with another."""

    __slots__ = ()
    comparisons = 0
    __hash__ = str.__hash__

    @override
    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return str.__eq__(self, other)


def test_thousands_of_named_sectors_are_not_compared_with_each_other() -> None:
    """Two hundred pods that each name 4,096 sectors made every plan take ten seconds."""
    values = tuple([Counted(f"s{i}") for i in range(1000)])
    lines = (Requirement(key=SECTOR, operator="In", values=(*values, *values[:3])),)
    terms = (NodeSelectorTerm(expressions=lines),)
    spec = PodSpec(requests=FrozenMap(), node_affinity=NodeSelector(terms=terms))
    Counted.comparisons = 0
    assert wanted_values(spec, SECTOR) == values
    assert Counted.comparisons < 2 * len(values) + 100
