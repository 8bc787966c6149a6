"""What may be wrong with the running program, each with its cause and what to do about it.

There is one rule per kind of problem; `verdict.py` decides which is shown first.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Final

from reconciler.loops.describe import describe
from reconciler.loops.reason_words import usual_remedy
from reconciler.model.actions import AnyAction, SetCapacity, TerminateInstance
from reconciler.model.errors import (
    Forbidden,
    InsufficientCapacity,
    ObservationError,
    OutcomeUnknown,
    ReconcilerError,
    Throttled,
    Unavailable,
)
from reconciler.model.ids import Region
from reconciler.model.text import duration
from reconciler.planner.clocks import SKEW_MAX
from reconciler.planner.demand import FLEET
from reconciler.planner.fleets.launch_errors import names_quota
from reconciler.web.causes.cause import BoardMoment, Cause, Rule
from reconciler.web.causes.failing_calls import causes_of_calls, state_not_saved
from reconciler.web.causes.plan_causes import PLAN_CAUSES, planning_failures
from reconciler.web.causes.waiting import WAITING_RULES
from reconciler.web.failing import PastAction

SECOND_LOOP_FAILS_SECONDS: Final = 600.0
"""A forge that restarts, or a push that loses against others for a while, is no trouble."""
STARTING_SECONDS: Final = 120.0
"""How long the first cycle may take; afterwards its absence is a failure."""
ALIKE_MAX: Final = 3
"""A right that is missing is denied for each instance, and would hide all other causes."""
POLICY_REMEDY: Final = "compare the role's policy with the one of terraform/reconciler"
CREDENTIALS_REMEDY: Final = "check this machine's clock and the source of its credentials"
NOT_OF_THE_POLICY: Final = (
    "RequestExpired",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "AuthFailure",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "NoCredentialsError",
    "credentials have expired",
)
"""In AWS's and our own words, what no policy allows: a wrong clock, or old credentials."""


def _stuck(seen: BoardMoment) -> Iterator[Cause]:
    if not seen.alive:
        yield Cause(
            kind="loop-stuck",
            level="failing",
            headline="The loop is stuck",
            detail="no cycle began or ended lately",
            remedy="the liveness probe restarts it; keep the log of this container",
        )


def _cycles(seen: BoardMoment) -> Iterator[Cause]:
    """Yield failing cycles: which system does not answer, or refuses."""
    view = seen.view
    error = view.last_cycle.error if view.last_cycle is not None else None
    if error is not None and view.errors_in_a_row:
        yield _of_cycle_error(error, view.errors_in_a_row)
    elif view.succeeded_at is None and seen.success_age_seconds > STARTING_SECONDS:
        yield Cause(
            kind="no-success",
            level="failing",
            headline="No cycle has succeeded since the start",
            detail="neither the API server nor EC2 has answered in full",
            remedy="look at the log for what it waits for",
        )


def _of_cycle_error(error: ReconcilerError, times: int) -> Cause:
    count = "last cycle" if times == 1 else f"last {times} cycles"
    detail = f"the {count} failed: {error}"
    if isinstance(error, ObservationError):
        denied = re.search(r"[:(] ?40[13] ", detail) is not None  # not "for 403 s"
        return Cause(
            kind="api-server-unreachable",
            level="failing",
            headline="API server denies lists" if denied else "API server unreachable",
            detail=detail,
            remedy="nothing is changed until it answers; running nodes stay as they are",
        )
    if isinstance(error, Forbidden):
        return Cause(
            kind="ec2-denied",
            level="failing",
            headline=f"EC2 denies {api_call(error.where)}",
            detail=detail,
            remedy=denied_remedy(detail),
        )
    silent = isinstance(error, Unavailable | Throttled | OutcomeUnknown)
    return Cause(
        kind="ec2-silent" if silent else "cycle-failed",
        level="failing",
        headline="EC2 does not answer" if silent else "Cycles fail",
        detail=detail,
        remedy="nothing is bought or removed until cycles succeed again",
    )


def denied_remedy(text: str) -> str:
    """Return what to do about a call that AWS denies, by its text."""
    return CREDENTIALS_REMEDY if any(each in text for each in NOT_OF_THE_POLICY) else POLICY_REMEDY


def _wrong_place(seen: BoardMoment) -> Iterator[Cause]:
    plan = seen.view.plan
    if plan is None:
        return
    if plan.binding.contradicted:
        yield Cause(
            kind="wrong-cluster",
            level="failing",
            headline="Not proven that this cluster runs the fleets' instances",
            detail=plan.binding.because,
            remedy="check kube-context and config; nothing is removed meanwhile",
        )
    if abs(plan.clock_skew_seconds) > SKEW_MAX.total_seconds():
        yield Cause(
            kind="clock-wrong",
            level="degraded",
            headline="This machine's clock is wrong",
            detail=f"it is {plan.clock_skew_seconds} s ahead of EC2's and the API server's",
            remedy="fix time synchronisation; nothing is removed meanwhile",
        )


