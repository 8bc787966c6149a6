"""Pods that their owners delete at one moment."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.model.cluster import Owner
from reconciler.model.demand import ControllerDemand, DemandLine, PodDemand
from reconciler.records.demand import folded
from reconciler.simulation.chances import Chances
from reconciler.simulation.simulation import Options, Simulation
from tests.builders import make_fleet_settings, make_settings, make_spec

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SPEC = make_spec("1", "2Gi")
END = AT + timedelta(hours=1)
PODS = [PodDemand(at=AT + timedelta(seconds=n), id=f"run-{n}", spec=SPEC, until=END)
        for n in range(12)]  # fmt: skip
WEB = Owner(kind="Deployment", name="web")
DEPLOYMENT = [
    ControllerDemand(at=AT, controller=WEB, replicas=12, spec=SPEC),
    ControllerDemand(at=END, controller=WEB, deleted=True),
]


@pytest.mark.parametrize("lines", [PODS, DEPLOYMENT])
def test_waiting_pods_get_no_node_of_those_that_are_deleted_with_them(
    lines: Sequence[DemandLine],
) -> None:
    """A config without room for all looked as if it had some, and a sweep recommended it."""
    fleet = make_fleet_settings(cpu=8, price="0.10", max_capacity=1)
    calm = Chances(interruptions_per_hour=0, capacity_errors_per_day=0)
    options = Options(days=0.06, chances=calm)
    result = Simulation(folded(lines), make_settings(fleet), options).run()
    assert result.history.deleted_waiting == result.history.waiting_by_minute()[59] > 3
