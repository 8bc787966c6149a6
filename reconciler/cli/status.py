"""`reconciler status`: what the running reconciler is doing and why."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reconciler.cli.config_argument import ConfigArgument
from reconciler.cli.output import Output, OutputOption, print_data, print_table, wanted
from reconciler.config.loader import DEFAULT_FILE
from reconciler.gitops.status import STAGES
from reconciler.records.binding import verdict_line

if TYPE_CHECKING:
    from reconciler.config.schema import SectorConfig

EXAMPLE = "reconciler status --listen 127.0.0.1:9235 --output json"

Json = dict[str, Any]


def command(
    config_file: ConfigArgument = None,
    *,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            envvar="RECONCILER_LISTEN",
            help="Where it listens. Default: the config's `listen`, else 127.0.0.1:9235.",
        ),
    ] = None,
    config: Annotated[
        str,
        typer.Option(metavar="FILE", envvar="RECONCILER_CONFIG", help="Sector config, for listen."),
    ] = DEFAULT_FILE,
    listen_token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar="RECONCILER_LISTEN_TOKEN_FILE",
            help="Bearer token that it asks for. Default: the config's `listen_token_file`.",
        ),
    ] = None,
    output: OutputOption = None,
) -> None:
    """Show what the running reconciler is doing and why: its last plan, cycle and actions.

    In a cluster: kubectl port-forward the reconciler's port 9235 first.
    """
    from reconciler.web.asking import ask_status  # noqa: PLC0415 - slow to load

    address, token_file = listen, listen_token_file
    if address is None:
        read = _config_of(config_file or config)
        address = read.listen
        if token_file is None and read.listen_token_file is not None:
            token_file = Path(read.listen_token_file)
    status = ask_status(address, None if token_file is None else _token(token_file))
    if (form := wanted(output)) is not Output.TABLE:
        print_data(status, form)
    else:
        _print(status)


def _config_of(config: str) -> "SectorConfig":
    """The config; the defaults when there is no such file and none was named."""
    from reconciler.config.loader import load_config  # noqa: PLC0415 - slow to load
    from reconciler.config.schema import SectorConfig  # noqa: PLC0415 - slow to load

    if config == DEFAULT_FILE and not Path(config).exists():
        return SectorConfig()
    return load_config(config)


def _token(file: Path) -> bytes:
    """The bearer token in a file; UsageError when there is none."""
    from reconciler.web.access import AccessRules, read_token  # noqa: PLC0415 - slow to load

    AccessRules(token_file=file).check_token_file()
    return read_token(file) or b""


def _print(status: Json) -> None:
    cycle, plan = status["cycle"], status["plan"]
    mode = "dry run" if status["dry_run"] else "live"
    election = status["leader_election"]
    if election["enabled"] and not status["dry_run"]:
        held = f" (the Lease is held by {election['holder'] or 'nobody known'})"
        mode += ", leader" if election["leads"] else f", standby{held}"
    health = f"{_word(status['alive'], 'alive')}, {_word(status['ready'], 'ready')}"
    last = status["last_success_at"] or "never"
    lines = [f"cluster {verdict_line(status['binding'])}"] if status["binding"] else []
    lines += [
        *_verdict_lines(status),
        f"fleet-reconciler {status['version']}, cluster {status['cluster']}, {mode}: {health}",
        f"cycle {cycle['number']}, last success {last}",
    ]
    if status["config"].get("commit"):
        lines.append(f"config {status['config']['file']}")
    if cycle["error"]:
        lines.append(f"last error ({cycle['errors_in_a_row']} in a row): {cycle['error']}")
    if status["second_loop"]:
        lines.append(f"second loop: {status['second_loop']}")
    lines += [f"  {_progress_line(each)}" for each in status["progress"]]
    if not status["config"]["valid"]:
        lines.append(f"{status['config']['file']} is refused; the last good one is in force:")
        lines.extend(f"  {fault}" for fault in status["config"]["faults"])
    sys.stdout.write("\n".join(lines) + "\n")
    if plan is not None:
        _print_plan(plan)
    if status["drift"]:
        sys.stdout.write("\n")
        columns = ("fleet", "region", "kind", "detail")
        print_table(columns, [[drift[key] for key in columns] for drift in status["drift"]])
    if status["actions"]:
        _print_actions(status["actions"])


def _verdict_lines(status: Json) -> list[str]:
    """Whether it works, what is wrong, and the last action that came to nothing."""
    verdict, failed = status["verdict"], status["last_failed_action"]
    lines = [f"status: {verdict['text']}", *(f"  {each}" for each in verdict["problems"])]
    if failed is not None:
        cause = failed["detail"] or "no cause was given"
        what = f"{failed['action']} {failed['subject']}"
        lines.append(f"last failed action: {failed['at']} {what}: {cause}")
    return lines


def _progress_line(progress: Json) -> str:
    reached = STAGES[: STAGES.index(progress["stage"]) + 1]
    detail = f" ({progress['detail']})" if progress["detail"] else ""
    return f"{progress['config']}: {' → '.join(reached)}{detail}"


def _print_plan(plan: Json) -> None:
    sys.stdout.write("\n")
    columns = ("fleet", "region", "state", "joined", "launching", "current", "target")
    print_table(columns, [[fleet[key] for key in columns] for fleet in plan["fleets"]])
    for fleet in plan["fleets"]:
        if fleet.get("removal"):
            sys.stdout.write(f"{fleet['fleet']} is to go: {fleet['removal']}\n")
        if update := fleet.get("rolling_update"):
            sys.stdout.write(
                f"{fleet['fleet']} is updated to version {update['version']}: {update['state']}, "
                f"{update['because']}; {update['new']} of {update['old'] + update['new']} nodes\n"
            )
    cost = plan["cost"]
    sys.stdout.write(
        f"\n{plan['pods_pending']} pods pending, {plan['pods_unplaceable']} of them unplaceable; "
        f"{cost['hourly_usd_after']:.4f} USD per hour"
        f" (at least {cost['hourly_usd_lower_bound']:.4f})\n"
    )
    for each in plan.get("fallbacks", ()):
        sys.stdout.write(
            f"{each['nodes']} nodes of {each['fleet']} in {each['region']} stand in for "
            f"{each['from']}: {each['extra_hourly_usd']:.4f} USD per hour more"
            f"{', ' + str(each['going_back']) + ' go back' if each.get('going_back') else ''}"
            f"{'; ' + each['waits'] if each.get('waits') else ''}\n"
        )
    for each in plan.get("headroom", ()):
        if each["missing"]:
            sys.stdout.write(
                f"headroom of {each['sector']} ({each['asked']}): {each['missing']} of "
                f"{each['pieces']} pieces missing: {each['because']}\n"
            )
    rows = [
        (f"{u['namespace']}/{u['pod']}", r["fleet"], r["code"], r["detail"])
        for u in plan["unplaceable"]
        for r in u["reasons"]
    ]
    if rows:
        sys.stdout.write("\n")
        print_table(("unplaceable pod", "fleet", "code", "why"), rows)


def _print_actions(actions: list[Json]) -> None:
    sys.stdout.write("\n")
    columns = ("at", "action", "subject", "outcome", "policy", "because")
    print_table(columns, [[action[key] for key in columns] for action in actions[:20]])


def _word(good: bool, word: str) -> str:  # noqa: FBT001 - a word for a flag
    return word if good else f"NOT {word}"
