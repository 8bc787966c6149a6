"""The world of a scenario with the program on it, and what may be done there."""

from collections.abc import Callable

from reconciler.model.cluster import Owner, Pod
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import PodKey
from reconciler.planner.settings import FleetSettings
from tests.builders import HOME, make_spec
from tests.life.happenings import Happenings
from tests.life.laws import Laws
from tests.life.programs import Config
from tests.life.settling import disorder
from tests.life.stage import Stage

SLEEP_SECONDS = 60.0
QUIET_SECONDS = 330.0
"""Longer than any timer of the scenarios: then a run has come to its end."""
ENDS_WITHIN_SECONDS = 3600.0


class Scene:
    """A scenario's world and the program on it.

    Args:
        config: The config.
        departed: Whether EC2 has a fleet that the config does not name.
        fleets: The config's fleets; else those of `stage.fleet_settings`.
    """

    def __init__(
        self, config: Config, *, departed: bool, fleets: tuple[FleetSettings, ...] = ()
    ) -> None:
        self.stage = Stage(config, fleets)
        self.world = self.stage.world
        if not departed:
            self._end_departed_fleet()
        self.happenings = Happenings(self.stage)
        self.laws = Laws(self.stage, self.happenings)
        self.jobs: list[PodKey] = []

    def _end_departed_fleet(self) -> None:
        """Most scenarios are clearer without a fleet that the config does not name."""
        record = self.world.fleets.records[self.stage.departed]
        members = self.world.fleets.members(record)
        self.world.delete_fleet(self.stage.departed)
        for member in members:
            self.world.end_instance(member.id)
        self.world.advance(60)

    def pods(self, name: str, cpu: str, count: int = 1, kind: str = "ReplicaSet") -> list[PodKey]:
        """A workload's pods."""
        spec = make_spec(cpu, "256Mi", sector="primary")
        made = [
            self.world.add_pod(
                Pod(
                    key=PodKey(namespace="ns", name=f"{name}-{number}"),
                    spec=spec,
                    owner=Owner(kind=kind, name=name, uid=name),
                    labels=FrozenMap({"app": name}),
                )
            )
            for number in range(count)
        ]
        if kind == "Job":
            self.jobs += made
        return made

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        """Have something happen at a second of the scenario."""
        self.world.clock.call_later(seconds, act)

    def finish(self, keys: list[PodKey]) -> None:
        """Jobs' pods end well."""
        for key in keys:
            self.world.finish_pod(key)
            self.jobs.remove(key)

    def remove(self, keys: list[PodKey]) -> None:
        """Pods are deleted for good."""
        for key in keys:
            self.world.remove_pod(key)

    def set_target(self, name: str, target: int) -> None:
        """The fleet has so many nodes when the scenario begins."""
        self.world.fleets.set_target(
            self.world.fleets.records[self.stage.fleets[name, HOME]], target
        )

    def run(self, at_least_seconds: float) -> bool:
        """Cycle until quiet; whether it came to that."""
        process = self.stage.process
        process.sleep_seconds = lambda: SLEEP_SECONDS
        begun_at = process.now
        process.run_for(at_least_seconds)
        while process.now - process.active_at < QUIET_SECONDS:
            process.run_for(SLEEP_SECONDS)
            if process.now - begun_at > ENDS_WITHIN_SECONDS:
                return False
        return True

    def end(self) -> dict[str, object]:
        """What a run came to, apart from the names of machines."""
        world = self.world
        targets = {f"{name} in {region}": world.target(fleet)
                   for (name, region), fleet in self.stage.fleets.items()}  # fmt: skip
        bound: dict[str, int] = {}
        for pod in world.pods():
            if pod.owner is not None and not pod.finished:
                key = f"{pod.owner.name} {'runs' if pod.node_name else 'waits'}"
                bound[key] = bound.get(key, 0) + 1
        nodes: dict[str, int] = {}
        for node in world.nodes():
            if node.instance_id is not None:
                name = node.labels["fleet"]
                nodes[name] = nodes.get(name, 0) + 1
        disordered = list(disorder(self.stage, self.laws))
        return {"targets": targets, "pods": bound, "nodes": nodes, "disorder": disordered}

    def lost_jobs(self) -> list[str]:
        """Jobs' pods that ran and are there no more, although they had not finished."""
        return [str(key) for key in self.jobs if self.world.objects.find(key) is None]
