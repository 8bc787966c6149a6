"""Why no node takes a pod: a code and the numbers for each fleet."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reconciler.model.frozen import Labels
from reconciler.model.ids import FleetKey
from reconciler.model.quantity import exact_amount, format_amount
from reconciler.model.unplaceable import Reason, Unplaceable
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.placement.arrays import IntArray
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.dimensions import AMOUNT_MAX
from reconciler.planner.placement.filters import taints
from reconciler.planner.placement.kinds import with_zone_aliases
from reconciler.planner.placement.simulation import RowSpec
from reconciler.planner.policies.scale_up.closed_fleets import (
    Found,
    at_maximum,
    kept_off,
    no_fleet,
)
from reconciler.planner.policies.scale_up.limits_reached import FleetLimits, LimitsReached
from reconciler.planner.policies.scale_up.overflow import awaits_silent
from reconciler.planner.policies.scale_up.refusing_rules import (
    refuses_everywhere,
    refuses_new_node,
)
from reconciler.planner.policies.scale_up.wording import (
    affinity_detail,
    any_of_zones,
    port_detail,
    shown_values,
    takers_of,
    volume_detail,
)
from reconciler.planner.reservations import WaitingClass


def explain(
    builder: PlanBuilder,
    members: Sequence[WaitingClass],
    sectors: Collection[str],
    fleets: Sequence[FleetStatus],
    *,
    over_limits: bool,
) -> None:
    """Record why each fleet of its sectors cannot take what is left of each class.

    Args:
        builder: The plan so far.
        members: The classes, all of the same sectors.
        sectors: Their sectors.
        fleets: The fleets of these, as far as they are known.
        over_limits: Whether a limit on purchases has been reached.
    """
    if not members:
        return
    if not fleets:
        for waiting in members:
            _refuse(builder, waiting, (no_fleet(builder, sectors),))
        return
    limits = {
        sector: LimitsReached(builder, sector, over_limits=over_limits)
        for sector in {status.settings.sector for status in fleets}
    }
    closed = [_Fleet.of(builder, each, limits[each.settings.sector]) for each in fleets]
    offered = np.stack([builder.sim.allocatable_of(each.row) for each in closed])
    known: list[dict[Found, Reason]] = [{} for _ in closed]
    nothing: list[int | None] = [None] * len(closed)
    for waiting in members:
        refusals = builder.sim.refusals(waiting.pod_class)
        scarcest, refusing_rule = nothing, None
        if not all(refusals[fleet.kind] for fleet in closed):
            scarcest = _scarcest(_asked(builder, waiting.pod_class), offered)
            refusing_rule = refuses_everywhere(builder.sim, waiting.pod_class)
        reasons = []
        for fleet, column, reason_of in zip(closed, scarcest, known, strict=True):
            refusal = refusals[fleet.kind]
            if refusal:
                detail = _static_detail(waiting.pod_class, refusal, fleet.row, fleet.labels)
                found: Found = refusal, detail, ""
            else:
                found = _why(builder, waiting, fleet, column, refusing_rule)
            reason = reason_of.get(found)
            if reason is None:
                code, detail, kind = found
                reason = reason_of[found] = Reason(
                    fleet=fleet.key.name,
                    region=fleet.key.region,
                    code=code,
                    detail=detail,
                    kind=kind,
                )
            reasons.append(reason)
        _refuse(builder, waiting, tuple(reasons))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fleet:
    """A fleet, with what is the same for all classes, as thousands may be asked about."""

    status: FleetStatus
    key: FleetKey
    row: RowSpec
    """A new node of it."""
    kind: int
    labels: Mapping[str, "_LabelValues"]
    """Per label key what a new node may have."""
    full: Found | None
    """The reason while the fleet is at its maximum."""
    limits: FleetLimits
    """What else prevents one more node of it."""

    @classmethod
    def of(cls, builder: PlanBuilder, status: FleetStatus, limits: LimitsReached) -> "_Fleet":
        """Return what the plan so far leaves of a fleet."""
        row, most = builder.view.offers[status.key].row, status.max
        full = most is not None and builder.size_of(status.key) >= most
        return cls(
            status=status,
            key=status.key,
            row=row,
            kind=builder.sim.node_kind_of(row),
            labels=_values_by_key(row),
            full=at_maximum(builder, status) if full else None,
            limits=limits.of(status),
        )


def _refuse(builder: PlanBuilder, waiting: WaitingClass, reasons: tuple[Reason, ...]) -> None:
    for pod in waiting.pods[waiting.done :]:
        builder.refuse(Unplaceable(pod=pod.key, reasons=reasons))


def why(
    builder: PlanBuilder, waiting: WaitingClass, status: FleetStatus, *, over_limits: bool
) -> tuple[str, str]:
    """Return the code and the numbers of what excludes the class from the fleet's new nodes."""
    limits = LimitsReached(builder, status.settings.sector, over_limits=over_limits)
    fleet = _Fleet.of(builder, status, limits)
    offered = builder.sim.allocatable_of(fleet.row)
    (column,) = _scarcest(_asked(builder, waiting.pod_class), offered[np.newaxis])
    refusing_rule = refuses_everywhere(builder.sim, waiting.pod_class)
    refusal = builder.sim.refusal(waiting.pod_class, fleet.kind)
    if refusal:
        return refusal, _static_detail(waiting.pod_class, refusal, fleet.row, fleet.labels)
    return _why(builder, waiting, fleet, column, refusing_rule)[:2]