def _election(seen: BoardMoment) -> Iterator[Cause]:
    """Yield why a replica does not act."""
    ours = seen.leadership
    if not ours.enabled or ours.leads or seen.view.config.dry_run:
        return
    known = f"current leader: {ours.holder or 'unknown'}"
    detail = f"{ours.trouble}; {known}" if ours.trouble else known
    if ours.lost:
        yield Cause(
            kind="lease-lost",
            level="degraded",
            headline="Lease lost",
            detail=detail,
            remedy="this replica changes nothing until it leads again",
        )
    else:
        yield Cause(
            kind="not-leader",
            level="degraded" if ours.trouble else "standby",
            headline="Not the leader",
            detail=detail,
            remedy="this replica watches and takes over when the leader stops",
        )


def _failed_actions(seen: BoardMoment) -> Iterator[Cause]:
    failing = seen.view.failing
    yield from causes_of_calls(past for past in failing if past.fails_each_time)
    yield from _few_alike(cause_of_failure(past) for past in failing if not past.fails_each_time)


def _few_alike(causes: Iterable[Cause]) -> Iterator[Cause]:
    """Yield the first causes of each headline; the last of them says how many more there are."""
    by_headline: dict[str, list[Cause]] = {}
    for cause in causes:
        by_headline.setdefault(cause.headline, []).append(cause)
    for alike in by_headline.values():
        *shown, last = alike[:ALIKE_MAX]
        yield from shown
        more = len(alike) - ALIKE_MAX
        yield replace(last, detail=f"{last.detail} (and {more} more)") if more > 0 else last


def cause_of_failure(past: PastAction) -> Cause:
    """Return a failed action as a cause."""
    outcome = past.outcome
    text = describe(outcome.action)
    detail = failed_action_text(past)
    cloud = isinstance(outcome.action, SetCapacity | TerminateInstance)
    if outcome.error == Forbidden.__name__:
        return Cause(
            kind="ec2-denied" if cloud else "action-failed",
            level="degraded",
            headline=_denial(outcome.action),
            detail=detail,
            remedy=denied_remedy(detail) if cloud else _denied_by_the_api_server(detail),
        )
    if outcome.error == InsufficientCapacity.__name__ and names_quota(outcome.detail):
        return Cause(
            kind="quota-reached",
            level="degraded",
            headline="The account's quota is reached",
            detail=detail,
            remedy=usual_remedy("fleet-unavailable", "quota"),
        )
    if outcome.error == InsufficientCapacity.__name__:
        return Cause(
            kind="no-capacity",
            level="degraded",
            headline="EC2 has no capacity",
            detail=detail,
            remedy="the fleet is asked again after its cool-off; more sizes or zones help",
        )
    return Cause(
        kind="action-failed", level="degraded", headline=f"{text.name} fails", detail=detail
    )


def _denied_by_the_api_server(text: str) -> str:
    """Return what to do about a 403 of the API server, by its text.

    Admission webhooks and policies name themselves.
    """
    if "admission" in text.lower():
        return "look at the admission webhook or policy that is named; it is tried again by itself"
    return "compare the ClusterRole with `reconciler manifest`"


def _denial(action: AnyAction) -> str:
    """Return which system denies which of its calls."""
    name = describe(action).name
    if not isinstance(action, SetCapacity | TerminateInstance):
        return f"The API server denies {CALLS.get(name, name)}"
    if action.provider == "asg":
        return f"Auto Scaling denies {GROUP_CALLS[name]}"
    return f"EC2 denies {CALLS[name]}"


CALLS: Final = {
    "set-capacity": "ModifyFleet",
    "terminate-instance": "TerminateInstances",
    "evict-pod": "pod evictions",
    "delete-pod": "pod deletions",
    "taint-node": "node taints",
    "untaint-node": "node taints",
    "annotate-node": "node annotations",
    "delete-node": "node deletions",
}
"""The calls that actions make, in the names of the other system."""
GROUP_CALLS: Final = {
    "set-capacity": "SetDesiredCapacity",
    "terminate-instance": "TerminateInstanceInAutoScalingGroup",
}
"""The same for Auto Scaling groups."""


def failed_action_text(past: PastAction) -> str:
    """Return a failed action, with its cause."""
    text = describe(past.outcome.action)
    cause = past.outcome.detail or past.outcome.error or "no cause was given"
    return f"{text.name} {text.named} {past.outcome.kind}: {cause}"


