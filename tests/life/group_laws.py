"""What may happen to the desired capacity of a group, judged by the world alone.

It is compared before and after everything that happens: each call of the program, each act of a
person. Nothing here asks what the program meant.
"""

from collections import Counter

from reconciler.adapters.memory import Call
from reconciler.model.fleet import Instance
from reconciler.model.ids import FleetId, InstanceId
from tests.life.running import Life


class DesiredCapacities:
    """Watches every group of a life; `broken` lists what should not have been.

    Args:
        life: What is watched, before its first step.
    """

    def __init__(self, life: Life) -> None:
        self._life = life
        self._world = life.stage.world
        self.broken: list[str] = []
        self.lowered = 0
        """Units that went down with the end of an instance."""
        self._ends = Counter[FleetId]()
        """Ends that the call under way may take a unit with."""
        self._known = self._targets()
        self._chosen = 0
        self._world.log.watchers.append(self._calling)
        life.happenings.before.append(self.check)
        life.happenings.after.append(self._take_over)

    def check(self) -> None:
        """Compare with what was known: less only by the ends of chosen instances."""
        now = self._targets()
        for fleet_id, before in self._known.items():
            fell = before - now.get(fleet_id, before)
            if fell > self._ends[fleet_id]:
                self._break(f"{fleet_id} fell by {fell}, for {self._ends[fleet_id]} chosen ends")
            self.lowered += max(0, fell)
        for chosen in self._world.fleets.chosen_by_group[self._chosen :]:
            self._break(f"a group chose {chosen} itself")
        self._begin_again()

    def _take_over(self) -> None:
        """What a person did to a group is not judged, nor what the group does because of it."""
        self._begin_again()
        self._world.clock.call_later(self._world.delays.fulfil, self._forget_choices)

    def _begin_again(self) -> None:
        self._ends.clear()
        self._known = self._targets()
        self._forget_choices()

    def _forget_choices(self) -> None:
        self._chosen = len(self._world.fleets.chosen_by_group)

    def _calling(self, call: Call) -> None:
        self.check()
        if call.operation != "terminate_in_group":
            return
        instance_id, lowers = call.arguments
        found = self._world.fleets.instances.get(InstanceId(str(instance_id)))
        if found is None or found.gone or found.fleet_id is None:
            return
        if found.set_aside and self._is_old(found):
            self._break(f"{found.id} ended in standby")
        self._ends[found.fleet_id] += int(bool(lowers))

    def _is_old(self, instance: Instance) -> bool:
        """Whether the plan could know that it was set aside."""
        nodes = [n for n in self._world.nodes() if n.instance_id == instance.id]
        since = [self._life.happenings.guarded_at.get(n.name) for n in nodes]
        known = self._life.stage.process.cluster_known_at
        return any(each is not None and each < known for each in since)

    def _targets(self) -> dict[FleetId, int]:
        records = self._world.fleets.records
        return {key: record.target for key, record in records.items() if record.is_group}

    def _break(self, what: str) -> None:
        self.broken.append(f"{self._world.clock.monotonic_seconds():.1f} s: {what}")
