"""CSV traces of batch work: when each pod was submitted, how long it ran, what it asked for.

Columns are found by their names, in any of the spellings that public traces use.
"""

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
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
    "submit": ("submit_time", "submit_s", "creation_s", "creation_time", "arrival_time"),
    "duration": ("duration", "duration_s", "ran_seconds"),
    "end": ("deletion_s", "deletion_time", "end_time"),
    "cpu": ("cpu", "cpus"),
    "cpu_milli": ("cpu_milli",),
    "memory_mib": ("memory_mib", "memory"),
    "gpu": ("gpu", "num_gpu", "gpus"),
    "id": ("pod", "job", "name", "id"),
}
"""The accepted names of each column. Times are seconds or RFC 3339; `memory` is in MiB."""
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
    return folded(_Rows(columns, options or TraceOptions(), name).read(numbered))


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


def _columns(header: Sequence[str], where: str) -> dict[str, int]:
    """Return the position of each column that exists."""
    places = {cell.strip().lower(): number for number, cell in enumerate(header)}
    found = {
        column: places[each]
        for column, names in COLUMNS.items()
        for each in names
        if each in places
    }
    missing = [
        " or ".join(wanted)
        for wanted in (("submit",), ("duration", "end"), ("cpu", "cpu_milli"), ("memory_mib",))
        if not any(each in found for each in wanted)
    ]
    if missing:
        raise InputError(
            where,
            f"no column for {', '.join(missing)}",
            "one of " + "; ".join(", ".join(COLUMNS[each.split(" or ")[0]]) for each in missing),
        )
    return found


class _Rows:
    """Reads rows; equal requests share one spec."""

    def __init__(self, columns: dict[str, int], options: TraceOptions, name: str) -> None:
        self._columns = columns
        self._options = options
        self._name = name
        self._specs: dict[tuple[int, int, int], PodSpec] = {}

    def read(self, numbered: Iterator[tuple[int, bytes]]) -> Iterator[PodDemand]:
        """Yield the pods, in the file's order."""
        for number, line in numbered:
            try:
                yield self._pod(number, _cells(line))
            except (ValueError, IndexError) as error:
                what = str(error) if isinstance(error, ValueError) else "it has too few columns"
                raise InputError(f"{self._name}:{number}", what) from error

    def _pod(self, number: int, cells: Sequence[str]) -> PodDemand:
        at = self._moment(cells, "submit")
        if "duration" in self._columns:
            seconds = self._amount(cells, "duration", TEN_YEARS_SECONDS)
        else:
            seconds = (self._moment(cells, "end") - at).total_seconds()
        if seconds < 0:
            raise ValueError("end: it is before the submit time")
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
        memory = self._amount(cells, "memory_mib", MEMORY_MIB_MAX)
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
        text = cells[self._columns[column]].strip()
        try:
            value = float(text or ("0" if column == "gpu" else ""))
        except ValueError:
            value = math.nan
        if not 0 <= value <= most:
            raise ValueError(f"{column}: {text[:40]!r} is not an amount from 0 to {most:,.0f}")
        return value

    def _moment(self, cells: Sequence[str], column: str) -> datetime:
        text = cells[self._columns[column]].strip()
        try:
            seconds = float(text)
        except ValueError:
            return _rfc3339(text, column)
        if not abs(seconds) <= TEN_YEARS_SECONDS:
            raise ValueError(
                f"{column}: {text[:40]!r} is more than ten years off: give seconds since the "
                f"trace's beginning (second 0 is {self._options.start:%Y-%m-%d}), or RFC 3339"
            )
        return self._options.start + timedelta(seconds=seconds)


def _rfc3339(text: str, column: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{column}: {text[:40]!r} is neither seconds nor RFC 3339") from error
    return checked_time(moment, column)
