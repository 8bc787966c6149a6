"""Labels and taints of a group's next node, as its nodes show or have shown them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.model.cluster import Node, Taint
from reconciler.model.fleet import TEMPLATE_ID_TAG
from reconciler.model.frozen import FrozenMap
from reconciler.model.saved_state import NODE_FACTS_MAX, SavedFleetState
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.planner import decide
from tests.builders import (
    DRAINING,
    NOW,
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_settings,
    make_snapshot,
)

GROUP = make_fleet_settings(provider="asg", auto_scaling_group="workers", managed=False, spot=False)
ML = Taint(key="dedicated", value="ml", effect="NoSchedule")
TEMPLATE = "k8s.io/cluster-autoscaler/node-template"


def status_of(
    *nodes: tuple[Node, str],
    version: str = "2",
    tags: Mapping[str, str] | None = None,
    before: tuple[SavedFleetState, ...] = (),
    hours: float = 0,
    managed: bool = False,
) -> FleetStatus:
    """The group beside nodes of these launch template versions, some time after the clock."""
    return _opened(*nodes, version=version, tags=tags, before=before, hours=hours, managed=managed)[
        0
    ]


def remembered(
    *nodes: tuple[Node, str],
    version: str = "2",
    before: tuple[SavedFleetState, ...] = (),
    hours: float = 0,
) -> tuple[SavedFleetState, ...]:
    """What is kept of the group on the Lease."""
    return _opened(*nodes, version=version, before=before, hours=hours)[1]


def _opened(
    *nodes: tuple[Node, str],
    version: str = "2",
    tags: Mapping[str, str] | None = None,
    before: tuple[SavedFleetState, ...] = (),
    hours: float = 0,
    managed: bool = False,
) -> tuple[FleetStatus, tuple[SavedFleetState, ...]]:
    fleet = make_fleet_settings(
        provider="asg", auto_scaling_group="workers", managed=managed, spot=False
    )
    live = make_fleet(
        fleet,
        len(nodes),
        id="workers",
        launch_template_id="lt-1",
        launch_template_version=version,
        tags=FrozenMap(tags or {}),
    )
    instances = [make_instance(n, live, launch_template_version=own) for n, own in nodes]
    snapshot = make_snapshot(
        *(node for node, _ in nodes),
        cloud=make_cloud(live, instances=instances),
        fleet_states=before,
        at=NOW + timedelta(hours=hours),
    )
    inventory = decide(snapshot, make_settings(fleet)).view.inventory
    return inventory.fleets[0], inventory.fleet_states


def worker(name: str = "a", team: str | None = "ml", *taints: Taint) -> Node:
    """A node of the group."""
    labels = {"team": team} if team else {}
    return make_node(name, GROUP, labels=labels, taints=taints)


def test_what_most_nodes_have_in_common_is_believed() -> None:
    """What a person put on one node would be promised, or what he took off one be missed."""
    odd = worker("b", "quarantine", Taint(key="sick", effect="NoSchedule"))
    status = status_of((worker("a", "ml", ML), "2"), (odd, "2"), (worker("c", "ml", ML), "2"))
    assert (status.labels["team"], status.taints) == ("ml", (ML,))


def test_what_one_of_two_nodes_has_is_not_believed() -> None:
    """A taint that a person put on one node would close the group to every pod."""
    status = status_of((worker("a", "ml", ML), "2"), (worker("b", None), "2"))
    assert ("team" in status.labels, status.taints) == (False, ())


def test_nodes_of_the_present_launch_template_count_before_older_ones() -> None:
    """Old nodes outnumber the first one that shows what the new template says."""
    old = [(worker(name, "old", ML), "1") for name in "abc"]
    status = status_of(*old, (worker("d", "new"), "2"))
    assert (status.labels["team"], status.taints) == ("new", ())
    assert status_of(*old).labels["team"] == "old"


def test_nodes_of_another_launch_template_of_the_same_number_are_older_ones() -> None:
    """Terraform's `name_prefix` makes another template, whose first version is 1 again."""
    group = make_fleet_settings(
        provider="asg", auto_scaling_group="workers", managed=False, spot=False
    )
    live = make_fleet(group, 1, id="workers", launch_template_id="b", launch_template_version="1")
    node = worker("a", "ml", ML)
    for template, taints in (("a", ()), ("b", (ML,))):
        made = make_instance(
            node, live, launch_template_version="1", tags=FrozenMap({TEMPLATE_ID_TAG: template})
        )
        snapshot = make_snapshot(node, cloud=make_cloud(live, instances=[made]))
        (status,) = decide(snapshot, make_settings(group)).view.inventory.fleets
        assert status.taints == taints
        assert (status.seen is None) == (template == "a")


def test_taint_of_older_nodes_alone_is_none_of_the_next_one() -> None:
    """Nodes that a person taints for the move to a new launch template would close the group."""
    old = [(worker(name, "ml", ML), "1") for name in "abc"]
    status = status_of(*old)
    assert (status.labels["team"], status.taints) == ("ml", ())


def test_taints_of_the_present_launch_templates_nodes_are_remembered_beside_older_nodes() -> None:
    """Each time the last is gone a node would be bought for pods that do not tolerate its taint."""
    kept = remembered((worker("d", "ml", ML), "2"), (worker("a", "ml"), "1"))
    status = status_of((worker("a", "ml"), "1"), before=kept)
    assert (status.labels["team"], status.taints) == ("ml", (ML,))


