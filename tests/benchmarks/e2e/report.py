"""The tables: for the terminal and, between marks of their own, in docs/benchmarks.md.

Latency and churn have a block each: a run of one leaves the other's figures as they are.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from reconciler.demo.measures import percentile
from tests.benchmarks.e2e.bursts import Reacted
from tests.benchmarks.e2e.findings import Findings, Part, Stretch
from tests.benchmarks.report import PAGE, machine

_PROMISES = ("what", "promised", "measured")
_BURSTS = (
    "burst",
    "times",
    "longest window",
    "beyond the window p50",
    "p99",
    "from creation p50",
    "p99",
    "calls per burst",
)
_STRETCHES = ("while", "for", "CPU cores", "RSS first MiB", "last", "most")
_CORES_MAX = 0.3
_MIB_MAX = 400


def marks(part: Part) -> tuple[str, str]:
    """The lines between which a part's tables are."""
    return (
        f"<!-- e2e {part}: written by python -m tests.benchmarks.e2e {part} --write -->",
        f"<!-- end of e2e {part} -->",
    )


def markdown(part: Part, found: Findings) -> str:
    """A part's tables."""
    body = _latency(found) if part == "latency" else _churn(found)
    lines = [machine(), "", f"{found.nodes:,} nodes, {found.pods:,} running pods.", "", *body]
    if part in found.missing:
        lines += ["", f"Ended early: {found.missing[part]}"]
    return "\n".join(lines) + "\n"


def _latency(found: Findings) -> Iterator[str]:
    yield from _table(_PROMISES, list(_latency_promises(found)))
    yield ""
    yield from _table(_BURSTS, _burst_rows(found.bursts))
    yield ""
    stretches = (*_quiet_stretches(found), ("all bursts are pending", found.after_bursts))
    yield from _table(_STRETCHES, [_usage(name, stretch) for name, stretch in stretches if stretch])


def _quiet_stretches(found: Findings) -> Iterator[tuple[str, Stretch | None]]:
    """Those in which nothing is pending."""
    yield "nothing happens", found.idle
    if found.churned is not None:
        yield f"churn of {found.churned.rate:.0f} pods a second", found.churned.usage


def _latency_promises(found: Findings) -> Iterator[tuple[str, ...]]:
    if found.first_plan_seconds is not None:
        yield "start to first plan", "< 10 s", f"{found.first_plan_seconds:.1f} s"
    slowest = [max(burst.beyond_window) for burst in found.bursts]
    if slowest:
        what = "beyond the window, slowest pod of each burst"
        yield f"{what}, p50", "< 0.5 s", _seconds(percentile(slowest, 0.5))
        yield f"{what}, p99", "< 1 s", _seconds(percentile(slowest, 0.99))
        largest = max(found.bursts, key=lambda each: each.burst.pods)
        what = f"cycles that raised for {largest.burst.pods:,} pods at once"
        yield what, "1", str(largest.raises)
    yield "largest resident size of the run", f"< {_MIB_MAX} MiB", f"{found.peak_mib:.0f} MiB"


def _churn(found: Findings) -> Iterator[str]:
    churned = found.churned
    if churned is None:
        return
    usage = churned.usage
    promises = [
        ("pods begun, and ended, a second", str(churned.wanted), f"{churned.rate:.1f}"),
        ("CPU", f"< {_CORES_MAX} core", f"{usage.cores:.2f} core"),
        ("largest resident size of the run", f"< {_MIB_MAX} MiB", f"{found.peak_mib:.0f} MiB"),
        (
            "resident size, first and last tenth of the time",
            "no growth",
            f"{usage.rss_first_mib:.0f} and {usage.rss_last_mib:.0f} MiB",
        ),
    ]
    yield from _table(_PROMISES, promises)
    yield ""
    rows = [_usage(name, stretch) for name, stretch in _quiet_stretches(found) if stretch]
    yield from _table(_STRETCHES, rows)
    yield ""
    course = ", ".join(f"{mib:.0f}" for mib in usage.rss_course_mib)
    minutes = usage.seconds / 60 / (len(usage.rss_course_mib) - 1)
    yield f"Resident size every {minutes:.1f} minutes of the churn: {course} MiB."


def _usage(name: str, each: Stretch) -> tuple[str, ...]:
    return (
        name,
        f"{each.seconds:.0f} s",
        f"{each.cores:.2f}",
        f"{each.rss_first_mib:.0f}",
        f"{each.rss_last_mib:.0f}",
        f"{each.rss_most_mib:.0f}",
    )


def _burst_rows(bursts: Sequence[Reacted]) -> list[tuple[str, ...]]:
    groups = groupby(bursts, key=lambda each: each.burst.pods)
    return [_burst_row(pods, list(group)) for pods, group in groups]


def _burst_row(pods: int, found: Sequence[Reacted]) -> tuple[str, ...]:
    beyond = [t for each in found for t in each.beyond_window]
    since = [t for each in found for t in each.from_creation]
    return (
        f"{pods:,} pod{'s' if pods > 1 else ''}",
        str(len(found)),
        _seconds(max(each.window_seconds for each in found)),
        _seconds(percentile(beyond, 0.5)),
        _seconds(percentile(beyond, 0.99)),
        _seconds(percentile(since, 0.5)),
        _seconds(percentile(since, 0.99)),
        ", ".join(str(n) for n in sorted({each.raises for each in found})),
    )


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(heading) + " |", "|" + " --- |" * len(heading)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def _seconds(value: float) -> str:
    return f"{value:.2f} s"


def write_page(part: Part, tables: str) -> None:
    """Put a part's tables between their marks in the page.

    Raises:
        ValueError: The page has lost its marks.
    """
    begin, end = marks(part)
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(begin)
    _, mark, tail = rest.partition(end)
    if not mark:
        raise ValueError(f"{PAGE.name} has no marks around the tables of {part}")
    PAGE.write_text(f"{head}{begin}\n\n{tables}\n{end}{tail}", encoding="utf-8")
