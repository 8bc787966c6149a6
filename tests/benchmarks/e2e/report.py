"""The tables: for the terminal and, between two marks of their own, in docs/benchmarks.md."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from reconciler.demo.measures import percentile
from tests.benchmarks.e2e.bursts import Reacted
from tests.benchmarks.report import PAGE, machine

BEGIN = "<!-- e2e: written by python -m tests.benchmarks.e2e --write -->"
END = "<!-- end of e2e -->"
_BURSTS = (
    "burst",
    "times",
    "pods arrive in",
    "beyond the window p50",
    "p99",
    "from creation p50",
    "p99",
    "calls per burst",
)
_STRETCHES = ("while", "for", "CPU cores", "RSS first MiB", "last", "most")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The reconciler's CPU and memory over some time."""

    what: str
    seconds: float
    cores: float
    rss_first_mib: float
    rss_last_mib: float
    rss_most_mib: float

    def named(self, what: str) -> "Stretch":
        """The same under another name."""
        return replace(self, what=what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Everything of one run."""

    nodes: int
    pods: int
    first_plan_seconds: float
    stretches: tuple[Stretch, ...]
    bursts: tuple[Reacted, ...]
    peak_mib: float


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(heading) + " |", "|" + " --- |" * len(heading)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def _seconds(value: float) -> str:
    return f"{value:.2f} s"


def _burst_rows(bursts: Sequence[Reacted]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for pods, group in groupby(bursts, key=lambda each: each.burst.pods):
        found = list(group)
        beyond = [t for each in found for t in each.beyond_window]
        since = [t for each in found for t in each.from_creation]
        rows.append(
            (
                f"{pods:,} pod{'s' if pods > 1 else ''}",
                str(len(found)),
                _seconds(max(each.arrival_seconds for each in found)),
                _seconds(percentile(beyond, 0.5)),
                _seconds(percentile(beyond, 0.99)),
                _seconds(percentile(since, 0.5)),
                _seconds(percentile(since, 0.99)),
                ", ".join(str(n) for n in sorted({each.raises for each in found})),
            )
        )
    return rows


def markdown(found: Measured) -> str:
    """All of it as Markdown."""
    per_burst = [max(each.beyond_window) for each in found.bursts]
    summary = (
        f"{found.nodes:,} nodes, {found.pods:,} running pods. Start to first plan:"
        f" {found.first_plan_seconds:.1f} s. Largest resident size of the whole run:"
        f" {found.peak_mib:.0f} MiB. Over all bursts, slowest pod of each: p50"
        f" {_seconds(percentile(per_burst, 0.5))}, p99 {_seconds(percentile(per_burst, 0.99))}"
        " beyond the window."
    )
    lines = [
        machine(),
        "",
        summary,
        "",
        *_table(_BURSTS, _burst_rows(found.bursts)),
        "",
        *_table(
            _STRETCHES,
            [
                (
                    each.what,
                    f"{each.seconds:.0f} s",
                    f"{each.cores:.2f}",
                    f"{each.rss_first_mib:.0f}",
                    f"{each.rss_last_mib:.0f}",
                    f"{each.rss_most_mib:.0f}",
                )
                for each in found.stretches
            ],
        ),
        "",
    ]
    return "\n".join(lines)


def write_page(tables: str) -> None:
    """Put the tables between the page's marks.

    Raises:
        ValueError: The page has lost its marks.
    """
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, mark, tail = rest.partition(END)
    if not mark:
        raise ValueError(f"{PAGE.name} has no marks around the end-to-end tables")
    PAGE.write_text(f"{head}{BEGIN}\n\n{tables}\n{END}{tail}", encoding="utf-8")
