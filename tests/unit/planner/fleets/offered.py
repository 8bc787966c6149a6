"""What a new node of a fleet is planned to offer, as a refusal tells it."""

from typing import Any

from reconciler.model.cluster import Node, Pod
from reconciler.planner.planner import plan
from reconciler.planner.settings import FleetSettings
from reconciler.planner.system_reserve import SystemReserve
from tests.builders import amounts, make_pod, make_settings, make_snapshot


def offered(fleet: FleetSettings, *objects: Node | Pod, **changed: Any) -> str:
    """What the refusal of a pod that asks for far too much memory says a new node offers."""
    asks = make_pod(cpu="1m", memory="1000Gi", sector="primary")
    cloud = changed.pop("cloud", None)
    reserve = changed.pop("reserve", SystemReserve(amounts=changed.pop("reserved", amounts())))
    made = plan(
        make_snapshot(asks, *objects, cloud=cloud, **changed),
        make_settings(fleet, reserve=reserve),
    )
    return made.unplaceable[0].reasons[0].detail.removeprefix("requests 1000Gi, a new node offers ")
