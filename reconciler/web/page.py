"""The status page: one self-contained HTML document without scripts."""

import base64
import hashlib
import html
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reconciler.records.binding import verdict_line

Json = dict[str, Any]

REFRESH_SECONDS = 5

STYLE = """
:root { color-scheme: light dark; }
body { font: 14px/1.4 system-ui, sans-serif; margin: 1.5rem auto; max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 1.6rem; }
table { border-collapse: collapse; width: 100%; } td, th { text-align: left; padding: .2rem .6rem .2rem 0; vertical-align: top; border-bottom: 1px solid #8884; }
td.number { text-align: right; } .bad { color: #c62828; font-weight: 600; } .good { color: #2e7d32; }
"""  # noqa: E501 - one rule per line reads best

_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()

POLICY = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: nothing but this very style sheet is allowed."""


def page(status: Json) -> bytes:
    """The page for a status as `status_json` makes it."""
    cluster = status["cluster"] or "no cluster"
    title = f"fleet-reconciler: {cluster}"
    parts = [
        f"<h1>{_text(title)}</h1>",
        _cluster(status["binding"]),
        _verdict(status["verdict"]),
        _facts(status),
        _faults(status["config"]["faults"]),
        *_under_way(status),
        *_of_plan(status["plan"]),
        "<h2>Last actions</h2>",
        _table(
            ("at", "action", "on", "before", "after", "outcome", "policy", "because", "detail"),
            (
                [a[key] for key in ("at", "action", "subject", "before", "after")]
                + [a[key] for key in ("outcome", "policy", "because", "detail")]
                for a in status["actions"]
            ),
            "No action yet.",
        ),
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">'
        f"<title>{_text(title)}</title><style>{STYLE}</style>"
    )
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>'.encode()
    )


def _cluster(binding: Json | None) -> str:
    """Whether this is the fleets' cluster, before everything else."""
    if binding is None:
        return ""
    looks = "bad" if binding["verdict"] == "unproven" else "good"
    return f'<p class="{looks}">Cluster: {_text(verdict_line(binding))}</p>'


def _verdict(verdict: Json) -> str:
    """The first thing to read: whether it works, and if not, why."""
    kind = "good" if verdict["level"] == "ok" else "bad"
    items = "".join(f"<li>{_text(each)}</li>" for each in verdict["problems"])
    listed = f"<ul>{items}</ul>" if items else ""
    return f'<p class="{kind}">{_text(verdict["text"])}</p>{listed}'


def _facts(status: Json) -> str:
    cycle = status["cycle"]
    trouble = cycle["error"]
    rows = [
        ("version", status["version"]),
        ("regions", ", ".join(status["regions"])),
        ("mode", "dry run: nothing is changed" if status["dry_run"] else "live"),
        ("alive / ready", f"{_yes(status['alive'])} / {_yes(status['ready'])}"),
        ("role", _role(status["leader_election"])),
        ("cycles", cycle["number"]),
        ("last success", status["last_success_at"] or "never"),
        ("last error", trouble or "none"),
        ("last failed action", _failed(status["last_failed_action"])),
        ("config", f"{status['config']['file']}, loaded {status['config']['loaded_at']}"),
        ("second loop", status["second_loop"] or "does not run here"),
    ]
    return "<table>" + "".join(_row(each) for each in rows) + "</table>"


def _failed(action: Json | None) -> str:
    if action is None:
        return "none"
    cause = action["detail"] or "no cause was given"
    return f"{action['at']} {action['action']} {action['subject']}: {cause}"


def _role(election: Json) -> str:
    """What this replica is to the others, in words."""
    if not election["enabled"]:
        return "leader (there is no election)"
    if election["leads"]:
        return f"leader ({election['holder']})"
    trouble = f"; {election['trouble']}" if election["trouble"] else ""
    return f"standby, the Lease is held by {election['holder'] or 'nobody known'}{trouble}"


def _faults(faults: Sequence[str]) -> str:
    if not faults:
        return ""
    items = "".join(f"<li>{_text(each)}</li>" for each in faults)
    lead = "The config file is refused; the last good one is in force:"
    return f'<p class="bad">{lead}</p><ul>{items}</ul>'