def _asked(builder: PlanBuilder, pod_class: PodClass) -> IntArray:
    """Return what a pod takes of an empty node, including volumes shared with other pods."""
    shared = pod_class.volumes.shared
    if not shared:
        return pod_class.requests
    asked = pod_class.requests.copy()
    for volume in shared:
        asked[builder.sim.dimensions.attachments(volume.driver)] += 1
    return asked


def _scarcest(requests: IntArray, offered: IntArray) -> list[int | None]:
    """Return for each row the column that it lacks most in relation to the request."""
    short = requests > offered
    share = np.where(short, offered / np.maximum(requests, 1), np.inf)
    columns: list[int] = share.argmin(axis=1).tolist()
    return [c if short[row, c] else None for row, c in enumerate(columns)]


def _why(  # noqa: PLR0911 - a list of possible reasons, the first that holds
    builder: PlanBuilder,
    waiting: WaitingClass,
    fleet: _Fleet,
    scarcest: int | None,
    refusing_rule: tuple[str, str] | None,
) -> Found:
    """Return what `why` returns, and the kind, for a class that the static filters allow.

    Args:
        builder: The plan so far.
        waiting: The class.
        fleet: The fleet.
        scarcest: The resource of which a new node has too little.
        refusing_rule: The rule between pods that refuses every node, if one does.
    """
    status, pod_class = fleet.status, waiting.pod_class
    if scarcest is not None:
        return *_too_large(builder, pod_class, fleet, scarcest), ""
    purchases, number = builder.purchases, pod_class.number
    stalled = purchases.quarantined.get(number) or purchases.awaiting_bind.get(number)
    if stalled:
        return "no-progress", stalled, ""
    if status.unavailable:
        return "fleet-unavailable", status.unavailable, status.unavailable_kind
    blocked = None if status.settings.spot else kept_off(builder, waiting, status)
    if blocked is not None:
        return blocked
    if refusing_rule is not None:
        return *refusing_rule, ""
    found, certain = refuses_new_node(builder.sim, pod_class, fleet.row)
    if fleet.full is not None:
        return (*found, "") if found and certain else fleet.full
    left_out = number in purchases.left_out_classes
    limit = fleet.limits.limit_if_left_out if left_out else fleet.limits.limit
    if found and (certain or limit is None):
        return *found, ""
    if limit is not None:
        return limit
    if awaits_silent(builder, waiting, status.tier):
        what = "the preferred fleets do not answer; demand moves to this fleet if that lasts"
        return "fleet-unavailable", what, "silent"
    what = "demand moves to this region only when the preferred one fails"
    return "fleet-unavailable", what, "later-region"


