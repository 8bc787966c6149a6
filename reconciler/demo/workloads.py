"""The demo's workloads: the example manifests, or Jobs made from a trace."""

import csv
import gzip
import io
import math
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from reconciler.gitops.rendering.assets import example_files
from reconciler.model.errors import InputError, why_unreadable
from reconciler.sandbox.cluster.settings import DURATION

TRACE_PODS_MAX = 320
TRACE_BYTES_MAX = 64 << 20
TRACE_SECONDS = 20.0
"""A trace is compressed to this duration."""
DATA_MOST = (6_500, 48 * 1024)
BATCH_MOST = (32_000, 48 * 1024)
"""Milli-CPU and MiB that a node of the example's largest fleet in each sector can certainly
hold."""
DemoProvider = Literal["ec2-fleet", "asg", "mixed"]
MIXED_SECTORS = ("batch",)
"""Sectors whose fleets are Auto Scaling groups in the mixed demo."""
_COLUMNS = ("pod", "cpu_milli", "memory_mib", "creation_s", "deletion_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Manifests that are applied together, this long after the first ones."""

    name: str
    after_seconds: float
    objects: tuple[dict[str, Any], ...]


def example_config(provider: DemoProvider = "ec2-fleet") -> str:
    """Return the sector config of the examples, with EC2 Fleets or Auto Scaling groups."""
    text = example_files("demo")["sectors.yaml"].decode()
    of_groups = {"ec2-fleet": (), "mixed": MIXED_SECTORS, "asg": None}[provider]
    head, middle, sectors = text.partition("\nsectors:\n")
    lines, sector = [], ""
    for line in sectors.splitlines(keepends=True):
        named = re.match(r"  (\w+):", line)
        sector = named[1] if named else sector
        if of_groups is None or sector in of_groups:
            group = rf"provider: asg, auto_scaling_group: analytics-{sector}-\2"
            line = re.sub(r"(- {size: (\w+))", rf"\1, {group}", line)  # noqa: PLW2901 - its new text
        lines.append(line)
    return head + middle + "".join(lines)


def example_waves() -> tuple[Wave, ...]:
    """Return the example manifests, one wave per file, two seconds apart."""
    files = sorted((n, b) for n, b in example_files("demo").items() if n != "sectors.yaml")
    return tuple(
        Wave(name=name, after_seconds=2.0 * i, objects=tuple(yaml.safe_load_all(body)))
        for i, (name, body) in enumerate(files)
    )


def trace_waves(path: Path) -> tuple[Wave, ...]:
    """Return Jobs of one pod each, from a CSV of pods with their times (seconds) and requests.

    It takes the first 320 pods that need no GPU and fit a fleet of the example; arrivals and run
    times are compressed to 20 seconds. Pods with more memory than 6 GiB per CPU go to sector `data`
    where they fit there, others to `batch`.

    Raises:
        InputError: The file cannot be read, lacks a column or has no such pods.
    """
    rows = [row for row in _rows(path) if not _number(path, row, "gpu") and _sector(path, row)]
    rows = sorted(rows, key=lambda r: _number(path, r, "creation_s"))[:TRACE_PODS_MAX]
    if not rows:
        raise InputError(str(path), "has no pods without a GPU that fit a fleet of the example")
    first = _number(path, rows[0], "creation_s")
    span = max(1.0, _number(path, rows[-1], "creation_s") - first)
    jobs = [(_squeezed(path, row, first, span), _job(path, row, i)) for i, row in enumerate(rows)]
    seconds = sorted({at for at, _ in jobs})
    return tuple(
        Wave(
            name=f"trace +{at:.0f} s",
            after_seconds=at,
            objects=tuple(j for a, j in jobs if a == at),
        )
        for at in seconds
    )


def _sector(path: Path, row: dict[str, str]) -> str:
    """Return the sector whose fleets fit the pod; empty for one that is too large."""
    cpu, memory = _number(path, row, "cpu_milli"), _number(path, row, "memory_mib")
    hungry = memory > 6 * 1024 * max(cpu, 50) / 1000
    if hungry and cpu <= DATA_MOST[0] and memory <= DATA_MOST[1]:
        return "data"
    return "batch" if cpu <= BATCH_MOST[0] and memory <= BATCH_MOST[1] else ""


def _squeezed(path: Path, row: dict[str, str], first: float, span: float) -> float:
    """Return when a pod arrives in the demo, in whole seconds."""
    return round((_number(path, row, "creation_s") - first) / span * TRACE_SECONDS)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    try:
        if path.stat().st_size > TRACE_BYTES_MAX:
            raise InputError(str(path), f"is over {TRACE_BYTES_MAX >> 20} MiB", "give a part of it")
        body = path.read_bytes()
        text = (gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body).decode()
    except OSError as error:
        raise InputError(str(path), why_unreadable(error)) from error
    except (UnicodeDecodeError, EOFError, zlib.error) as error:
        raise InputError(str(path), "is not a CSV text") from error
    reader = csv.DictReader(io.StringIO(text))
    try:
        missing = [column for column in _COLUMNS if column not in (reader.fieldnames or ())]
        if missing:
            raise InputError(str(path), f"has no column {missing[0]}", ", ".join(_COLUMNS))
        yield from reader
    except csv.Error as error:
        raise InputError(str(path), "is not a CSV text") from error


def _number(path: Path, row: dict[str, str], column: str) -> float:
    try:
        number = float(row.get(column) or 0)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(str(path), f"{column} of {row.get('pod')} is not a number")
    return number


def _job(path: Path, row: dict[str, str], number: int) -> dict[str, Any]:
    cpu = max(50, int(_number(path, row, "cpu_milli")))
    memory = max(64, int(_number(path, row, "memory_mib")))
    lifetime = _number(path, row, "deletion_s") - _number(path, row, "creation_s")
    seconds = str(round(min(8.0, max(3.0, lifetime / 3600)), 1))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"trace-{number:04d}", "namespace": "trace"},
        "spec": {
            "template": {
                "metadata": {"annotations": {DURATION: seconds}},
                "spec": {
                    "restartPolicy": "Never",
                    "nodeSelector": {"sector": _sector(path, row)},
                    "containers": [
                        {
                            "name": "work",
                            "image": "registry.example.com/work:1",
                            "command": ["sleep", seconds],
                            "resources": {"requests": {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}},
                        }
                    ],
                },
            }
        },
    }


def expected_pods(waves: Iterable[Wave]) -> int:
    """Return how many pods the manifests create, without pods of DaemonSets."""
    total = 0
    for wave in waves:
        for each in wave.objects:
            spec = each.get("spec", {})
            if each["kind"] == "Job":
                total += int(spec.get("completions", 1))
            elif each["kind"] == "Deployment":
                total += int(spec.get("replicas", 1))
    return total
