"""Operators change the config, and do by hand what they had better leave to the program."""

from dataclasses import replace
from typing import Any

from reconciler.model.actions import DO_NOT_DISRUPT
from reconciler.model.fleet import Instance
from reconciler.model.frozen import FrozenMap
from tests.life.happenings.acting import Acting
from tests.life.programs import Step


class Operators(Acting):
    """What operators do."""

    def _minimum(self, step: Step) -> None:
        """A maximum below it goes up as well: the config's validation refuses anything else."""
        least = (0, 0, 1, 2)[step.b % 4]
        most = self.stage.process.settings.fleets()[0].max_capacity
        limit = most if most is None else max(most, least)
        self.stage.change_fleet("primary-small", min_capacity=least, max_capacity=limit)

    def _maximum(self, step: Step) -> None:
        least = self.stage.process.settings.fleets()[0].min_capacity
        limit = (None, least, least + 1, least + 3)[step.b % 4]
        self.stage.change_fleet("primary-small", max_capacity=limit)

    def _thresholds(self, step: Step) -> None:
        for fleet in self.stage.process.settings.fleets():
            changed = replace(fleet.scale_in, utilization_threshold=(0.2, 0.5, 0.95)[step.b % 3])
            self.stage.change_fleet(fleet.name, scale_in=changed)

    def _allow_destroy(self, step: Step) -> None:
        self.stage.allow_destroy(*(["primary-old"] if step.b % 3 else []))

    def _change_node(self, step: Step, **changed: Any) -> None:
        node = self._node(step)
        if node is not None:
            self.world.add_node(replace(node, **changed))

    def _cordon(self, step: Step) -> None:
        self._change_node(step, unschedulable=True)

    def _uncordon(self, step: Step) -> None:
        for node in self._nodes():
            if node.unschedulable:
                self.world.add_node(replace(node, unschedulable=False))

    def _keep_node(self, step: Step) -> None:
        node = self._node(step)
        if node is not None:
            annotations = {**node.annotations, DO_NOT_DISRUPT: "true"}
            self.world.add_node(replace(node, annotations=FrozenMap(annotations)))
            self.guarded_at.setdefault(node.name, self._now())

    def _let_node_go(self, step: Step) -> None:
        for node in self._nodes():
            annotations = {k: v for k, v in node.annotations.items() if k != DO_NOT_DISRUPT}
            self.world.add_node(replace(node, annotations=FrozenMap(annotations)))
            self.guarded_at.pop(node.name, None)

    def _end_by_hand(self, step: Step) -> None:
        instance = self._instance(step)
        if instance is not None:
            self.world.end_instance(instance.id)

    def _delete_node_by_hand(self, step: Step) -> None:
        """Somebody deletes the Node object; the kubelet of a living instance registers again."""
        node = self._node(step)
        if node is None:
            return
        self.world.objects.remove_node(node.name)
        self.guarded_at.pop(node.name, None)  # it registers without its annotations
        instance = self.world.fleets.instances.get(node.instance_id) if node.instance_id else None
        if instance is not None and not instance.gone:
            self.world.rejoin(instance.id)

    def _target_by_hand(self, step: Step) -> None:
        record = self.world.fleets.records[self._fleet(step)]
        if record.locked:
            return
        self.world.fleets.set_target(record, max(0, record.target + (-1, 1, 2)[step.b % 3]))

    def _members(self) -> list[Instance]:
        """Living members of groups whose nodes have joined."""
        fleets = self.world.fleets
        joined = {node.instance_id for node in self._nodes()}
        return [
            instance
            for instance in fleets.instances.values()
            if not instance.gone
            and instance.id in joined
            and instance.fleet_id in fleets.records
            and fleets.records[instance.fleet_id].is_group
        ]

    def _guard_node_of(self, instance: Instance) -> None:
        for node in self._nodes():
            if node.instance_id == instance.id:
                self.guarded_at.setdefault(node.name, self._now())

    def _stand_by(self, step: Step) -> None:
        """Somebody takes a member out of service, with or without one in its place."""
        found = [member for member in self._members() if not member.set_aside]
        if found:
            chosen = found[step.a % len(found)]
            self.world.enter_standby(chosen.id, decrement=bool(step.b % 2))
            self._guard_node_of(chosen)

    def _back_in_service(self, step: Step) -> None:
        for instance in [e for e in self._members() if e.set_aside]:
            self.world.exit_standby(instance.id)
            self._let_instance_go(instance)

    def _protect(self, step: Step) -> None:
        """Somebody protects a member from scale-in."""
        found = self._members()
        if found:
            chosen = found[step.a % len(found)]
            self.world.protect_instance(chosen.id)
            self._guard_node_of(chosen)

    def _unprotect(self, step: Step) -> None:
        for instance in [e for e in self._members() if e.protected and not e.set_aside]:
            self.world.protect_instance(instance.id, protected=False)
            self._let_instance_go(instance)

    def _forbid_end(self, step: Step) -> None:
        """Somebody protects an instance from termination; a group ends it all the same."""
        instance = self._instance(step)
        if instance is not None:
            self.world.protect_from_termination(instance.id)

    def _allow_end(self, step: Step) -> None:
        for each in sorted(self.world.fleets.termination_protected):
            self.world.protect_from_termination(each, protected=False)

    def _let_instance_go(self, instance: Instance) -> None:
        for node in self._nodes():
            if node.instance_id == instance.id and DO_NOT_DISRUPT not in node.annotations:
                self.guarded_at.pop(node.name, None)

    def _foreign_node(self, step: Step) -> None:
        self.stage.add_foreign_node()
