"""A plan for people: what will be done, where pods will run, what cannot be, what it costs."""

from typing import Final

from reconciler.cli.terminal.output import Output, print_encoded, print_table, print_text
from reconciler.model.actions import AnyAction, SetCapacity
from reconciler.model.plan import Cost, Placement, Plan
from reconciler.model.text import left_alone
from reconciler.planner.explain.held import held_in_words
from reconciler.records.binding import binding_to_json, verdict_line
from reconciler.records.plan import action_to_json, encode_plan

PLACES_MAX: Final = 20
"""Places that are listed, so that a large plan stays readable; the JSON has every pod."""
PODS_NAMED: Final = 3


def print_plan(plan: Plan, *, form: Output) -> None:
    """Print the contract's JSON, the same as YAML, or tables."""
    if form is not Output.TABLE:
        print_encoded(encode_plan(plan, indent=True), form)
        return
    print_text(f"Cluster {verdict_line(binding_to_json(plan.binding))}.\n\n")
    _fleets(plan)
    _actions(plan)
    _held(plan)
    _placements(plan)
    _unplaceable(plan)
    _sum(plan)


def _fleets(plan: Plan) -> None:
    rows = [
        (
            f.fleet,
            f.region,
            f.state,
            f.joined,
            f.launching,
            f.current,
            f.target,
            f"{f.min}..{'none' if f.max is None else f.max}",
        )
        for f in plan.fleets
    ]
    print_table(
        ("fleet", "region", "state", "joined", "launching", "current", "target", "limits"), rows
    )


def _subject(action: AnyAction) -> str:
    if isinstance(action, SetCapacity):
        return f"{action.fleet} ({action.region}) {action.from_capacity} -> {action.to_capacity}"
    fields = action_to_json(action)
    if "pod" in fields:
        return f"{fields['namespace']}/{fields['pod']}"
    return str(fields.get("node") or fields.get("instance"))


def _actions(plan: Plan) -> None:
    print_text("\n")
    if not plan.actions:
        print_text("Nothing to do.\n")
        return
    rows = [(action_to_json(a)["action"], _subject(a), a.policy, a.because) for a in plan.actions]
    print_table(("action", "on", "policy", "because"), rows)


def _held(plan: Plan) -> None:
    """Print what would have been ended, and what keeps it."""
    if plan.no_removals_because:
        print_text(f"\nNo node is drained or ended: {plan.no_removals_because}.\n")
    if plan.held:
        print_text("\n")
        rows = [(h.node or h.instance, h.code, held_in_words(h)) for h in plan.held]
        print_table(("held node or instance", "code", "why"), rows)


def _placements(plan: Plan) -> None:
    """Print one line per place where pods will run: new nodes first, then existing ones."""
    places: dict[tuple[int, str, str, str, int], list[Placement]] = {}
    for placement in plan.placements:
        places.setdefault(_place(placement), []).append(placement)
    if not places:
        return
    print_text("\n")
    shown = sorted(places.items())[:PLACES_MAX]
    rows = [(*_named(place), len(placements), _pods(placements)) for place, placements in shown]
    print_table(("runs on", "fleet", "region", "pods", "which"), rows)
    if len(places) > PLACES_MAX:
        print_text(f"and {len(places) - PLACES_MAX} more; -o json has all\n")


def _place(placement: Placement) -> tuple[int, str, str, str, int]:
    """Return the sort key of a place: rank, fleet, region, node, and its number in the fleet."""
    fleet, region = placement.fleet or "", placement.region or ""
    if placement.new_node is not None:
        return 0, fleet, region, "", placement.new_node
    if placement.launching is not None:
        return 1, fleet, region, "", placement.launching
    return 2, fleet, region, placement.node or "", 0


def _named(place: tuple[int, str, str, str, int]) -> tuple[str, str, str]:
    rank, fleet, region, node, number = place
    return (f"new node {number}", f"launching node {number}", node)[rank], fleet, region


def _pods(found: list[Placement]) -> str:
    named = [
        str(placement.pod) + (f" (from {placement.moved_from})" if placement.moved_from else "")
        for placement in found[:PODS_NAMED]
    ]
    more = len(found) - PODS_NAMED
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


def _unplaceable(plan: Plan) -> None:
    if not plan.unplaceable:
        return
    print_text("\n")
    rows = [(str(u.pod), r.fleet, r.code, r.detail) for u in plan.unplaceable for r in u.reasons]
    print_table(("unplaceable pod", "fleet", "code", "why"), rows)


def _left_alone(plan: Plan) -> str:
    """Return what pods without a sector wait for; empty when none waits."""
    pods = plan.pods_without_sector
    return f"{left_alone(pods)}: the config has no default_sector.\n" if pods else ""


def _priced(cost: Cost) -> str:
    return f"; on-demand prices of {cost.prices}" if cost.prices else ""


def _sum(plan: Plan) -> None:
    cost = plan.cost
    on_nodes = sum(1 for p in plan.placements if p.node is not None)
    launching = sum(1 for p in plan.placements if p.launching is not None)
    new = sum(1 for p in plan.placements if p.new_node is not None)
    print_text(
        f"\nPods: {on_nodes} on nodes, {launching} on launching capacity, {new} on new nodes, "
        f"{len(plan.unplaceable)} unplaceable.\n{_left_alone(plan)}"
        f"USD per hour: {cost.hourly_usd_before:.4f} -> {cost.hourly_usd_after:.4f} "
        f"(with the cheapest new nodes {cost.hourly_usd_lower_bound:.4f} at least, "
        f"gap {cost.gap:.2%}{_priced(cost)}).\n"
    )
    if cost.unpriced:
        names = ", ".join(cost.unpriced)
        print_text(f"No price is known for {names}: counted at a usual price.\n")
