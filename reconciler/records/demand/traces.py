"""CSV traces of batch work: when each pod was submitted, how long it ran, what it asked for.

Columns are found by their names, in any of the spellings that public traces use.
"""

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import BinaryIO

from reconciler.model.cluster import Owner, PodSpec, Resources
from reconciler.model.demand import Demand, PodDemand
from reconciler.model.errors import InputError
from reconciler.model.frozen import NO_LABELS, Labels
from reconciler.records.demand.folding import folded
from reconciler.records.demand.line_limits import TEN_YEARS_SECONDS
from reconciler.records.demand.lines import checked_time
from reconciler.records.demand.reading import DEFAULT_LIMITS, lines_of

COLUMNS: Mapping[str, Sequence[str]] = {
    "submit time": ("submit_time", "submit_s", "creation_s", "creation_time", "arrival_time"),
    "duration": ("duration", "duration_s", "ran_seconds"),
    "end": ("deletion_s", "deletion_time", "end_time"),
    "cpu": ("cpu", "cpus"),
    "cpu_milli": ("cpu_milli",),
    "memory": ("memory_mib", "memory"),
    "gpu": ("gpu", "num_gpu", "gpus"),
}
"""The accepted names of each column. Times are seconds or RFC 3339; `memory` is in MiB."""
_ONE_OF_EACH = (
    ("submit time",),
    ("duration",),
    ("end",),
    ("cpu", "cpu_milli"),
    ("memory",),
    ("gpu",),
)
"""The columns that say the same: of each group a trace has at most one."""
_NEEDED = (("submit time",), ("duration", "end"), ("cpu", "cpu_milli"), ("memory",))
"""Of each group a trace has at least one."""
CPU_MILLI_MAX, MEMORY_MIB_MAX, GPU_MAX = 1_000_000, 64 << 20, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions:
    """What a trace does not state."""

    start: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    """The moment of second 0."""
    node_selector: Labels = NO_LABELS
    """The node selector of every pod, such as its sector."""
    namespace: str = "default"
    gpu_resource: str = "nvidia.com/gpu"


def read_trace(stream: BinaryIO, name: str, options: TraceOptions | None = None) -> Demand:
    """Return every row of a trace as a pod of a Job of its own that ends by itself.

    Raises:
        InputError: A column is missing or a row cannot be read; the error names the line.
    """
    numbered = lines_of(stream, name, DEFAULT_LIMITS)
    header = next(numbered, (1, b""))[1]
    try:
        cells = _cells(header)
    except ValueError as error:
        raise InputError(f"{name}:1", str(error)) from error
    columns = _columns(cells, f"{name}:1")
    rows = _Rows(columns, len(cells), options or TraceOptions(), name)
    return folded(rows.read(numbered))


