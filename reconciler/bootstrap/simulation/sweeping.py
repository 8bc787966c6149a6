"""Wires sweeps: each point is a task, in this process or on a Dask cluster."""

import io
import logging
import os
import signal
import socket
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from reconciler.bootstrap.planning.planning import resolved
from reconciler.bootstrap.simulation.simulating import (
    SimulateRequest,
    demand_of,
    read_input,
    simulated_settings,
    writable,
)
from reconciler.config.document import read_document, write_document
from reconciler.config.environment import Flags, parse_with_overrides, stated_values
from reconciler.config.loader import Purpose, read_config_bytes
from reconciler.model.demand import Demand
from reconciler.model.errors import ToolError, UsageError, why_not_reached
from reconciler.model.text import escape_surrogates
from reconciler.planner.settings import PlannerSettings
from reconciler.simulation.figures import figures
from reconciler.simulation.page import page
from reconciler.simulation.simulation import Options, Simulation
from reconciler.simulation.sweep import Json, points, summary, with_point

RETRIES = 3
"""How often a point is restarted after its worker was lost or failed."""
DASK_SECONDS = 10
"""How long a scheduler may take to answer."""
WORKER_SECONDS = 600
"""How long the first worker may take to join."""
DASK_LOGS = ("distributed", "distributed.client", "tornado", "asyncio")
"""Where Dask says what went wrong with a cluster that ends while it starts."""
FORM = orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRequest:
    """Holds the options of `reconciler simulate --sweep`."""

    simulation: SimulateRequest
    sweeps: tuple[str, ...]
    dask: str | None = None
    """The address of a scheduler; None: a cluster of processes on this machine."""
    workers: int | None = None
    """How many workers that cluster has; None: one per CPU; 0: everything in this process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One point of a sweep, with everything else that a worker on another machine needs."""

    name: str
    settings: PlannerSettings
    """Read where the sweep starts, since files that the config names may be missing on the
    workers."""
    demand_name: str
    selector: Mapping[str, str] = field(default_factory=dict)
    options: Options = field(default_factory=Options)


OnProgress = Callable[[int, int, Mapping[str, str], Json], None]
"""Called for each point that is done: how many are done, of how many, its values and its
figures."""


def sweep(request: SweepRequest, on_progress: OnProgress) -> tuple[Json, Mapping[str, bytes]]:
    """Simulate every combination; return the figures and the files of the report.

    Raises:
        ConfigError: A combination is not a valid config.
        InputError: The demand cannot be read.
        UsageError: A sweep cannot be read or would change nothing, or Dask is not installed.
        ToolError: A point failed, or the Dask cluster cannot be reached.
    """
    wanted = points(request.sweeps)
    _check_replaced(wanted[0], request.simulation.flags)
    document = read_document(
        read_config_bytes(request.simulation.config), name=request.simulation.config
    )
    demand = read_input(request.simulation.demand)
    tasks = [_task(request.simulation, document, point) for point in wanted]
    found: list[Json | None] = [None] * len(tasks)
    with writable(request.simulation.out):
        for count, (number, run) in enumerate(_run(request, tasks, demand), 1):
            found[number] = run
            on_progress(count, len(tasks), wanted[number], run)
    runs = [run for run in found if run is not None]
    swept = summary(wanted, runs)
    best = runs[swept["recommended"] - 1]
    shown = [runs[0]] if best is runs[0] else [runs[0], best]
    report: Json = {"format": 1, "runs": shown, "sweep": swept,
                    "demand": escape_surrogates(Path(request.simulation.demand).name)}  # fmt: skip
    return report, {
        "report.json": orjson.dumps(report, option=FORM) + b"\n",
        "report.html": page(report).encode(),
    }


def _check_replaced(keys: Iterable[str], flags: Flags) -> None:
    """Refuse keys whose values a flag or an environment variable replaces at every point.

    Raises:
        UsageError: One of the keys is such a one.
    """
    replaced = {".".join(setting.path): text for setting, (text, _) in stated_values(flags).items()}
    for key in keys:
        if key in replaced:
            source = replaced[key]
            raise UsageError(
                "--sweep", f"{key} changes nothing while {source} is given", f"leave {source} out"
            )


def _task(request: SimulateRequest, document: Json, point: Mapping[str, str]) -> Task:
    changed = with_point(document, {key: _value(key, text) for key, text in point.items()})
    shown = ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in point.items())
    name = escape_surrogates(f"{Path(request.config).name} ({shown})")
    return Task(
        name=name,
        settings=_settings(request, write_document(changed).encode(), name),
        demand_name=request.demand,
        selector=request.selector,
        options=request.options,
    )


def _value(key: str, text: str) -> object:
    """Return a value of a sweep as it would be in a config."""
    return read_document(f"value: {text}\n".encode(), name=f"--sweep {key}").get("value")


def _settings(request: SimulateRequest, config: bytes, name: str) -> PlannerSettings:
    directory = Path() if request.config == "-" else Path(request.config).parent
    sector_config = parse_with_overrides(
        config, request.flags, name=name, directory=directory, purpose=Purpose.PLAN
    )
    return simulated_settings(name, resolved(sector_config))


def play(task: Task, demand: bytes) -> bytes:
    """Return the figures of one point of a file of demand as JSON; this runs on a worker."""
    decoded = _demand(demand, task.demand_name, tuple(sorted(task.selector.items())))
    result = Simulation(decoded, task.settings, task.options).run()
    found = figures(result, task.name)
    del found["moments"]
    return orjson.dumps({**found, "moments": []}, option=orjson.OPT_SORT_KEYS)


