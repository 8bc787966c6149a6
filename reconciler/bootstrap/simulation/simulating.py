"""Wires simulations: config and demand from files, the report into a directory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from errno import EISDIR, ENOTDIR
from os import strerror
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

from reconciler.bootstrap.planning.planning import resolved
from reconciler.config.environment import Flags, load_with_overrides
from reconciler.config.yaml_loader import BYTES_MAX
from reconciler.machine.whole_file import put_whole
from reconciler.model.demand import Demand
from reconciler.model.errors import InputError, UsageError, why_unreadable
from reconciler.model.frozen import FrozenMap
from reconciler.model.text import escape_surrogates
from reconciler.planner.settings import PlannerSettings
from reconciler.records.demand import TraceOptions, read_demand, read_trace
from reconciler.simulation.mixes import generated, read_mix
from reconciler.simulation.moments import MomentOpener
from reconciler.simulation.peers.models import Peer, peers_of, played
from reconciler.simulation.report import Json, report, report_files
from reconciler.simulation.simulation import Options, Result, Simulation

CSV_NAMES = (".csv", ".csv.gz", ".csv.zst")
MIX_NAMES = (".yaml", ".yml")
PAGES = ("report.json", "report.html")
MOMENT_FOLDERS = "moments/[ab]-[0-9]"
MOMENT_FILES = f"{MOMENT_FOLDERS}/*.json"
"""What a report has in addition to its two files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulateRequest:
    """Holds the options of `reconciler simulate`."""

    config: str
    demand: str
    flags: Flags = field(default_factory=dict)
    other_config: str | None = None
    selector: Mapping[str, str] = field(default_factory=dict)
    """The node selector of the pods of a CSV trace."""
    options: Options = field(default_factory=Options)
    peers: tuple[str, ...] = ()
    """Models to simulate as well: `NAME[,SETTING=VALUE…]` each."""
    out: str | None = None
    """Where the report will be written; None: nowhere."""


def load_demand(path: str, selector: Mapping[str, str]) -> Demand:
    """Return the demand of a file: JSON lines or, by its name, a CSV trace or a mix to generate.

    Raises:
        ConfigError: A mix has faults.
        InputError: It cannot be read.
    """
    try:
        with Path(path).open("rb") as stream:
            return demand_of(stream, path, selector)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError)
        hint = "reconciler record writes one" if missing else ""
        raise InputError(path, why_unreadable(error), hint) from error


def demand_of(stream: BinaryIO, name: str, selector: Mapping[str, str]) -> Demand:
    """Return the demand of an open file.

    Raises:
        ConfigError: A mix has faults.
        InputError: It cannot be read.
    """
    if name.lower().endswith(MIX_NAMES):
        demand = generated(read_mix(stream.read(BYTES_MAX + 1), name), name)
    elif is_trace(name):
        demand = read_trace(stream, name, TraceOptions(node_selector=FrozenMap(selector)))
    else:
        demand = read_demand(stream, name)
    return replace(demand, name=name)


def is_trace(name: str) -> bool:
    """Return whether a file is a CSV trace, by its name."""
    return name.lower().endswith(CSV_NAMES)