def _cells(line: bytes) -> list[str]:
    """Return the cells of a line.

    Raises:
        ValueError: It is not CSV.
    """
    if b"\r" in line.rstrip(b"\r\n"):
        raise ValueError("it has a carriage return within: end lines with a line feed")
    try:
        return next(csv.reader(io.StringIO(line.decode("utf-8-sig", errors="replace"))), [])
    except csv.Error as error:
        raise ValueError(f"it is not a line of CSV: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    place: int
    """Counted from 0."""
    name: str
    """As the header has it, for errors."""


def _columns(header: Sequence[str], where: str) -> dict[str, _Column]:
    """Return the columns that exist.

    Raises:
        InputError: One is missing, or several say the same.
    """
    cells = [_Column(place=place, name=cell.strip()) for place, cell in enumerate(header)]
    found = {
        column: [cell for cell in cells if cell.name.lower() in names]
        for column, names in COLUMNS.items()
    }
    for group in _ONE_OF_EACH:
        same = [cell.name for column in group for cell in found[column]]
        if len(same) > 1:
            what = f"several columns for {' or '.join(group)}: {', '.join(same)}"
            raise InputError(where, what, "leave one of them in the file")
    missing = [group for group in _NEEDED if not any(found[column] for column in group)]
    if missing:
        raise InputError(
            where,
            f"no column for {', '.join(map(' or '.join, missing))}",
            "one of " + "; ".join(", ".join(COLUMNS[group[0]]) for group in missing),
        )
    return {column: cells[0] for column, cells in found.items() if cells}


class _Rows:
    """Reads rows; equal requests share one spec."""

    def __init__(
        self, columns: dict[str, _Column], width: int, options: TraceOptions, name: str
    ) -> None:
        self._columns = columns
        self._width = width
        """How many columns the header has."""
        self._options = options
        self._name = name
        self._specs: dict[tuple[int, int, int], PodSpec] = {}

    def read(self, numbered: Iterator[tuple[int, bytes]]) -> Iterator[PodDemand]:
        """Yield the pods, in the file's order."""
        is_first = True
        for number, line in numbered:
            try:
                cells = _cells(line)
                self._refuse_further(cells)
                if is_first:
                    self._refuse_date(cells)
                is_first = False
                yield self._pod(number, cells)
            except (ValueError, IndexError) as error:
                what = str(error) if isinstance(error, ValueError) else "it has too few columns"
                raise InputError(f"{self._name}:{number}", what) from error

    def _refuse_further(self, cells: Sequence[str]) -> None:
        """Refuse cells without a column: a comma in a number moves all that come after it."""
        if any(cell.strip() for cell in cells[self._width :]):
            raise ValueError("it has more columns than the first line")

    def _refuse_date(self, cells: Sequence[str]) -> None:
        """Refuse a date without dashes in the first row, where seconds are near 0."""
        called, text = self._cell(cells, "submit time")
        try:
            day = date.fromisoformat(text) if text.isdecimal() else None
        except ValueError:
            return
        if day is not None:
            raise ValueError(
                f"{called}: {text!r} may be a date: write {day}, or {text}.0 for seconds"
            )

    def _cell(self, cells: Sequence[str], column: str) -> tuple[str, str]:
        """Return the column's name in the file, and a row's text in it."""
        found = self._columns[column]
        return found.name, cells[found.place].strip()

    def _pod(self, number: int, cells: Sequence[str]) -> PodDemand:
        at = self._moment(cells, "submit time")
        if "duration" in self._columns:
            seconds = self._amount(cells, "duration", TEN_YEARS_SECONDS)
        else:
            seconds = (self._moment(cells, "end") - at).total_seconds()
        if seconds < 0:
            end, submit = self._columns["end"].name, self._columns["submit time"].name
            raise ValueError(f"{end}: it is before {submit}")
        name = f"row-{number}"
        return PodDemand(
            at=at,
            id=name,
            spec=self._spec(cells),
            namespace=self._options.namespace,
            controller=Owner(kind="Job", name=name),
            ran_seconds=seconds,
        )

    def _spec(self, cells: Sequence[str]) -> PodSpec:
        if "cpu_milli" in self._columns:
            cpu = self._amount(cells, "cpu_milli", CPU_MILLI_MAX)
        else:
            cpu = 1000 * self._amount(cells, "cpu", CPU_MILLI_MAX / 1000)
        memory = self._amount(cells, "memory", MEMORY_MIB_MAX)
        gpu = self._amount(cells, "gpu", GPU_MAX) if "gpu" in self._columns else 0.0
        key = (math.ceil(cpu), math.ceil(memory), math.ceil(gpu))
        if key not in self._specs:
            requests = {"cpu": key[0], "memory": key[1] << 20, "pods": 1}
            if key[2]:
                requests[self._options.gpu_resource] = key[2]
            self._specs[key] = PodSpec(
                requests=Resources(requests), node_selector=self._options.node_selector
            )
        return self._specs[key]

    def _amount(self, cells: Sequence[str], column: str, most: float) -> float:
        """Return a cell's amount; one that is empty is none, and an error except of GPUs."""
        called, text = self._cell(cells, column)
        try:
            value = float(text or ("0" if column == "gpu" else ""))
        except ValueError:
            value = math.nan
        if not 0 <= value <= most:
            raise ValueError(f"{called}: {text[:40]!r} is not an amount from 0 to {most:,.0f}")
        return value

    def _moment(self, cells: Sequence[str], column: str) -> datetime:
        called, text = self._cell(cells, column)
        try:
            seconds = float(text)
        except ValueError:
            return _rfc3339(text, called)
        if not abs(seconds) <= TEN_YEARS_SECONDS:
            raise ValueError(
                f"{called}: {text[:40]!r} is more than ten years off: give seconds since the "
                f"trace's beginning (second 0 is {self._options.start:%Y-%m-%d}), or RFC 3339"
            )
        return self._options.start + timedelta(seconds=seconds)


def _rfc3339(text: str, column: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{column}: {text[:40]!r} is neither seconds nor RFC 3339") from error
    return checked_time(moment, column)
