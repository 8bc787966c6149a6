"""Which changes would let a fleet's new node take a pod, as far as the two alone decide.

Static filters and size are checked repeatedly, and each refusal is answered by the change that
lifts it, of the pod or of the fleet. What depends on other pods is tried later (`trial`).
"""

from dataclasses import replace

from reconciler.model.cluster import Pod, PodSpec, Toleration
from reconciler.model.frozen import FrozenMap, Labels
from reconciler.model.selectors import NodeSelector, NodeSelectorTerm
from reconciler.planner.explain.amounts import round_for_people
from reconciler.planner.explain.repair import Repair, spec_changed
from reconciler.planner.explain.system_reserve_repairs import RepairedFleet, with_lower_reserve
from reconciler.planner.explain.volume_repairs import (
    NeedsOf,
    beyond_limit,
    taken_port,
    with_another_port,
    with_fewer_volumes,
    with_more_attachments,
    without_claim,
)
from reconciler.planner.placement.filters import node_affinity, static, taints
from reconciler.planner.placement.kinds import (
    ARCH,
    INSTANCE_TYPE,
    OLDER_KEYS,
    ZONE,
    ZONE_KEYS,
    NodeKind,
    hard_taints,
    region_of_open,
)
from reconciler.planner.placement.kinds import with_zone_aliases as aliased
from reconciler.planner.placement.simulation import RowSpec
from reconciler.planner.placement.static_constraints import StaticConstraints
from reconciler.planner.placement.volume_needs import VolumeNeeds
from reconciler.planner.policies.scale_up.wording import failing_lines, nearest_term, shown_line

STEPS_MAX = 12
"""More changes than this are no useful advice."""
FIXED_LABELS = ZONE_KEYS | {"sector", "fleet", "size", "pool_size", "kind", "lifecycle"}
"""Labels of a fleet that its `labels` key cannot set."""
_OF_PLATFORM = (
    "kubernetes.io/",
    "node.kubernetes.io/",
    "topology.kubernetes.io/",
    "beta.",
    "failure-domain.beta.",
)
_OF_TYPES = frozenset({ARCH, INSTANCE_TYPE, OLDER_KEYS[ARCH], OLDER_KEYS[INSTANCE_TYPE]})


def repairs(pod: Pod, needs_of: NeedsOf, row: RowSpec, fleet: RepairedFleet) -> list[Repair]:
    """Return ways to make a new node of the fleet take the pod: changing the pod, and the fleet.

    Returns:
        At most two, different ones; empty if a refusal has no remedy.
    """
    found: list[Repair] = []
    for pod_first in (True, False):
        made = _repaired(Repair(pod=pod, row=row), needs_of, fleet, pod_first=pod_first)
        if made is not None and made not in found:
            found.append(made)
    return found


def _repaired(
    repair: Repair, needs_of: NeedsOf, fleet: RepairedFleet, *, pod_first: bool
) -> Repair | None:
    for _ in range(STEPS_MAX):
        needs = needs_of(repair.pod)
        code = _refusal(repair, needs)
        if not code:
            return repair
        if pod_first:
            changed = _by_pod(repair, needs_of, code) or _by_fleet(repair, needs, fleet, code)
        else:
            changed = _by_fleet(repair, needs, fleet, code) or _by_pod(repair, needs_of, code)
        if changed is None and repair.pod.claims:
            changed = without_claim(repair, _kind(repair.row), needs_of)
        if changed is None:
            return None
        repair = changed
    return None


def _kind(row: RowSpec) -> NodeKind:
    return NodeKind(
        variants=tuple(aliased(labels) for labels in row.variants),
        taints=hard_taints(row.taints),
        schedulable=row.schedulable,
    )


def _refusal(repair: Repair, needs: VolumeNeeds) -> str:
    """Return the code of the first static filter or resource that refuses; empty if none does."""
    spec = repair.pod.spec
    constraints = StaticConstraints(
        node_selector=spec.node_selector,
        node_affinity=spec.node_affinity,
        tolerations=spec.tolerations,
        volumes=needs,
    )
    code = static.refuses(constraints, _kind(repair.row))
    if not code and _short_resources(spec, repair.row):
        code = "size"
    if not code and beyond_limit(needs, repair.row):
        code = "volume-limit"
    if not code and taken_port(repair.pod, repair.row):
        code = "host-port"
    return code