@lru_cache(maxsize=1)
def _demand(body: bytes, name: str, selector: tuple[tuple[str, str], ...]) -> Demand:
    """Return the demand, decoded once per worker."""
    return demand_of(io.BytesIO(body), name, dict(selector))


def _demand_on_worker(demand: bytes) -> bytes:
    """Return the demand; this runs on a worker, which keeps it for its points and for others."""
    return demand


def _run(request: SweepRequest, tasks: Sequence[Task], demand: bytes) -> Iterator[tuple[int, Json]]:
    """Yield each point's number and figures as they are done."""
    if request.dask is None and request.workers == 0:
        for number, task in enumerate(tasks):
            yield number, orjson.loads(play(task, demand))
        return
    with _client(request) as client:
        yield from results(client, tasks, demand)


def results(client: Any, tasks: Sequence[Task], demand: bytes) -> Iterator[tuple[int, Json]]:
    """Yield each point's number and figures from a Dask client, as they are done.

    The demand is sent once, as a task of its own: with every point the scheduler would hold it a
    thousand times, and data that no task makes would be lost with its worker.

    Raises:
        ToolError: A point failed on every worker that tried it, no worker came, or the scheduler
            was lost.
    """
    from distributed import as_completed  # noqa: PLC0415 - an optional extra

    where = client.scheduler.address
    with warnings.catch_warnings():
        # Dask warns of large arguments, as they are mostly sent with every task.
        warnings.filterwarnings("ignore", message="Sending large graph")
        shared = client.submit(_demand_on_worker, demand, pure=False, retries=RETRIES)
    futures = {
        client.submit(play, task, shared, pure=False, retries=RETRIES): number
        for number, task in enumerate(tasks)
    }
    try:
        # Clusters that grow with their work start workers only now.
        client.wait_for_workers(1, timeout=WORKER_SECONDS)
    except TimeoutError as error:
        raise ToolError(where, "no worker joined the Dask scheduler", "start workers") from error
    finished = as_completed(list(futures), loop=client.loop)  # type: ignore[no-untyped-call] # untyped there
    for done, future in enumerate(finished):
        try:
            body = future.result()
        except CancelledError as error:
            lost = f"the Dask scheduler was lost after {done} of {len(tasks)} points"
            raise ToolError(where, lost, "begin the sweep again") from error
        except Exception as error:
            number = futures[future]
            raise ToolError(f"sweep, point {number + 1}", f"failed: {error}") from error
        yield futures[future], orjson.loads(body)


def _check_scheduler(address: str) -> None:
    """Refuse an address at which nothing listens: Dask's client would end with a traceback.

    Raises:
        UsageError: It is not an address of a scheduler.
        ToolError: Nothing listens there.
    """
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or port is None or "@" in address:
        raise UsageError("--dask", "names no scheduler", "for example tcp://HOST:8786")
    try:
        socket.create_connection((host, port), timeout=DASK_SECONDS).close()
    except OSError as error:
        what = f"no Dask scheduler answers: {why_not_reached(error)}"
        raise ToolError(address, what) from error


@contextmanager
def _client(request: SweepRequest) -> Iterator[Any]:
    """Yield a client of the requested cluster; a cluster of our own ends with it."""
    try:
        from distributed import Client, LocalCluster  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        raise UsageError(
            "--sweep", "needs Dask", "pip install 'fleet-reconciler[simulate]', or --workers 0"
        ) from error
    if request.dask is not None:
        _check_scheduler(request.dask)
        try:
            client = Client(request.dask, timeout=DASK_SECONDS, set_as_default=False)  # type: ignore[no-untyped-call] # untyped there
        except (OSError, ValueError) as error:
            raise ToolError(request.dask, f"no Dask scheduler answers: {error}") from error
        _silence_dask()
        with client:
            yield client
        return
    workers = request.workers or len(os.sched_getaffinity(0))
    cluster, interrupted = _started(LocalCluster, workers)
    try:
        if interrupted:
            signal.raise_signal(signal.SIGINT)
        with Client(cluster, set_as_default=False) as client:  # type: ignore[no-untyped-call] # as above
            yield client
    except KeyboardInterrupt:
        _silence_dask()
        raise
    finally:
        _close(cluster)


def _silence_dask() -> None:
    """Keep Dask from logging tracebacks of what the program itself reports in one line."""
    for name in DASK_LOGS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _started(make: Callable[..., Any], workers: int) -> tuple[Any, bool]:
    """Return a new cluster on this machine, and whether SIGINT came while it started.

    SIGINT does not interrupt the start: processes that have started, and cannot read their input
    from this one, would print a traceback each.
    """
    came: list[int] = []
    before = None
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    try:
        cluster = make(
            n_workers=workers, threads_per_worker=1, host="127.0.0.1",
            dashboard_address="127.0.0.1:0", silence_logs="ERROR",
        )  # fmt: skip
    finally:
        if before is not None:
            signal.signal(signal.SIGINT, before)
    return cluster, bool(came)


def _close(cluster: Any) -> None:
    """Close a cluster of our own; what Dask cannot close in time ends with this process."""
    cluster.shutdown_on_close = False
    with suppress(Exception):
        cluster.close(timeout=DASK_SECONDS)
