"""Wires `ci plan --replay`: a recorded demand under the config before and the planned one."""

from pathlib import Path

from reconciler.adapters.recording.bucket import SCHEME
from reconciler.bootstrap.recording import recorded_demand
from reconciler.bootstrap.simulating import load_demand, simulated_settings
from reconciler.config.catalogue import load_catalogue
from reconciler.config.loader import parse_config
from reconciler.config.settings import planner_settings
from reconciler.gitops.replay import Replay
from reconciler.model.demand import Demand
from reconciler.model.errors import ReconcilerError
from reconciler.simulation.figures import Json, figures
from reconciler.simulation.simulation import Options, Simulation

DAYS = 7.0
"""Of what the capacity loop has recorded, the last ones."""


def replay(
    recorded: str, config: bytes, before: bytes | None, *, name: str, cluster_name: str | None
) -> Replay:
    """Play a demand under both configs; what cannot be played is told and stops nothing.

    Args:
        recorded: A file of demand, or where the capacity loop records: a directory, or
            `s3://bucket/prefix`.
        config: The planned config.
        before: The config before it; None: there was none.
        name: What messages call the config.
        cluster_name: Of configs that name none.
    """
    shown = Path(recorded).name
    try:
        demand = _demand(recorded)
        after = _played(demand, config, name, cluster_name)
    except ReconcilerError as error:
        return Replay(demand=shown, problem=str(error))
    if before is None:
        return Replay(demand=shown, after=after)
    try:
        earlier = _played(demand, before, f"{name} before", cluster_name)
    except ReconcilerError as error:
        return Replay(demand=shown, after=after, problem=str(error))
    return Replay(demand=shown, before=earlier, after=after)


def _demand(recorded: str) -> Demand:
    if recorded.startswith(SCHEME) or Path(recorded).is_dir():
        return recorded_demand(recorded, DAYS)
    return load_demand(recorded, {})


def _played(demand: Demand, content: bytes, name: str, cluster_name: str | None) -> Json:
    config = parse_config(content, name=name, cluster_name=cluster_name)
    settings = planner_settings(config, load_catalogue(config.catalogue))
    simulation = Simulation(demand, simulated_settings(name, settings), Options())
    return figures(simulation.run(), name)