def _short_resources(spec: PodSpec, row: RowSpec) -> list[str]:
    """Return the resources of which a new node has less than the pod requests."""
    return [n for n, amount in spec.requests.items() if amount > row.allocatable.get(n, 0)]


def _by_pod(repair: Repair, needs_of: NeedsOf, code: str) -> Repair | None:
    if code == "volume-limit":
        return with_fewer_volumes(repair, needs_of)
    if code in {"node-selector", "zone"}:
        return _without_selector(repair) or _without_expressions(repair)
    simple = {
        "size": _lowered,
        "taint": _tolerating,
        "node-affinity": _without_expressions,
        "host-port": with_another_port,
    }
    return simple[code](repair) if code in simple else None


def _by_fleet(repair: Repair, needs: VolumeNeeds, fleet: RepairedFleet, code: str) -> Repair | None:
    match code:
        case "size":
            short = _short_resources(repair.pod.spec, repair.row)
            return with_lower_reserve(repair, fleet, short) or _enlarged(repair, fleet)
        case "taint":
            return _untainted(repair, fleet.name)
        case "node-selector":
            return _labelled(repair, fleet) or _in_zone(repair, needs, fleet.name)
        case "volume-limit":
            return with_more_attachments(repair, fleet.another(), needs)
        case "zone" | "volume-zone" | "node-affinity":
            return _in_zone(repair, needs, fleet.name)
        case _:
            return None


def _lowered(repair: Repair) -> Repair | None:
    """Return the repair with requests lowered to what a new node has.

    Missing resources are dropped.
    """
    spec, row = repair.pod.spec, repair.row
    short = _short_resources(spec, row)
    if "pods" in short:
        return None
    for name in short:
        asked = spec.requests[name]
        amount, shown = round_for_people(name, row.allocatable.get(name, 0), up=False)
        change = f"lower the pod's {name} request to {shown}" if amount else f"ask for no {name}"
        requests = {**repair.pod.spec.requests, name: amount}
        kept = FrozenMap((n, a) for n, a in requests.items() if a)
        repair = repair.with_pod(spec_changed(repair.pod, requests=kept), change, 3)
        repair = replace(repair, loss=repair.loss + 1 - amount / asked)
    return repair


def _enlarged(repair: Repair, fleet: RepairedFleet) -> Repair:
    """Return the repair with a size of which a new node has what the pod requests."""
    spec, row = repair.pod.spec, repair.row
    least = {n: round_for_people(n, spec.requests[n], up=True) for n in _short_resources(spec, row)}
    more = FrozenMap({**row.allocatable, **{n: amount for n, (amount, _) in least.items()}})
    shown = " and ".join(f"{text} {n}" for n, (_, text) in least.items())
    change = f"{fleet.another()} whose nodes offer at least {shown}"
    return repair.with_row(row._replace(allocatable=more), change, 4)


def _tolerating(repair: Repair) -> Repair | None:
    taint = taints.untolerated(repair.row.taints, repair.pod.spec.tolerations)
    if taint is None:
        return None
    more = Toleration(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)
    pod = spec_changed(repair.pod, tolerations=(*repair.pod.spec.tolerations, more))
    return repair.with_pod(pod, f"tolerate {taint.key}={taint.value}:{taint.effect}", 3)


def _untainted(repair: Repair, fleet: str) -> Repair | None:
    taint = taints.untolerated(repair.row.taints, repair.pod.spec.tolerations)
    if taint is None:
        return None
    rest = tuple(t for t in repair.row.taints if t != taint)
    change = f"take the taint {taint.key}={taint.value}:{taint.effect} off {fleet}"
    return repair.with_row(repair.row._replace(taints=rest), change, 4)


