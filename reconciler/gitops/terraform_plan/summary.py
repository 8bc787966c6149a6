"""Writes a plan for reviewers: Markdown, most important first, bounded in size. Pure."""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

from reconciler.gitops.markdown import code
from reconciler.gitops.terraform_plan.finding import Finding, refused
from reconciler.gitops.terraform_plan.planned import PlannedFleet
from reconciler.gitops.terraform_plan.replay import replay_lines
from reconciler.gitops.terraform_plan.report import PlanReport, report_json
from reconciler.model.text import counted_noun

BYTES_MAX = 60_000
"""GitHub takes comments of 65,536 characters."""
_ROWS_MAX = 100
_TAGS_MAX = 20
"""How many tags are shown per fleet; report.json has them all."""
_PODS_MAX = 20
"""How many pods are named per fleet; report.json has them all."""
_HEADINGS = (
    ("replace", "Replaced"),
    ("delete", "Destroyed"),
    ("forget", "Let go"),
    ("create", "Created"),
    ("update", "Changed"),
)


def summary(report: PlanReport) -> str:
    """Return the summary in Markdown; if too long, it is cut at a line before cost and digest."""
    lines = [
        *_head(report),
        *_findings("Refused", refused(report.findings)),
        *_findings("Warnings", tuple(f for f in report.findings if f.severity == "warning")),
        *_fleets(report),
        *_pods(report),
        *replay_lines(report.replay),
    ]
    return _bounded(lines, [*_cost(report), *_foot(report)])


def _head(report: PlanReport) -> list[str]:
    cluster = f" for {code(report.facts.cluster)}" if report.facts.cluster else ""
    if not report.allowed:
        verdict = "**Refused**: this plan will not be applied."
    elif report.changes:
        verdict = f"**{_counts(report)}**"
    elif report.is_stale:
        verdict = "**No changes by these files**, which are not what the config renders to."
    else:
        verdict = "**No changes.** The infrastructure is what the config asks for."
    commit = report.inputs.commit[:12]
    at = f" at {code(commit)} {code(report.subject)}" if commit else ""
    return [f"## Fleet plan{cluster}{at}".rstrip(), "", verdict, ""]


def _counts(report: PlanReport) -> str:
    """Return the fleets by what happens to them, each with the resources behind that."""
    words = {"create": "to create", "update": "to change", "replace": "to replace"}
    words |= {"delete": "to destroy", "forget": "to let go", "import": "to import"}
    fleets = Counter[str](_shown_step(fleet) for fleet in report.fleets)
    fleets["import"] = sum(fleet.importing for fleet in report.fleets)
    parts = []
    for step, text in words.items():
        resources = counted_noun(report.counts.get(step, 0), "resource")
        if fleets[step]:
            behind = f" ({resources})" if report.counts.get(step) else ""
            parts.append(f"{counted_noun(fleets[step], 'fleet')} {text}{behind}")
        elif report.counts.get(step):
            parts.append(f"{resources} {text}")
    return ", ".join(parts) or "Changes of outputs only"


def _findings(title: str, findings: tuple[Finding, ...]) -> list[str]:
    if not findings:
        return []
    shown = [
        f"- {code(f.code)} {code(f.where)}: {code(f.message, 1000)}" for f in findings[:_ROWS_MAX]
    ]
    return [f"### {title}", "", *shown, *_and_more(len(findings)), ""]


def _fleets(report: PlanReport) -> list[str]:
    lines: list[str] = []
    for step, heading in _HEADINGS:
        fleets = [fleet for fleet in report.fleets if _shown_step(fleet) == step]
        if not fleets:
            continue
        lines += [
            f"### {heading}",
            "",
            "| fleet | min / now / max | kind | AMI | tags | changes |",
            "|---|---|---|---|---|---|",
            *(_row(report, fleet) for fleet in fleets[:_ROWS_MAX]),
            *_and_more(len(fleets)),
            "",
        ]
    same = sum(1 for fleet in report.fleets if _shown_step(fleet) == "no-op")
    return [*lines, *([f"{counted_noun(same, 'fleet')} unchanged.", ""] if same else [])]


def _shown_step(fleet: PlannedFleet) -> str:
    """Return the step; a fleet whose launch template changes counts as changed for readers."""
    return "update" if fleet.step in {"no-op", "read"} and fleet.changed else fleet.step


