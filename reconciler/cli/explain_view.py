"""Explanations for people: the answer first, then the numbers behind it."""

import sys

from reconciler.cli.output import Output, print_encoded, print_table
from reconciler.model.plan import Plan
from reconciler.planner.explain.answers import (
    Changes,
    Explanations,
    FleetExplanation,
    NodeExplanation,
    PodExplanation,
)
from reconciler.records.explanations import encode_explained_plan, encode_explanations
from reconciler.records.plan import action_to_json


def print_explained(plan: Plan, explanations: Explanations, *, form: Output) -> None:
    """The plan's JSON with the explanations in it; for people only the explanations."""
    if form is not Output.TABLE:
        print_encoded(encode_explained_plan(plan, explanations), form)
        return
    print_explanations(explanations, form=form)


def print_explanations(explanations: Explanations, *, form: Output) -> None:
    """The explanations alone."""
    if form is not Output.TABLE:
        print_encoded(encode_explanations(explanations), form)
        return
    for pod in explanations.pods:
        _pod(pod)
    for node in explanations.nodes:
        _node(node)
    for fleet in explanations.fleets:
        _fleet(fleet)


def _pod(pod: PodExplanation) -> None:
    sys.stdout.write(f"Pod {pod.pod}: {pod.verdict}: {pod.because}.\n")
    if pod.change:
        sys.stdout.write(f"Smallest change that would place it: {_together(pod.change)}.\n")
    elif pod.verdict == "unplaceable":
        sys.stdout.write("No change that was tried would place it.\n")
    if pod.nodes:
        counts = ", ".join(f"{count} {code}" for code, count in pod.nodes.items())
        sys.stdout.write(f"Existing nodes that do not take it: {counts}.\n")
    if pod.fleets:
        sys.stdout.write("\n")
        rows = [
            (f.fleet, f.region, f.code, f.detail, " | or: ".join(map(_together, f.ways)))
            for f in pod.fleets
        ]
        print_table(("fleet", "region", "code", "why", "what would do"), rows)
    sys.stdout.write("\n")


def _together(changes: Changes) -> str:
    return " and ".join(changes)


def _node(node: NodeExplanation) -> None:
    of = f" of {node.fleet}" if node.fleet else ""
    sys.stdout.write(f"Node {node.node}{of}: {node.verdict}: {node.code}: {node.because}.\n")
    if node.disruption is not None:
        sys.stdout.write(f"Disruption: {node.disruption}.\n")
    if node.drift:
        sys.stdout.write(f"Launch template and instance type: {node.drift}.\n")
    if node.actions:
        rows = [(action_to_json(a)["action"], a.policy, a.because) for a in node.actions]
        print_table(("action", "policy", "because"), rows)
    sys.stdout.write("\n")


def _fleet(fleet: FleetExplanation) -> None:
    plan = fleet.plan
    sys.stdout.write(
        f"Fleet {plan.fleet} in {plan.region}: {fleet.verdict}: {fleet.because}.\n"
        f"Target {plan.current} -> {plan.target} (min {plan.min}, "
        f"max {'none' if plan.max is None else plan.max}), {plan.joined} joined, "
        f"{plan.launching} launching, {plan.state}; {fleet.hourly_usd:.4f} USD per hour.\n"
    )
    if fleet.pods:
        sys.stdout.write(f"Pending pods that get a place on it: {fleet.pods}.\n")
    if fleet.nodes:
        counts = ", ".join(f"{count} {code}" for code, count in fleet.nodes.items())
        sys.stdout.write(f"Its nodes: {counts} (reconciler explain node says more).\n")
    if fleet.refused:
        counts = ", ".join(f"{count} {code}" for code, count in fleet.refused.items())
        sys.stdout.write(f"Pods without a place that it does not take: {counts}.\n")
    if plan.update is not None:
        sys.stdout.write(f"Rolling update: {plan.update.state}, {plan.update.because}.\n")
    sys.stdout.write("\n")
