"""Wires `ci plan --replay`: simulates a recorded demand with the old and the planned config."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reconciler.adapters.recording.bucket import SCHEME
from reconciler.bootstrap.simulation.recording import recorded_demand
from reconciler.bootstrap.simulation.simulating import load_demand, simulated_settings
from reconciler.config.catalogue import Catalogue, catalogue_beside, load_catalogue
from reconciler.config.loader import parse_config
from reconciler.config.planning.settings import planner_settings
from reconciler.config.schema import SectorConfig
from reconciler.gitops.repository.followed import is_inside
from reconciler.gitops.terraform_plan.replay import Replay
from reconciler.machine.private_folder import PrivateFolder
from reconciler.model.demand import Demand
from reconciler.model.errors import InputError, ReconcilerError
from reconciler.model.text import escape_surrogates
from reconciler.simulation.figures import Json, figures
from reconciler.simulation.long_waits import WORKLOADS_MAX
from reconciler.simulation.simulation import Options, Simulation

DAYS = 7.0
"""How many of the last days that the capacity loop has recorded are played."""
_PROBLEMS = (ReconcilerError, OSError, MemoryError)
"""What is reported and stops nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigOfCommit:
    """Reads a config and the files next to it, of one commit or of the checkout."""

    name: str
    """Its name in messages."""
    content: bytes
    beside: Callable[[str], bytes | None]
    """Returns the content of a file by its path from the config's folder; None: it is not there."""


def replay(
    recorded: str,
    config: ConfigOfCommit,
    before: ConfigOfCommit | None,
    *,
    cluster_name: str | None,
    missing: str = "",
) -> Replay:
    """Play a demand under both configs; what cannot be played is reported and stops nothing.

    Args:
        recorded: A file of demand, or where the capacity loop records: a directory, or
            `s3://bucket/prefix`.
        config: The planned config.
        before: The config before it; None: there was none.
        cluster_name: For configs that name no cluster.
        missing: Why the config before is not known, when that is why there is none.
    """
    shown = escape_surrogates(Path(recorded).name)
    try:
        demand = _demand(recorded)
        after = _simulated(demand, config, cluster_name)
    except _PROBLEMS as error:
        return Replay(demand=shown, problem=_message_of(error))
    if before is None:
        return Replay(demand=shown, after=after, problem=missing)
    try:
        earlier = _simulated(demand, before, cluster_name)
    except _PROBLEMS as error:
        return Replay(demand=shown, after=after, problem=_message_of(error))
    return Replay(demand=shown, before=earlier, after=after)


def _message_of(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "there is not enough memory to play the demand: record fewer days of it"
    return escape_surrogates(str(error))


def _demand(recorded: str) -> Demand:
    if recorded.startswith(SCHEME) or Path(recorded).is_dir():
        return recorded_demand(recorded, DAYS)
    return load_demand(recorded, {})


def _simulated(demand: Demand, of: ConfigOfCommit, cluster_name: str | None) -> Json:
    config = _with_policies(of, cluster_name)
    settings = planner_settings(config, _catalogue(of, config.catalogue))
    simulation = Simulation(demand, simulated_settings(of.name, settings), Options())
    # All of them, as two lists that are cut each at its worst cannot be compared.
    return figures(simulation.run(), of.name, workloads=WORKLOADS_MAX + 1)


def _catalogue(of: ConfigOfCommit, named: str | None) -> Catalogue:
    """Return the catalogue of the same commit, of the path that is named, or else the package's.

    Raises:
        InputError: It cannot be read, or is not a catalogue.
    """
    with PrivateFolder("replay") as directory:
        if named is not None and is_inside(named):
            _put(of, named, directory)
        return load_catalogue(catalogue_beside(named, directory))


def _with_policies(of: ConfigOfCommit, cluster_name: str | None) -> SectorConfig:
    """Return the config with its policy file of the same commit.

    Raises:
        ConfigError: One of the two has faults, or the policy file is not there.
        InputError: The policy file is not in the config's folder.
    """
    config = parse_config(of.content, name=of.name, cluster_name=cluster_name)
    named = config.descheduler.policy_file
    if named is None:
        return config
    if not is_inside(named):
        what = f"descheduler.policy_file {named!r} is not in the folder of the config"
        raise InputError(of.name, what, "keep both in one folder")
    with PrivateFolder("replay") as directory:
        _put(of, named, directory)
        return parse_config(
            of.content, name=of.name, cluster_name=cluster_name, directory=directory
        )


def _put(of: ConfigOfCommit, named: str, directory: Path) -> None:
    """Write a file that the config names, as of its commit, into a directory; none if it has none.

    The path must be inside the config's folder.
    """
    content = of.beside(named)
    if content is not None:
        (directory / named).parent.mkdir(parents=True, exist_ok=True)
        (directory / named).write_bytes(content)