def _row(report: PlanReport, fleet: PlannedFleet) -> str:
    limits = report.limits_of(fleet)
    now = fleet.capacity_before if fleet.fleet_id else f"{fleet.capacity_after} (new)"
    numbers = (
        limits.min_capacity if limits else "?",
        "?" if now is None else now,
        "?" if limits is None else ("∞" if limits.max_capacity is None else limits.max_capacity),
    )
    kind = {True: "spot", False: "on-demand", None: "?"}[fleet.spot]
    cells = (
        code(fleet.name),
        " / ".join(map(str, numbers)),
        kind,
        _moved(fleet.ami_before, fleet.ami_after),
        _tags(fleet),
        code(", ".join(fleet.changed)),
    )
    return f"| {' | '.join(cells)} |"


def _tags(fleet: PlannedFleet) -> str:
    """Return all tags of a new or removed fleet, else those that change."""
    before, after = fleet.tags_before, fleet.tags_after
    if not before or not after:
        return _list(f"{key}={value}" for key, value in sorted((after or before).items()))
    keys = sorted(key for key in set(before) | set(after) if before.get(key) != after.get(key))
    return _list(f"{key}: {before.get(key, '-')} → {after.get(key, '-')}" for key in keys)


def _list(texts: Iterable[str]) -> str:
    found = list(texts)
    more = [f"… and {len(found) - _TAGS_MAX} more"] if len(found) > _TAGS_MAX else []
    return " ".join([*(code(text) for text in found[:_TAGS_MAX]), *more])


def _moved(before: str, after: str) -> str:
    if before and after and before != after:
        return f"{code(before)} → {code(after)}"
    return code(after or before) if after or before else ""


def _pods(report: PlanReport) -> list[str]:
    """Return what happens to the pods on the nodes of fleets that the plan touches."""
    if not report.impacts:
        return []
    lines = ["### Pods that run there now", ""]
    for impact in report.impacts[:_ROWS_MAX]:
        places = ", ".join(f"{count} in {code(name)}" for name, count in impact.places.items())
        where = f": when they go, {places}" if places else ""
        lines.append(f"- {code(impact.fleet)}: {impact.pods} pods on {impact.nodes} nodes{where}")
        lines += [
            f"  - **nowhere to go:** {code(pod)} ({code(codes)})"
            for pod, codes in impact.unplaceable[:_PODS_MAX]
        ]
        rest = len(impact.unplaceable) - _PODS_MAX
        lines += [f"  - … and {rest} more with nowhere to go"] if rest > 0 else []
    return [*lines, *_and_more(len(report.impacts)), ""]


def _cost(report: PlanReport) -> list[str]:
    if not report.facts.fleets:
        return []
    at_min, at_max = report.usd_per_hour()
    now, after = report.usd_per_hour_now(), report.usd_per_hour_after()
    started = f"{_usd(after)} at those after the apply, " if after != now else ""
    costs = f"{_usd(at_min)} at min, {_usd(now)} at the targets now, {started}{_usd(at_max)} at max"
    prices = report.facts.prices
    of_spot = any(fleet.spot for fleet in report.fleets if fleet.step != "delete")
    estimated = "; those of spot are the catalogue's estimates" if of_spot else ""
    dated = f" (on-demand prices of {prices}{estimated})" if prices else ""
    return [f"Cost per hour of all fleets: {costs}{dated}.", ""]


def _usd(value: Decimal | None) -> str:
    return "unknown" if value is None else f"{value:,.2f} USD"


def _foot(report: PlanReport) -> list[str]:
    state = report.inputs.state
    digest = code(report_json(report)["digest"])
    version = code(report.terraform_version)
    return [f"Digest {digest}, state serial {state.serial}, Terraform {version}."]


def _and_more(count: int) -> list[str]:
    return [f"… and {count - _ROWS_MAX} more"] if count > _ROWS_MAX else []


def _bounded(lines: list[str], last: list[str]) -> str:
    """Return as many whole lines as fit before the last ones."""
    end = "\n".join(last).rstrip() + "\n"
    text = "\n".join([*lines, ""])
    if len((text + end).encode()) <= BYTES_MAX:
        return text + end
    end = f"\n… cut: the whole plan is in report.json.\n\n{end}"
    kept = text.encode()[: BYTES_MAX - len(end.encode())].decode(errors="ignore")
    return kept[: kept.rindex("\n") + 1] + end
