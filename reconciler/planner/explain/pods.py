"""Why a pod runs where it runs, will run where it will, or has no place."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from reconciler.model.cluster import Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.plan import Placement, Plan
from reconciler.model.quantity import format_amount
from reconciler.model.selectors import NodeSelector, NodeSelectorTerm, Requirement
from reconciler.model.text import counted_noun, cut
from reconciler.model.unplaceable import DETAIL_MAX, Reason, Unplaceable
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.demand import FLEET, SECTOR, SectorFinder, wanted_values
from reconciler.planner.explain.answers import Changes, FleetAnswer, PodExplanation
from reconciler.planner.explain.limits import limits_lifted
from reconciler.planner.explain.repair import Repair, spec_changed
from reconciler.planner.explain.repairs import repairs
from reconciler.planner.explain.system_reserve_repairs import RepairedFleet, SystemReserveRepairs
from reconciler.planner.explain.trial import complete, refusals_of_nodes, variants_of
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.money import usd
from reconciler.planner.policies.scale_up.refusals import why
from reconciler.planner.reservations import WaitingClass
from reconciler.planner.view import ClusterView

IGNORED: Mapping[str, str] = {
    "daemonset": "a DaemonSet's pod: the DaemonSet controller places it, it asks for no capacity",
    "mirror": "a static pod: its kubelet runs it, it asks for no capacity",
    "gated": "it has scheduling gates: it asks for nothing until they are removed",
    "deleting": "it is being deleted",
    "finished": "it has finished",
    "other-scheduler": "its schedulerName is not that of Kubernetes: it asks for nothing until "
    "its scheduler calls it Unschedulable, and on EKS Fargate never",
    "kube-system": "a kube-system pod that names no sector, fleet or size: it causes no capacity",
    "no-sector": "it names no sector and the config has no default_sector: add one or the other",
    "unreadable": "it cannot be read, for a quantity or a field that Kubernetes would not take: "
    "it asks for nothing until that is fixed",
    "": "it is not pending, or not in the namespace that demand is limited to",
}

NOT_ASKED: Mapping[str, str] = {
    "too-complex": "no fleet is asked until it asks for less",
    "over-work-budget": "no fleet is asked until its namespace has fewer kinds of pending pods",
    "planning-failed": "no fleet is asked until planning does not fail on its namespace any more",
}
"""Codes with which a pod is unplaceable before any fleet is tried, and what would help."""
_LABEL_VALUE_MAX = 63
_NAMES_COMPARED_MAX = 16
"""A pod may name thousands of unknown sectors, each of any length."""

_GAP_SHOWN = 0.00005
"""A smaller value would be shown as 0.00%."""
Burden = tuple[int, float]
"""How much a remedy changes: number and kind of its changes, then by how much requests are
lowered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A pod, and the changes after which each of its fleets might take it."""

    pod: Pod
    fleets: tuple[FleetStatus, ...]
    tries: tuple[tuple[Repair, ...], ...]
    """Per fleet."""


def question(view: ClusterView, pod: Pod, reserves: SystemReserveRepairs) -> Question:
    """Return what has to be tried for a pod, from the facts."""
    finder = SectorFinder(view.settings)
    named = finder.sectors_of(pod.spec) or ()
    known = finder.known(named)
    fleets = tuple(
        s for s in view.inventory.fleets if s.settings.sector in known or (named and not known)
    )
    if pod.node_name is not None or pod.finished or pod.unreadable or pod.spec.too_complex:
        return Question(pod=pod, fleets=(), tries=())
    distances = _distances(named, {s.settings.sector for s in fleets}) if not known else {}
    tries = []
    for status in fleets:
        row = view.offers[status.key].row
        moved, change = (pod, ()) if known else _renamed(pod, status)
        fleet = RepairedFleet(status=status, reserves=reserves)
        found = repairs(moved, view.table.volumes_of, row, fleet)
        tries.append(
            tuple(
                replace(
                    r,
                    changes=(*change, *r.changes),
                    weight=r.weight + len(change) + distances.get(status.settings.sector, 0),
                )
                for r in found
            )
        )
    return Question(pod=pod, fleets=fleets, tries=tuple(tries))


def _distances(named: Sequence[str], sectors: Iterable[str]) -> dict[str, int]:
    """Return the rank of each sector by how similar its name is to those that the pod names.

    A mistyped name means the most similar sector, whatever the others cost.
    """

    def likeness(sector: str) -> float:
        compared = (name[:_LABEL_VALUE_MAX] for name in named[:_NAMES_COMPARED_MAX])
        return max((SequenceMatcher(None, name, sector).ratio() for name in compared), default=0.0)

    ordered = sorted(sectors, key=lambda sector: (-likeness(sector), sector))
    return {sector: rank for rank, sector in enumerate(ordered)}


def _renamed(pod: Pod, status: FleetStatus) -> tuple[Pod, tuple[str, ...]]:
    """Return a pod of an unknown sector as if it named this fleet's sector, or the fleet."""
    sector = status.settings.sector
    if SECTOR in pod.spec.node_selector:
        selector = FrozenMap({**pod.spec.node_selector, SECTOR: sector})
        wrong = cut(pod.spec.node_selector[SECTOR], DETAIL_MAX)
        change = f"name sector {sector} instead of {wrong} in the pod's nodeSelector"
        return spec_changed(pod, node_selector=selector), (change,)
    wrong = cut(", ".join(wanted_values(pod.spec, SECTOR)), DETAIL_MAX)
    if not wrong and FLEET in pod.spec.node_selector:
        # Without this label it would be of the default sector, or be left alone.
        selector = FrozenMap({**pod.spec.node_selector, FLEET: status.key.name})
        wrong = cut(pod.spec.node_selector[FLEET], DETAIL_MAX)
        change = f"name fleet {status.key.name} instead of {wrong} in the pod's nodeSelector"
        return spec_changed(pod, node_selector=selector), (change,)
    if not wrong or pod.spec.node_affinity is None:
        return pod, ()
    terms = tuple(_in_sector(term, sector) for term in pod.spec.node_affinity.terms)
    change = f"name sector {sector} instead of {wrong} in the pod's required node affinity"
    return spec_changed(pod, node_affinity=NodeSelector(terms=terms)), (change,)