def read_input(path: str) -> bytes:
    """Return a file as it is.

    Raises:
        InputError: It cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(path, why_unreadable(error)) from error


def settings_of(path: str, flags: Flags) -> PlannerSettings:
    """Return the planner's settings of a config file.

    Raises:
        ConfigError: It has faults.
        UsageError: It names no cluster.
        InputError: It names no fleets.
    """
    return simulated_settings(path, resolved(load_with_overrides(path, flags)))


def simulated_settings(path: str, settings: PlannerSettings) -> PlannerSettings:
    """Return the settings if they can be simulated.

    Raises:
        InputError: They have no fleets.
    """
    if not settings.fleets():
        raise InputError(path, "the config names no fleet", "simulations need `sectors`")
    return settings


def simulate(
    request: SimulateRequest, progress: Callable[[str, float], None]
) -> tuple[Json, Mapping[str, bytes]]:
    """Simulate the demand with one config or two; return the figures and the report's files.

    Args:
        request: The options.
        progress: Called with the config that is being simulated and the share of its time that has
            passed.

    Raises:
        ConfigError, InputError, UsageError: As `settings_of`, `load_demand`, `peers_of` and
        `writable`, all before the simulation starts.
    """
    peers = peers_of(request.peers)
    configs = [request.config, *([request.other_config] if request.other_config else [])]
    loaded = [(name, settings_of(name, request.flags)) for name in configs]
    demand = load_demand(request.demand, request.selector)
    with writable(request.out):
        results = [
            (escape_surrogates(name), _simulated(name, demand, settings, request.options, progress))
            for name, settings in loaded
        ]
        models = [
            (peer.shown(), _as_model(peer, demand, loaded[0][1], request.options, progress))
            for peer in peers
        ]
    found = report(results, models, demand=escape_surrogates(Path(request.demand).name))
    opens = MomentOpener(folder=request.out or "", flags=request.flags)
    return found, report_files(found, results, opens)


def _as_model(
    peer: Peer,
    demand: Demand,
    settings: PlannerSettings,
    options: Options,
    progress: Callable[[str, float], None],
) -> Result:
    return played(peer, demand, settings, options, lambda share: progress(peer.title, share))


def _simulated(
    name: str,
    demand: Demand,
    settings: PlannerSettings,
    options: Options,
    progress: Callable[[str, float], None],
) -> Result:
    return Simulation(demand, settings, options, lambda share: progress(name, share)).run()


@contextmanager
def writable(out: str | None) -> Iterator[None]:
    """Create the report's directory now, before hours are spent on the simulation in the block.

    What was created is removed when the block fails.

    Raises:
        UsageError: The name is empty.
        InputError: Nothing can be written there.
    """
    if out == "":
        raise UsageError("--out", "is empty", "name a directory for the report")
    folders = [] if out is None else [Path(out), *Path(out).parents]
    made = [folder for folder in folders if not folder.exists()]
    try:
        if out is not None:
            _assert_writable(out)
        yield
    except BaseException:
        for each in made:
            with suppress(OSError):  # it holds something else meanwhile, or was never made
                each.rmdir()
        raise


def _assert_writable(out: str) -> None:
    with _writing(out):
        Path(out).mkdir(parents=True, exist_ok=True)
        for folder in (Path(out), *Path(out).glob("moments"), *Path(out).glob(MOMENT_FOLDERS)):
            if not folder.is_dir():
                raise _in_the_way(folder, ENOTDIR)
            with TemporaryFile(dir=folder):
                pass
        for path in (*(Path(out) / name for name in PAGES), *Path(out).glob(MOMENT_FILES)):
            if path.is_dir():
                raise _in_the_way(path, EISDIR)


def _in_the_way(path: Path, code: int) -> OSError:
    return OSError(code, f"{path.name}: {strerror(code)}")


def write_report(out: str, files: Mapping[str, bytes]) -> Sequence[Path]:
    """Write the files below a directory, each whole, `report.json` and `report.html` last.

    Snapshots of an earlier report there that this one does not have are removed; other files stay.

    Raises:
        InputError: It cannot be written.
    """
    last = [name for name in files if "/" not in name]
    written = [Path(out) / name for name in (*(n for n in files if "/" in n), *last)]
    with _writing(out):
        for old in Path(out).glob(MOMENT_FILES):
            if old not in written:
                old.unlink()
        for path in written:
            path.parent.mkdir(parents=True, exist_ok=True)
            with put_whole(path) as part:
                part.write_bytes(files[str(path.relative_to(out))])
    return written


@contextmanager
def _writing(out: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            out, f"cannot be written: {error.strerror}", "name another with --out"
        ) from error