def _static_detail(
    pod_class: PodClass, code: str, row: RowSpec, labels: Mapping[str, "_LabelValues"]
) -> str:
    """Return what the static filter of this code looked at."""
    spec = pod_class.spec
    if code == "taint":
        taint = untolerated_taint(pod_class, row)
        return f"does not tolerate {taint} of a new node" if taint else "is not schedulable"
    if code == "node-selector":
        return _selector_detail(spec.node_selector, labels)
    if code == "zone":
        zones = any_of_zones(row)
        return (
            f"needs one zone, but a new node may start in any of {zones}: give the fleet a `zone`"
        )
    if spec.node_affinity is not None and code == "node-affinity":
        return affinity_detail(spec.node_affinity, _labels(row))
    return volume_detail(pod_class.volumes, _labels(row))


@dataclass(frozen=True, slots=True)
class _LabelValues:
    """What new nodes have under one label key."""

    only: str | None
    """The value that each of them has."""
    shown: str
    """All values, in words."""


_NO_LABEL = _LabelValues(only="", shown=shown_values([""]))


def _values_by_key(row: RowSpec) -> dict[str, _LabelValues]:
    """Return per label key of a new node what it may have; "" stands for no such label."""
    found = {}
    for key in {key for variant in row.variants for key in variant}:
        values = {variant.get(key, "") for variant in row.variants}
        only = next(iter(values)) if len(values) == 1 else None
        found[key] = _LabelValues(only=only, shown=shown_values(values))
    return found


def _labels(row: RowSpec) -> tuple[Labels, ...]:
    """Return the label sets of a new node, with all zone labels."""
    return tuple(with_zone_aliases(labels) for labels in row.variants)


def untolerated_taint(pod_class: PodClass, row: RowSpec) -> str:
    """Return the taint that excludes the class, as kubectl writes it."""
    taint = taints.untolerated(row.taints, pod_class.spec.tolerations)
    return f"{taint.key}={taint.value}:{taint.effect}" if taint else ""


def _selector_detail(selector: Labels, labels: Mapping[str, _LabelValues]) -> str:
    """Return the first expression of the selector, by key, that a new node may not satisfy."""
    for key, value in sorted(selector.items()) if len(selector) > 1 else selector.items():
        found = labels.get(key, _NO_LABEL)
        if found.only != value:
            return f"selects {key}={value}, a new node has {found.shown}"
    return "the node selector matches no new node"


def _too_large(
    builder: PlanBuilder, pod_class: PodClass, fleet: _Fleet, column: int
) -> tuple[str, str]:
    """Return the code and figures of a resource of which a new node offers too little."""
    dimensions = builder.sim.dimensions
    offered = int(builder.sim.allocatable_of(fleet.row)[column])
    name = dimensions.resource(column, pod_class.spec.requests)
    taken = int(_asked(builder, pod_class)[column])
    asked, has = _stated(pod_class, fleet.row, name, taken, offered)
    daemons = builder.view.offers[fleet.key].daemons
    what = "" if name in {"cpu", "memory"} else f" {name}"
    code, of = dimensions.code_of(name), name.partition(":")[2]
    if code == "volume-limit":
        return code, f"has {asked} volumes of {of}, a new node attaches {has}"
    if code == "host-port":
        return code, port_detail(daemons, of)
    lacking = taken - offered
    stated = fleet.status.settings.allocatable is not None
    takers = "" if stated else takers_of(daemons, name, lacking)
    return code, f"requests {asked}{what}, a new node offers {has}{takers}"


def _stated(
    pod_class: PodClass, row: RowSpec, name: str, asked: int, offered: int
) -> tuple[str, str]:
    """Return the amounts that pod and node state, not those that the planner computes with."""
    asked = pod_class.spec.requests.get(name, asked)
    offered = row.allocatable.get(name, offered)
    shown = format_amount(name, asked), format_amount(name, offered)
    if asked > AMOUNT_MAX or shown[0] == shown[1]:
        shown = exact_amount(name, asked), exact_amount(name, offered)
    if offered < asked:
        return shown
    most = format_amount(name, AMOUNT_MAX)
    return shown[0], f"{shown[1]}, of which only {most} can be planned with"