def _in_sector(term: NodeSelectorTerm, sector: str) -> NodeSelectorTerm:
    """Return the term with another sector."""
    own = Requirement(key=SECTOR, operator="In", values=(sector,))
    rest = (e for e in term.expressions if (e.key, e.operator) != (SECTOR, "In"))
    return replace(term, expressions=(own, *rest))


def variants(questions: Iterable[Question]) -> list[Pod]:
    """Return every pod about which the what-if cluster will be asked."""
    return [
        pod
        for asked in questions
        for tries in asked.tries
        for repair in tries
        for pod in variants_of(repair)
    ] + [asked.pod for asked in questions if asked.pod.node_name is None]


def explain_pods(
    builder: PlanBuilder, made: Plan, pods: Iterable[Pod], asked: Iterable[Question]
) -> Iterator[PodExplanation]:
    """Return the answers in the order of the pods, from a finished plan that knows all variants.

    Pods for which no fleet was tried have no question.
    """
    questions = {question.pod.key: question for question in asked}
    for pod in pods:
        yield _not_asked(made, pod) or _explain_pod(builder, made, questions[pod.key])


def _not_asked(made: Plan, pod: Pod) -> PodExplanation | None:
    """Return the answer for a pod that is unplaceable before any fleet is tried."""
    reasons = next((u.reasons for u in made.unplaceable if u.pod == pod.key), ())
    if pod.node_name is not None or not reasons or reasons[0].code not in NOT_ASKED:
        return None
    because = f"it {reasons[0].detail}: {NOT_ASKED[reasons[0].code]}"
    return PodExplanation(pod=pod.key, verdict="unplaceable", because=because)


