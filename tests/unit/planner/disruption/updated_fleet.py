"""A fleet whose launch template has a new version, for tests of rolling updates."""

from collections import Counter
from dataclasses import replace
from typing import Any

from reconciler.model.actions import (
    DRAINING_TAINT,
    ROLLING_UPDATE,
)
from reconciler.model.cluster import Node, Pod, Taint
from reconciler.model.fleet import Instance
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Plan
from reconciler.model.saved_state import SavedFleetState
from reconciler.model.text import rfc3339
from reconciler.planner.disruption_settings import RollingUpdate
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from tests.builders import (
    HOME,
    NOW,
    ago,
    kept_proof,
    make_cloud,
    make_fleet,
    make_instance,
    make_node,
    make_settings,
    make_snapshot,
)
from tests.unit.planner.disruption.scale_in.scene import (
    annotations_set,
    make_scene_fleet,
)

FLEET = make_scene_fleet()
RULES = RollingUpdate(batch_max=2)
OLD, NEW = "7", "8"
TAINT = Taint(key=DRAINING_TAINT, value="rolling-update", effect="NoSchedule")


def node(name: str, age: float = 3600, **changed: Any) -> Node:
    """A node of a certain age; `mark` is its number in a batch that began 10 minutes ago."""
    number, began = changed.pop("mark", 0), changed.pop("began", 600)
    fleet = changed.pop("fleet", FLEET)
    own = {ROLLING_UPDATE: f"{NEW}/{rfc3339(ago(began))}/{number}"} if number else {}
    own |= changed.pop("annotations", {})
    ready = changed.pop("ready_changed_at", ago(age))
    return make_node(
        name,
        fleet,
        annotations=FrozenMap(own),
        created_at=ago(age),
        ready_changed_at=ready,
        **changed,
    )


def made_of(
    *objects: Node | Pod,
    new: str = "",
    rules: RollingUpdate | None = RULES,
    fleet: FleetSettings = FLEET,
    beside: tuple[FleetSettings, ...] = (),
    **changed: Any,
) -> Plan:
    """The plan of fleets at version 8 whose nodes are of version 7, but those named in `new`.

    Args:
        objects: Nodes and pods; nodes without the label `fleet` are of nobody's fleet.
        new: Names of nodes of version 8, with spaces between.
        rules: How nodes are replaced; None when rolling updates are switched off.
        fleet: The fleet.
        beside: Further fleets.
        changed: `target` of the fleet, `more` instances of it, when instances of nodes were
            `started` again (seconds ago, by node), `live`: what EC2 shows of the
            fleets, `settings` of the planner; else keywords of ClusterState.
    """
    nodes = [o for o in objects if isinstance(o, Node) and "fleet" in o.labels]
    targets = Counter(str(n.labels["fleet"]) for n in nodes)
    targets[fleet.name] = changed.pop("target", targets[fleet.name])
    shown: dict[str, Any] = changed.pop("live", {})
    lives = {
        each.name: make_fleet(
            each,
            targets[each.name],
            **{"launch_template_id": "lt-1", "launch_template_version": NEW, **shown},
        )
        for each in (fleet, *beside)
    }
    names = set(new.split())
    started: dict[str, float] = changed.pop("started", {})
    instances = [
        make_instance(
            n,
            lives[n.labels["fleet"]],
            launch_template_version=NEW if n.name in names else OLD,
            **({"launched_at": ago(started[n.name])} if n.name in started else {}),
        )
        for n in nodes
    ]
    more: list[Instance] = changed.pop("more", [])
    settings = make_settings(fleet, *beside, rolling_update=rules, **changed.pop("settings", {}))
    more = [replace(instance, fleet_id=lives[fleet.name].id) for instance in more]
    cloud = make_cloud(*lives.values(), instances=[*instances, *more], instances_known=True)
    at = changed.pop("at", NOW)
    known = {**kept_proof(*lives.values()), **changed}
    return plan(make_snapshot(*objects, cloud=cloud, at=at, **known), settings)


def remembered(**changed: Any) -> tuple[SavedFleetState, ...]:
    """What the Lease says of the fleet."""
    return (SavedFleetState(fleet=FLEET.name, region=HOME, **changed),)


def watched(seconds: float, *, seen: float = 20, **changed: Any) -> tuple[SavedFleetState, ...]:
    """What the Lease says of a fleet whose canary has been watched for so many seconds.

    Args:
        seconds: How long ago that began.
        seen: How long ago it was judged last.
        changed: Further fields.
    """
    return remembered(
        canary_version=NEW, canary_since=ago(seconds), canary_seen_at=ago(seen), **changed
    )


def marked(made: Plan) -> dict[str, str | None]:
    """The marks that the plan sets or takes off, without their times."""
    return {
        name: value and value.split("/")[0] + "/" + value.split("/")[2]
        for name, key, value in sorted(annotations_set(made), key=str)
        if key == "rolling-update"
    }


def state(made: Plan) -> str:
    """The state of the one update."""
    (update,) = made.updates
    return update.state