def _without_selector(repair: Repair) -> Repair | None:
    """Return the repair without the first nodeSelector entry that some variant of the row lacks."""
    selector = repair.pod.spec.node_selector
    variants = _kind(repair.row).variants
    for key, value in sorted(selector.items()):
        if any(variant.get(key) != value for variant in variants):
            rest: Labels = FrozenMap((k, v) for k, v in selector.items() if k != key)
            pod = spec_changed(repair.pod, node_selector=rest)
            return repair.with_pod(pod, f"drop {key}={value} from the pod's nodeSelector", 5)
    return None


def _labelled(repair: Repair, fleet: RepairedFleet) -> Repair | None:
    """Return the repair with the labels that the pod selects, if a fleet or size may have them."""
    variants = _kind(repair.row).variants
    for key, value in sorted(repair.pod.spec.node_selector.items()):
        of_types = key in _OF_TYPES
        ours = key in FIXED_LABELS or (key.startswith(_OF_PLATFORM) and not of_types)
        if not ours and any(variant.get(key) != value for variant in variants):
            labelled = tuple(FrozenMap({**v, key: value}) for v in repair.row.variants)
            row = repair.row._replace(variants=labelled)
            if of_types:
                what = fleet.another(f"of {value} instances ")
                return repair.with_row(row, what, 4)
            return repair.with_row(row, f"give {fleet.name} the label {key}={value}", 3)
    return None


def _without_expressions(repair: Repair) -> Repair | None:
    """Return the repair without the failing expressions of the nearest required term."""
    affinity = repair.pod.spec.node_affinity
    if affinity is None:
        return None
    if not any(term.expressions or term.fields for term in affinity.terms):
        change = "drop the pod's required node affinity, which has no terms and so no nodes"
        return repair.with_pod(spec_changed(repair.pod, node_affinity=None), change, 5)
    variants = _kind(repair.row).variants
    selected = [
        v for v in variants if node_affinity.selects(repair.pod.spec.node_selector, v)
    ] or list(variants)
    term = nearest_term(affinity, selected)
    failing = failing_lines(term, selected)
    kept = NodeSelectorTerm(expressions=tuple(e for e in term.expressions if e not in failing))
    left = None if not kept.expressions else NodeSelector(terms=(kept,))
    names = [*map(shown_line, failing), *map(shown_line, term.fields)]
    if not names:
        return None
    change = f"drop {', '.join(names)} from the pod's required node affinity"
    if left is None and len(affinity.terms) > 1:
        # Without the line its term selects no node, and the pod is left with the other terms.
        change = "drop the pod's required node affinity"
    return repair.with_pod(spec_changed(repair.pod, node_affinity=left), change, 5)


def _in_zone(repair: Repair, needs: VolumeNeeds, fleet: str) -> Repair | None:
    """Return the repair with one zone for the fleet, which the pod and its volumes accept."""
    for zone in wanted_zones(repair.pod.spec, needs, repair.row):
        row = zoned(repair.row, zone)
        changed = repair.with_row(row, f"give a fleet like {fleet} `zone: {zone}`", 2)
        if _refusal(changed, needs) in {"", "size"}:
            return changed
    return None


def zoned(row: RowSpec, zone: str) -> RowSpec:
    """Return the row of a fleet that launches in one zone only."""
    fixed = {FrozenMap({**v, **dict.fromkeys(ZONE_KEYS, zone)}): None for v in row.variants}
    return row._replace(variants=tuple(fixed))


def wanted_zones(spec: PodSpec, needs: VolumeNeeds, row: RowSpec) -> list[str]:
    """Return the zones that the pod or its volumes name, then those the fleet may launch in."""
    named = [spec.node_selector[key] for key in sorted(ZONE_KEYS) if key in spec.node_selector]
    selectors = [*needs.selectors, *((spec.node_affinity,) if spec.node_affinity else ())]
    for selector in selectors:
        for term in selector.terms:
            named += [v for e in term.expressions if e.key in ZONE_KEYS for v in e.values]
    own = sorted(v[ZONE] for v in row.variants if ZONE in v and not region_of_open(v[ZONE]))
    return list(dict.fromkeys([*named, *own]))