def _explain_pod(builder: PlanBuilder, made: Plan, asked: Question) -> PodExplanation:
    pod_explanation = _explained(builder, made, asked)
    if pod_explanation.verdict not in {"placed", "unplaceable"}:
        return pod_explanation
    taken = builder.purchases.places_taken.get(builder.view.table.of(asked.pod, bound=False).number)
    return (
        pod_explanation
        if taken is None
        else replace(pod_explanation, because=f"{pod_explanation.because}; {taken.named}")
    )


def _explained(builder: PlanBuilder, made: Plan, asked: Question) -> PodExplanation:
    """Return the answer, without mentioning pods that took its place."""
    pod = asked.pod
    if pod.node_name is not None and not pod.finished:
        because = f"it runs on {pod.node_name}" if pod.ready else f"it is bound to {pod.node_name}"
        placed = next((p for p in made.placements if p.pod == pod.key), None)
        if placed is not None:
            because += f"; the plan moves it to {placed.node or placed.fleet}"
        stays = builder.kept_pods.get(pod.key)
        if placed is None and stays is not None:
            because += f"; {stays.policy} would evict it: {stays.reason}. It stays ({stays.code}): "
            because += stays.detail
        return PodExplanation(pod=pod.key, verdict="running", because=because, placement=placed)
    refused = next((u for u in made.unplaceable if u.pod == pod.key), None)
    if refused is not None:
        return _unplaceable(builder, asked, refused)
    placement = next((p for p in made.placements if p.pod == pod.key), None)
    if placement is not None:
        return _placed(builder, made, asked, placement)
    name = (pod.key.namespace, pod.key.name)
    code = next((i.code for i in made.ignored if (i.namespace, i.pod or i.name) == name), "")
    return PodExplanation(pod=pod.key, verdict="ignored", because=IGNORED.get(code, code))


def _refusing_nodes(builder: PlanBuilder, pod: Pod) -> FrozenMap[str, int]:
    counted = refusals_of_nodes(builder, builder.view.table.of(pod, bound=False))
    return FrozenMap(sorted(counted.items(), key=lambda item: (-item[1], item[0])))


def _unplaceable(builder: PlanBuilder, asked: Question, refused: Unplaceable) -> PodExplanation:
    reasons = {(r.fleet, r.region): r for r in refused.reasons}
    found: list[tuple[Burden, FleetAnswer]] = []
    for status, tries in zip(asked.fleets, asked.tries, strict=True):
        reason = reasons.get((status.key.name, status.key.region), refused.reasons[0])
        found.append(_answer(builder, asked.pod, status, tries, reason))
    best = min((f for f in found if f[1].ways), key=lambda f: f[0], default=None)
    total = sum(_refusing_nodes(builder, asked.pod).values())
    count = len(asked.fleets)
    because = f"none of {count} fleets takes it"
    if count < 2:
        because = "its only fleet does not take it" if count else refused.reasons[0].detail
    if total:
        because += (
            f", nor any of {total} nodes that exist"
            if total > 1
            else ", nor the one node that exists"
        )
    return PodExplanation(
        pod=asked.pod.key,
        verdict="unplaceable",
        because=because,
        fleets=tuple(answer for _, answer in found),
        nodes=_refusing_nodes(builder, asked.pod),
        change=best[1].ways[0] if best else (),
    )


def _answer(
    builder: PlanBuilder, pod: Pod, status: FleetStatus, tries: Sequence[Repair], reason: Reason
) -> tuple[Burden, FleetAnswer]:
    """Return a fleet's answer, the smallest remedy first, and how much that remedy changes."""
    ways: dict[Changes, Burden] = {}
    for repair in tries:
        whole = complete(builder, repair)
        lifted = limits_lifted(builder, pod, status)
        if whole is not None and lifted is not None:
            weight = whole.weight + sum(w for _, w in lifted)
            changes = (*whole.changes, *(what for what, _ in lifted))
            if changes:
                ways.setdefault(changes, (10 * len(changes) + weight, whole.loss))
    ordered = sorted(ways, key=lambda changes: (ways[changes], changes))
    return min(ways.values(), default=(0, 0.0)), FleetAnswer(
        fleet=status.key.name,
        region=status.key.region,
        code=reason.code,
        detail=reason.detail,
        ways=tuple(ordered),
    )


