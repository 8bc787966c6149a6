"""Explanations for people: the answer first, then the numbers behind it."""

from collections.abc import Sequence
from typing import Any

from reconciler.cli.terminal.output import (
    Output,
    print_data,
    print_encoded,
    print_table,
    print_text,
)
from reconciler.model.plan import Plan
from reconciler.planner.explain.answers import Explanations
from reconciler.records.explanations import encode_explained_plan, explanations_to_json

Json = dict[str, Any]

_VERBS = frozenset({"leaves", "grows", "shrinks", "stays"})
"""Verdicts that are verbs; the others follow "is"."""


def print_explained(plan: Plan, explanations: Explanations, *, form: Output) -> None:
    """Print the plan's JSON with the explanations in it; for people only the explanations."""
    if form is not Output.TABLE:
        print_encoded(encode_explained_plan(plan, explanations), form)
        return
    print_explanations(explanations_to_json(explanations), form=form)


def print_explanations(explanations: Json, *, form: Output) -> None:
    """Print only the explanations, as `explanations_to_json` makes them."""
    if form is not Output.TABLE:
        print_data(explanations, form)
        return
    for pod in explanations["pods"]:
        _pod(pod)
    for node in explanations["nodes"]:
        _node(node)
    for fleet in explanations["fleets"]:
        _fleet(fleet)


def _pod(pod: Json) -> None:
    name = f"{pod['namespace']}/{pod['pod']}"
    print_text(f"Pod {name}: {pod['verdict']}: {pod['because']}.\n")
    if pod["change"]:
        print_text(f"Smallest change that would place it: {_joined_changes(pod['change'])}.\n")
    elif pod["verdict"] == "unplaceable":
        print_text("No change that was tried would place it.\n")
    if pod["nodes"]:
        print_text(f"Existing nodes that do not take it: {_counts(pod['nodes'])}.\n")
    if pod["fleets"]:
        print_text("\n")
        rows = [
            [*(f[key] for key in ("fleet", "region", "code", "detail")), _remedies(f["ways"])]
            for f in pod["fleets"]
        ]
        print_table(("fleet", "region", "code", "why", "what would do"), rows)
    print_text("\n")


def _remedies(ways: Sequence[Sequence[str]]) -> str:
    return " | or: ".join(map(_joined_changes, ways))


def _joined_changes(changes: Sequence[str]) -> str:
    return " and ".join(changes)


def _counts(counts: Json) -> str:
    """Return how many there are of each code, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {code}" for code, count in ordered)


def _predicate(verdict: str) -> str:
    """Return the verdict on a node or a fleet as it follows the name in a sentence."""
    return verdict if verdict in _VERBS else f"is {verdict}"


def _node(node: Json) -> None:
    of = f" of {node['fleet']}" if node["fleet"] else ""
    verdict = f"{_predicate(node['verdict'])} ({node['code']}): {node['because']}"
    print_text(f"Node {node['node']}{of} {verdict}.\n")
    if node["drift"]:
        print_text(f"Launch template and instance type: {node['drift']}.\n")
    if node["actions"]:
        columns = ("action", "policy", "because")
        print_table(columns, [[action[key] for key in columns] for action in node["actions"]])
    print_text("\n")


def _fleet(fleet: Json) -> None:
    print_text(
        f"Fleet {fleet['fleet']} in {fleet['region']} {_predicate(fleet['verdict'])}: "
        f"{fleet['because']}.\n"
        f"Target {fleet['current']} -> {fleet['target']} (min {fleet['min']}, "
        f"max {'none' if fleet['max'] is None else fleet['max']}), {fleet['joined']} joined, "
        f"{fleet['launching']} launching, {fleet['state']}; "
        f"{fleet['hourly_usd']:.4f} USD per hour.\n"
    )
    if fleet["pods"]:
        print_text(f"Pending pods that get a place on it: {fleet['pods']}.\n")
    if fleet["nodes"]:
        counts = _counts(fleet["nodes"])
        print_text(f"Its nodes: {counts} (reconciler explain node says more).\n")
    if fleet["refused"]:
        counts = _counts(fleet["refused"])
        print_text(f"Pods without a place that it does not take: {counts}.\n")
    if update := fleet.get("rolling_update"):
        print_text(f"Rolling update: {update['state']}, {update['because']}.\n")
    print_text("\n")
