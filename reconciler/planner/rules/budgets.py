"""Budgets, as far as one pod alone can tell; `planner.budgets` counts the disruptions left."""

from reconciler.planner.rules.verdict import NO_OPINION, Ruling, Subject, Terms, block


def judge(subject: Subject, terms: Terms) -> Ruling:  # noqa: ARG001 - every rule has one shape
    """Block a pod under two budgets, which the Eviction API refuses, or under an unreadable one."""
    if not subject.budgets_readable:
        what = "cannot be read, or those that may cover it have too many expressions"
        return block("unreadable-budget", f"a disruption budget of its namespace {what}")
    if subject.budgets > 1:
        return block("two-budgets", f"{subject.budgets} disruption budgets cover it")
    return NO_OPINION