def _placed(
    builder: PlanBuilder, made: Plan, asked: Question, placement: Placement
) -> PodExplanation:
    return PodExplanation(
        pod=asked.pod.key,
        verdict="placed",
        because=_why_there(builder.view, made, asked.pod, placement),
        placement=placement,
        fleets=tuple(
            _verdict(builder, asked.pod, status, tries, placement)
            for status, tries in zip(asked.fleets, asked.tries, strict=True)
        ),
        nodes=FrozenMap() if placement.node else _refusing_nodes(builder, asked.pod),
    )


def _why_there(view: ClusterView, made: Plan, pod: Pod, placement: Placement) -> str:
    asks = ", ".join(
        f"{n} {format_amount(n, a)}" for n, a in pod.spec.requests.items() if n != "pods"
    )
    if placement.node is not None:
        node = view.nodes[placement.node]
        taken: dict[str, int] = {}
        for other in view.pods_on.get(placement.node, ()):
            for name, amount in other.spec.requests.items():
                taken[name] = taken.get(name, 0) + amount
        free = ", ".join(
            f"{n} {format_amount(n, node.allocatable.get(n, 0) - taken.get(n, 0))}"
            for n in pod.spec.requests
            if n != "pods"
        )
        if pod.nominated_node_name == placement.node:
            return (
                f"kube-scheduler has nominated {placement.node} for it, and ends pods of lower "
                f"priority there to make room: asks {asks}; free {free}"
            )
        return f"{placement.node} exists and takes it by every filter: asks {asks}; free {free}"
    if placement.launching is not None:
        return f"{placement.fleet} has launching capacity that takes it: nothing more is bought"
    beside = sum(
        1
        for p in made.placements
        if (p.fleet, p.region, p.new_node)
        == (placement.fleet, placement.region, placement.new_node)
    )
    bought = {
        p.new_node
        for p in made.placements
        if p.new_node is not None and (p.fleet, p.region) == (placement.fleet, placement.region)
    }
    others = f"with {counted_noun(beside - 1, 'other pod')}" if beside > 1 else "no other pod there"
    cheap = "no cheaper purchase exists"
    if made.cost.gap >= _GAP_SHOWN:
        cheap = f"no purchase can save more than {made.cost.gap:.2%} of the cost after the plan"
    nodes = f"{counted_noun(len(bought), 'node')} of {placement.fleet}"
    place = "there" if len(bought) == 1 else f"on new node {placement.new_node}"
    return (
        f"no existing node takes it: the plan buys {nodes}, and it goes {place} ({others}); {cheap}"
    )


def _verdict(
    builder: PlanBuilder,
    pod: Pod,
    status: FleetStatus,
    tries: Sequence[Repair],
    placement: Placement,
) -> FleetAnswer:
    view = builder.view
    price = f"{usd(view.offers[status.key].nano_usd_per_hour)} USD per node-hour"
    code, detail = "fits", f"a new node would take it, at {price}"
    if (status.key.name, status.key.region) == (placement.fleet, placement.region):
        code, detail = "chosen", price
    elif (
        status.settings.departing
        or limits_lifted(builder, pod, status)
        or not any(not r.changes and complete(builder, r) == r for r in tries)
    ):
        waiting = WaitingClass(
            pod_class=view.table.of(pod, bound=False),
            sectors=(status.settings.sector,),
            pods=[pod],
        )
        code, detail = why(builder, waiting, status, over_limits=True)
    return FleetAnswer(fleet=status.key.name, region=status.key.region, code=code, detail=detail)