def api_call(where: str) -> str:
    """Return the name of an AWS call as AWS writes it, from the place of an error."""
    first = where.split(maxsplit=1)[0] if where else "a call"
    if "_" not in first:
        return first
    return "".join(part.capitalize() for part in first.split("_"))


def _queue(seen: BoardMoment) -> Iterator[Cause]:
    """Yield why notices of interruptions are not read, or not deleted."""
    if seen.view.queue_trouble:
        yield Cause(
            kind="queue-unreadable",
            level="degraded",
            headline="Interruption queue fails",
            detail=seen.view.queue_trouble,
            remedy="check interruption.queue_url and the role's rights to the queue and to"
            " lifecycle hooks; nodes may be interrupted unannounced meanwhile",
        )


def _config(seen: BoardMoment) -> Iterator[Cause]:
    config, faults = seen.view.config, seen.view.config.faults
    if faults:
        in_force = "the last valid config stays in force"
        if config.commit:
            in_force = f"{config.file} stays in force"
        elif seen.view.second_loop:
            in_force = f"the file {config.file} is in force although a branch is followed"
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        yield Cause(
            kind="config-refused",
            level="degraded",
            headline="Config refused",
            detail=faults[0] + more,
            remedy=f"{in_force}; {config.remedy or '`reconciler validate` lists every fault'}",
        )


def _silent_regions(seen: BoardMoment) -> Iterator[Cause]:
    plan, snapshot = seen.view.plan, seen.view.snapshot
    cloud = snapshot.cloud if snapshot is not None else None
    if plan is None or cloud is None:
        return
    reasons = {each.name: each.detail for each in cloud.ignored if each.kind == "Region"}
    by_reason: dict[tuple[str, bool], list[Region]] = {}
    for region in sorted(cloud.silent):
        side = "Auto Scaling" if ("ec2-fleet", region) in cloud.answered_in_part else "EC2"
        denied = reasons.get(region, "").startswith(f"{Forbidden.__name__}:")
        by_reason.setdefault((side, denied), []).append(region)
    for (side, denied), regions in by_reason.items():
        verb = "denies calls" if denied else "does not answer"
        why = reasons.get(regions[0], "")
        yield Cause(
            kind="ec2-denied" if denied else "ec2-silent",
            level="degraded",
            headline=f"{side} {verb} in {', '.join(regions)}",
            detail="its fleets there are asked for nothing and no node of them is removed"
            + (f": {why}" if why else ""),
            remedy=denied_remedy(why)
            if denied
            else "check network, endpoint and AWS's health page",
        )


def _unseen_departing(seen: BoardMoment) -> Iterator[Cause]:
    """Yield nodes of fleets that are to go and that the role may not read."""
    plan, snapshot = seen.view.plan, seen.view.snapshot
    cloud = snapshot.cloud if snapshot is not None else None
    if plan is None or snapshot is None or cloud is None:
        return
    denied = next((each for each in cloud.ignored if each.kind == "Provider"), None)
    known = {fleet.name for fleet in cloud.fleets} | {fleet.fleet for fleet in plan.fleets}
    going = seen.view.config.allow_destroy - known
    of_none = (node for node in snapshot.cluster.nodes if node.name not in plan.fleet_of_node)
    left = sorted(going & {node.labels.get(FLEET) for node in of_none})
    if denied is None or not left:
        return
    side = "EC2" if denied.name == "ec2-fleet" else "Auto Scaling"
    yield Cause(
        kind="ec2-denied",
        level="degraded",
        headline=f"{side} denies calls",
        detail=f"nodes of {', '.join(left)} are not drained, which the config no longer names:"
        f" {denied.detail}",
        remedy=denied_remedy(denied.detail),
    )


def _second_loop(seen: BoardMoment) -> Iterator[Cause]:
    """Yield why the second loop's turns fail, once every one has for some minutes."""
    seconds = seen.second_loop_failing_seconds
    if seconds >= SECOND_LOOP_FAILS_SECONDS:
        why = seen.view.second_loop.removeprefix("failed: ")
        yield Cause(
            kind="second-loop-fails",
            level="degraded",
            headline="Second loop fails",
            detail=f"for {duration(timedelta(seconds=seconds))}: {why}",
            remedy="check the repository's address, its credentials and what the remote says;"
            " changes of the branch may not come into force meanwhile",
        )


RULES: Final[tuple[Rule, ...]] = (
    _stuck,
    _cycles,
    _wrong_place,
    _election,
    planning_failures,
    _failed_actions,
    state_not_saved,
    _silent_regions,
    _unseen_departing,
    _queue,
    _config,
    _second_loop,
    *WAITING_RULES,
    *PLAN_CAUSES,
)
"""Within one level, causes are in this order."""