def _under_way(status: Json) -> list[str]:
    """What goes on beside the daily ups and downs: nothing is shown while nothing does."""
    parts = []
    rows = list(_goings_on(status["plan"])) if status["plan"] else []
    if rows:
        parts += ["<h2>Under way</h2>", _table(("what", "state", "why"), rows, "")]
    if status["progress"] or status["drift"]:
        stages = [(p["config"], p["stage"], p["detail"]) for p in status["progress"]]
        drifts = [(d["fleet"], f"drift: {d['kind']}", d["detail"]) for d in status["drift"]]
        columns = ("config or fleet", "stage", "detail")
        parts += ["<h2>Second loop</h2>", _table(columns, [*stages, *drifts], "")]
    return parts


def _goings_on(plan: Json) -> Iterator[tuple[str, str, str]]:
    for fleet in plan["fleets"]:
        name = f"{fleet['fleet']} in {fleet['region']}"
        if update := fleet.get("rolling_update"):
            done = f"{update['new']} of {update['old'] + update['new']} nodes"
            what = f"rolling update of {name} to version {update['version']}, {done}"
            yield what, update["state"], update["because"]
        if fleet.get("removal"):
            yield f"removal of {name}", "drains", fleet["removal"]
    for each in plan["headroom"]:
        if each["missing"]:
            short = f"{each['missing']} of {each['pieces']} missing"
            yield f"headroom of {each['sector']} ({each['asked']})", short, each["because"]
    for each in plan["fallbacks"]:
        what = f"{each['nodes']} nodes of {each['fleet']} stand in for {each['from']}"
        state = f"{each['going_back']} go back to spot" if each["going_back"] else "on-demand"
        cost = f"{each['extra_hourly_usd']} USD per hour more"
        yield what, state, f"{cost}; {each['waits']}" if each["waits"] else cost


def _of_plan(plan: Json | None) -> list[str]:
    if plan is None:
        return ["<p>No plan yet.</p>"]
    cost = plan["cost"]
    fleets = ("fleet", "region", "state", "joined", "launching", "current", "target", "min", "max")
    sums = (
        f"{plan['pods_pending']} pods pending, {plan['pods_unplaceable']} of them unplaceable. "
        f"USD per hour: {cost['hourly_usd_before']} \u2192 {cost['hourly_usd_after']}, "
        f"at least {cost['hourly_usd_lower_bound']}."
    )
    return [
        "<h2>Fleets</h2>",
        _table(fleets, ([f[key] for key in fleets] for f in plan["fleets"]), "No fleets."),
        f"<p>{_text(sums)}</p>",
        "<h2>Unplaceable pods</h2>",
        _by_code(plan["unplaceable_by_code"]),
        _table(
            ("pod", "fleet", "code", "why"),
            (
                (f"{u['namespace']}/{u['pod']}", r["fleet"], r["code"], r["detail"])
                for u in plan["unplaceable"]
                for r in u["reasons"]
            ),
            "None.",
        ),
        "<h2>Held nodes</h2>",
        _table(
            ("node", "code"),
            ((h["node"] or h["instance"], h["code"]) for h in plan["held"]),
            "None.",
        ),
    ]


def _by_code(counts: Json) -> str:
    """How many pods each reason keeps waiting: thousands of lines say it less well."""
    if not counts:
        return ""
    return f"<p>{_text(', '.join(f'{count} {code}' for code, count in counts.items()))}</p>"


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> str:
    body = "".join(_row(each) for each in rows)
    if not body:
        return f"<p>{_text(empty)}</p>"
    head = "".join(f"<th>{_text(each)}</th>" for each in columns)
    return f"<table><tr>{head}</tr>{body}</table>"


def _row(cells: Sequence[object]) -> str:
    return "<tr>" + "".join(_cell(each) for each in cells) + "</tr>"


def _cell(value: object) -> str:
    kind = ' class="number"' if isinstance(value, int | float) else ""
    return f"<td{kind}>{_text('' if value is None else value)}</td>"


def _text(value: object) -> str:
    """Everything that reaches the page is escaped here."""
    return html.escape(str(value), quote=True)


def _yes(value: bool) -> str:  # noqa: FBT001 - a word for a flag
    return "yes" if value else "no"
