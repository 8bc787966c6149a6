"""Expired nodes on which Jobs follow each other (docs/expiry.md)."""

from functools import partial

import pytest

from reconciler.adapters.memory import Delays, MemoryWorld
from reconciler.model.actions import TerminateInstance
from reconciler.model.cluster import Owner
from reconciler.model.outcome import Outcome
from reconciler.simulation.process import Process
from tests.builders import HOME, make_fleet_settings, make_pod, make_settings
from tests.life.stage import shape_of

MINUTE = 60.0
HOUR = 3600.0
LIFE_SECONDS = 4 * HOUR


class Work:
    """Pods that come and go in a world."""

    def __init__(self, world: MemoryWorld) -> None:
        self._world = world

    def add(self, name: str, kind: str) -> None:
        """Let a pod come."""
        owner = Owner(kind=kind, name=name, uid=name)
        self._world.add_pod(make_pod(name, cpu="500m", owner=owner))

    def finish(self, name: str) -> None:
        """Let a pod that runs come to its end."""
        for pod in self._world.pods():
            if pod.key.name == name and pod.node_name is not None:
                self._world.finish_pod(pod.key)

    def remove(self, name: str) -> None:
        """Let a pod go, as when its Deployment gets fewer replicas."""
        for pod in self._world.pods():
            if pod.key.name == name:
                self._world.remove_pod(pod.key)

    def every_ten_minutes(self, number: int, *, others: bool) -> None:
        """Plan a Job of eight minutes, and another pod that comes before its end."""
        at, later = number * 10 * MINUTE + 5, self._world.clock.call_later
        later(at, partial(self.add, f"job-{number}", "Job"))
        later(at + 8 * MINUTE, partial(self.finish, f"job-{number}"))
        if others:
            later(at + 7 * MINUTE, partial(self.add, f"other-{number}", "ReplicaSet"))
            later(at + 11 * MINUTE, partial(self.remove, f"other-{number}"))


@pytest.mark.parametrize(("others", "least"), [(False, 10), (True, 2)])
def test_node_on_which_jobs_follow_each_other_is_ended(*, others: bool, least: int) -> None:
    """In each gap between two Jobs a young pod kept it, and `terminate_after` began again.

    Without such pods it is emptied in a gap; with them after `terminate_after`.
    """
    fleet = make_fleet_settings(
        cpu=8, memory="32Gi", expire_after_seconds=20 * MINUTE, terminate_after_seconds=HOUR
    )
    world = MemoryWorld(cluster="c", delays=Delays(), scoring="least-allocated")
    world.add_fleet(shape_of(fleet, HOME), 1)
    process = Process(world, make_settings(fleet))
    process.sleep_seconds = lambda: 20.0
    ended: list[str | None] = []

    def note(outcome: Outcome) -> None:
        if isinstance(outcome.action, TerminateInstance):
            ended.append(outcome.action.node)

    process.outcome_hooks.append(note)
    work = Work(world)
    work.add("web", "ReplicaSet")
    for number in range(int(LIFE_SECONDS / (10 * MINUTE))):
        work.every_ten_minutes(number, others=others)
    process.run_for(LIFE_SECONDS)
    assert len(ended) >= least
