"""The tables: for the terminal and, between two marks, in docs/benchmarks.md."""

import os
import platform
import re
from collections.abc import Mapping, Sequence
from math import ceil, log
from pathlib import Path
from statistics import median

from tests.benchmarks.cases import CASES, DATA, Peer
from tests.benchmarks.measure import Measurement

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"
BEGIN = "<!-- tables: written by python -m tests.benchmarks --write -->"
END = "<!-- end of tables -->"
HEADING = (
    "size",
    "first",
    "p50",
    "p99",
    "CPU p50",
    "record",
    "pods/s",
    "x reference",
    "peak MiB",
    "new nodes",
    "vCPU",
    "USD/h",
    "gap",
    "unplaceable",
)


def percentile(times: Sequence[float], share: float) -> float:
    """The nearest-rank percentile."""
    return sorted(times)[max(0, ceil(share * len(times)) - 1)]


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"


def row(measured: Measurement) -> tuple[str, ...]:
    """One line of a case's table."""
    p50 = median(measured.wall)
    rate = measured.pods / p50
    return (
        CASES[measured.case].sizes[measured.size].label,
        _ms(measured.first),
        _ms(p50),
        _ms(percentile(measured.wall, 0.99)),
        _ms(median(measured.cpu)),
        _ms(median(measured.record)),
        f"{rate:,.0f}",
        f"{rate / measured.reference:,.1f}",
        f"{measured.peak_mib:,.0f} ({measured.before_mib:,.0f} before)",
        f"{measured.nodes:,}",
        f"{measured.cpus:,.0f}",
        f"{measured.usd:,.2f}",
        f"{measured.gap:.2%}",
        f"{measured.unplaceable:,}",
    )


def _peer(measured: Measurement) -> Peer | None:
    case = CASES[measured.case]
    return case.peers.get(case.sizes[measured.size].label)


def against(measured: Measurement) -> str:
    """How it compares with what another system was measured at."""
    peer = _peer(measured)
    if peer is None:
        return ""
    label = CASES[measured.case].sizes[measured.size].label
    rate = measured.pods / median(measured.wall)
    text = f"- {label}: {peer.name} {peer.pods_per_second:,.0f} pods/s ({peer.remark})"
    text += f": {rate / peer.pods_per_second:,.0f} times as many here"
    if peer.usd is not None:
        text += f", at {measured.usd / peer.usd:.0%} of its {peer.usd:,.2f} USD/h"
    return text


def growth(measured: Sequence[Measurement]) -> float | None:
    """The exponent of planning time over nodes + pods, from the smallest to the largest size."""
    points = [(_objects(m), median(m.wall)) for m in measured]
    (least, quickest), (most, slowest) = min(points), max(points)
    if most < 2 * least:
        return None
    return log(slowest / quickest) / log(most / least)


def _objects(measured: Measurement) -> int:
    size = CASES[measured.case].sizes[measured.size]
    return size.pods + size.nodes * (1 + size.per_node)


def section(name: str, measured: Sequence[Measurement]) -> str:
    """A case as Markdown: what it is, its table, what others were measured at, how it grows."""
    case = CASES[name]
    lines = [f"### {case.title} (`{name}`)", "", case.why, ""]
    lines.append("| " + " | ".join(HEADING) + " |")
    lines.append("|" + " --- |" * len(HEADING))
    lines += ["| " + " | ".join(row(measurement)) + " |" for measurement in measured]
    lines += ["", *(against(measurement) for measurement in measured if _peer(measurement))]
    exponent = growth(measured) if len(measured) > 1 and case.data is None else None
    if exponent is not None:
        lines.append(f"- growth exponent of p50 in nodes + pods: {exponent:.2f}")
    return "\n".join(lines).rstrip() + "\n"


def missing_data(name: str) -> str:
    """What is said of a case whose data is not on this machine."""
    return f"### {CASES[name].title} (`{name}`)\n\nNot run: `{DATA.name}` is not on this machine.\n"


def machine() -> str:
    """What the figures were measured on."""
    cores = len(os.sched_getaffinity(0))
    system = f"{platform.system()} {platform.machine()}"
    load = os.getloadavg()[1]
    return (
        f"Measured on {cores} cores, {system}, Python {platform.python_version()}; load average "
        f"at the end of the run: {load:.1f} (this alone makes about 1; more slows it)."
    )


def write_page(tables: str) -> None:
    """Put the tables between the page's marks.

    Raises:
        ValueError: The page has lost its marks.
    """
    head, _, tail = _parts()
    PAGE.write_text(f"{head}{BEGIN}\n\n{tables}\n{END}{tail}", encoding="utf-8")


def write_sections(sections: Mapping[str, str]) -> None:
    """Replace these cases' sections of the page, and leave the others; a new one comes last.

    Raises:
        ValueError: The page has lost its marks.
    """
    head, tables, tail = _parts()
    for name, text in sections.items():
        heading = rf"^### [^\n]*\(`{re.escape(name)}`\)\n"
        found = re.search(rf"{heading}.*?(?=^### |\Z)", tables, re.MULTILINE | re.DOTALL)
        begin, end = found.span() if found else (len(tables), len(tables))
        tables = f"{tables[:begin]}{text.rstrip()}\n\n{tables[end:]}"
    PAGE.write_text(f"{head}{BEGIN}\n\n{tables.strip()}\n\n{END}{tail}", encoding="utf-8")


def _parts() -> tuple[str, str, str]:
    """The page before its tables, the tables, and what comes after them."""
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    tables, mark, tail = rest.partition(END)
    if not mark:
        raise ValueError(f"{PAGE.name} has no marks around its tables")
    return head, f"{tables.strip()}\n\n", tail