@pytest.mark.parametrize(
    "taint",
    [
        DRAINING,
        Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule"),
        Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule"),
        Taint(key="ToBeDeletedByClusterAutoscaler", value="1", effect="NoSchedule"),
    ],
)
def test_condition_of_a_node_is_none_of_its_next(taint: Taint) -> None:
    """A cordoned node, or one under pressure, would close its group."""
    status = status_of((worker("a", "ml", taint, ML), "2"))
    assert status.taints == (ML,)


def test_cordoned_node_shows_nothing_new() -> None:
    """The taint of a person who ends the last node would close the empty group for a week."""
    going = replace(worker("a", "quarantine", ML), unschedulable=True)
    plain = remembered((worker("a", None), "2"))
    assert remembered((going, "2"), before=plain) == plain
    assert status_of((going, "2"), before=plain).taints == ()
    kept = remembered((worker("a", "ml", ML), "2"))
    status = status_of((replace(worker("a", None), unschedulable=True), "2"), before=kept)
    assert (status.labels["team"], status.taints) == ("ml", (ML,))


def test_what_names_a_node_or_a_place_is_none_of_its_next() -> None:
    """Pods that want to be where a node is would be planned for another one."""
    only = make_node(
        "a",
        GROUP,
        labels={
            "alpha.eksctl.io/instance-id": "i-a",
            "topology.k8s.aws/zone-id": "usw2-az1",
            "topology.ebs.csi.aws.com/zone": "us-west-2a",
            "fleet-reconciler.io/x": "y",
            "team": "ml",
        },
    )
    status = status_of((only, "2"))
    assert dict(status.shown_labels) == {"team": "ml"}


def test_node_that_takes_no_pods_yet_shows_nothing() -> None:
    """Its start-up taints go, and its labels may still come."""
    starting = Taint(key="ebs.csi.aws.com/agent-not-ready", effect="NoExecute")
    status = status_of((worker("a", "ml", starting, ML), "2"))
    assert (dict(status.shown_labels), status.taints) == ({}, ())


def test_config_wins_over_nodes_and_nodes_win_over_tags() -> None:
    """What a node is counts for more than what somebody said that it would be."""
    tags = {
        f"{TEMPLATE}/label/team": "web",
        f"{TEMPLATE}/label/sector": "batch",
        f"{TEMPLATE}/taint/{ML.key}": "ml:NoSchedule",
    }
    node = make_node("a", GROUP, labels={"team": "ml", "sector": "other"}, taints=())
    status = status_of((node, "2"), tags=tags)
    assert (status.labels["team"], status.labels["sector"]) == ("ml", "primary")
    assert status.taints == (ML,)


def test_group_that_terraform_makes_here_is_what_the_config_says() -> None:
    """A taint that the config gave up would hold until the last old node is gone."""
    status = status_of((worker("a", "ml", ML), "2"), managed=True)
    assert ("team" in status.labels, status.taints) == (False, ())


def test_empty_group_is_what_its_nodes_were_for_a_week() -> None:
    """After each idle weekend a node would be bought for a pod that cannot use it."""
    kept = remembered((worker("a", "ml", ML), "2"))
    gone = remembered(before=kept)
    later = status_of(before=gone, hours=7 * 24 - 1)
    assert (later.labels["team"], later.taints) == ("ml", (ML,))
    assert status_of(before=gone, hours=7 * 24 + 1).taints == ()
    assert remembered(before=gone, hours=1) == gone


def test_new_launch_template_forgets_what_nodes_of_the_old_one_were() -> None:
    """A taint that was taken off the template would close the empty group."""
    kept = remembered((worker("a", "ml", ML), "2"))
    assert status_of(before=kept, version="3").taints == ()
    assert status_of(before=kept, version="$Latest").taints == (ML,)


def test_nothing_is_kept_of_nodes_without_labels_of_their_own() -> None:
    """The Lease would be filled with what says nothing."""
    kept = remembered((worker("a", None), "2"))
    assert [
        (dict(saved_fleet_state.node_labels), saved_fleet_state.node_template)
        for saved_fleet_state in kept
    ] == [({}, "")]


HARDWARE = {f"feature.node.kubernetes.io/cpu-cpuid.F{n:02}": "true" for n in range(40)}


def test_all_labels_of_nodes_count_however_many_they_are() -> None:
    """A pod would wait for ever for a label that comes after those of feature discovery."""
    node = make_node("a", GROUP, labels={**HARDWARE, "team": "ml", "workload": "batch"})
    status = status_of((node, "2"))
    assert status.shown_labels == {**HARDWARE, "team": "ml", "workload": "batch"}


def test_labels_of_prefixes_with_few_are_remembered_before_others() -> None:
    """Feature discovery alone would fill the place that an empty group's labels have."""
    own = {"team": "ml", "workload": "batch", "eks.amazonaws.com/nodegroup": "workers"}
    node = make_node("a", GROUP, labels={**HARDWARE, **own})
    [kept] = remembered((node, "2"))
    assert kept.node_labels.items() >= own.items()
    assert len(kept.node_labels) == NODE_FACTS_MAX
    assert remembered((node, "2"), before=(kept,)) == (kept,)


def test_the_newest_nodes_of_a_large_group_are_read() -> None:
    """Labels that EKS gives to new nodes would be missed for as long as the old ones stay."""
    old = [(worker(f"old-{n}", "web"), "2") for n in range(20)]
    new = [
        (replace(worker(f"new-{n}", "ml"), created_at=NOW - timedelta(minutes=10)), "2")
        for n in range(8)
    ]
    assert status_of(*old, *new).labels["team"] == "ml"
