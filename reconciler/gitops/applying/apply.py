"""Applies an approved plan while a capacity loop scales the same fleets.

Terraform sends a target capacity along with some changes of a fleet. Where EC2 can change them
without a target (`pools`), EC2 itself is asked. Every other plan that sends a target is made again
until the live targets are those that it is based on.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass

from reconciler.gitops.applying.kept_fleets import kept_variables
from reconciler.gitops.applying.remaining_nodes import Clouds, cluster_of, nodes_of
from reconciler.gitops.terraform_plan.directory import PlanDirectory
from reconciler.gitops.terraform_plan.finding import refused
from reconciler.gitops.terraform_plan.guard import GuardPolicy, guard, removed_name
from reconciler.gitops.terraform_plan.inputs import essence, is_part_of
from reconciler.gitops.terraform_plan.planned import (
    PlannedFleet,
    changes_outputs,
    fleets,
    resources_to_apply,
)
from reconciler.gitops.terraform_plan.pools import PoolEdit, pool_edits
from reconciler.model.errors import (
    Conflict,
    Forbidden,
    NotFound,
    PortError,
    ReconcilerError,
    Refused,
    ToolError,
)
from reconciler.model.ids import FleetId, Region
from reconciler.model.text import counted_noun
from reconciler.planner.fleets.live_fleet import LIVE_STATES
from reconciler.ports.terraform import Terraform, TerraformPlanJson

_REPLANS_MAX = 3
_OF_FLEET = re.compile(r"\.(?:aws_ec2_fleet|aws_autoscaling_group)\.this$")
_OF_TEMPLATE = ".aws_launch_template.this"
SetPools = Callable[[PoolEdit], None]
"""Makes EC2 change where a fleet may launch, and waits until that is in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """Says how an apply ended, and what is left to do."""

    message: str
    """Terraform's last line, or why there was nothing to do."""
    replans: int = 0
    """How often live capacity had changed since the plan."""
    waiting: tuple[str, ...] = ()
    """Approved removals that are left to a later run, each with what it waits for; everything else
    was applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRemovals:
    """Says which removals a run carried out, and which still wait for their drain."""

    removed: tuple[str, ...] = ()
    """Names of the removed fleets."""
    waiting: tuple[str, ...] = ()
    """Approved removals that still have nodes, each with what it waits for."""
    others: int = 0
    """Changes of other resources in the plan, which need a plan and an approval of their own."""
    planned: bool = True
    """Whether Terraform was asked; it is not while no removal is approved."""

    @property
    def complete(self) -> bool:
        """Return whether a plan was made, and has nothing left to do."""
        return self.planned and not self.waiting and not self.others


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waiting:
    """Fleets whose approved removal or replacement has to wait for the capacity loop."""

    reasons: tuple[str, ...]
    addresses: frozenset[str]
    """Addresses of everything that is removed or created with them, above all their launch
    templates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """Applies an approved plan to one root module.

    Args:
        policy: What the guard allows, given the nodes of fleets that would be removed.
        set_pools: None: Terraform changes types, subnets and prices too.
        variables: Reads the variables of the root module.
        replanning: A context in which a plan is made again: the root module is then as it was for
            the approved plan, which may import what an interrupted apply left in EC2.
    """

    terraform: Terraform
    cloud: Clouds
    plans: PlanDirectory
    policy: Callable[[Mapping[str, tuple[str, ...]]], GuardPolicy]
    variables: Callable[[], bytes]
    set_pools: SetPools | None = None
    replanning: Callable[[], AbstractContextManager[None]] = nullcontext

    def run(self, approved_essence: str) -> Applied:
        """Apply the kept plan, made again while live capacity changes.

        A plan that sends no target is made again at most once, since it cannot undo anything.

        Raises:
            Conflict: Something else changed too, or capacity keeps changing during a change that
                only Terraform can make.
            Refused: The guard refuses it, or a fleet that would be removed still has nodes.
            ToolError: Terraform failed.
        """
        file = str(self.plans.plan_file)
        for replans in range(_REPLANS_MAX + 1):
            shown = self.terraform.show_json(file)
            if essence(shown) != approved_essence:
                raise Conflict(
                    "plan",
                    "live capacity changed, and so did something else since the approval",
                    "plan and approve again",
                )
            edits = pool_edits(shown) if self.set_pools is not None else ()
            waiting = self._waiting(shown)
            edits = tuple(edit for edit in edits if edit.address not in waiting.addresses)
            planned = tuple(f for f in fleets(shown) if f.address not in waiting.addresses)
            beside = frozenset(edit.address for edit in edits)
            if not self._moved(planned if replans == 0 else _sending(planned, beside)):
                self._assert_allowed(shown, planned)
                if edits or waiting.reasons:
                    message = self._in_parts(shown, edits, waiting)
                else:
                    message = self._apply(file, planned)
                return Applied(message=message, replans=replans, waiting=waiting.reasons)
            file = self._plan()
        raise Conflict("plan", "live capacity keeps changing", "apply again in a calmer moment")

    def finish(self, whole: TerraformPlanJson) -> FinishedRemovals:
        """Apply the approved removals of fleets that have no nodes left, and nothing else.

        A replacement is not a removal: it creates something new, which has to be approved as a
        plan. When no resource is left to change, the root's outputs are brought up to date as well.

        Raises:
            Conflict: Terraform would do more than the removals.
            Refused: The guard refuses it, or the nodes of a fleet could not be read.
            ToolError: Terraform failed.
        """
        allowed = self.policy({}).allow_destroy
        removals = [
            fleet
            for fleet in fleets(whole)
            if fleet.step == "delete" and removed_name(fleet) in allowed
        ]
        nodes, blind = nodes_of(removals, self.cloud)
        if blind:
            raise Refused(blind[0].where, f"{blind[0].code}: {blind[0].message}")
        left = {fleet.address: nodes.get(fleet.fleet_id, ()) for fleet in removals}
        waits = [
            removal for removal in removals if left[removal.address] or removal.capacity_before
        ]
        ready = [removal for removal in removals if removal not in waits]
        only = _with_their_modules(whole, ready)
        if only:
            self._remove(whole, only, [f for f in _ended(whole) if f not in ready])
        held = {*only, *_with_their_modules(whole, waits)}
        found = resources_to_apply(whole)
        finished = FinishedRemovals(
            removed=tuple(sorted(removed_name(planned_fleet) for planned_fleet in ready)),
            waiting=tuple(
                sorted(f"{wait.name} {not_drained(wait, left[wait.address])}" for wait in waits)
            ),
            others=sum(resource.address not in held for resource in found),
        )
        if finished.complete and (only or changes_outputs(whole)):
            self._write_outputs()
        return finished

    def _write_outputs(self) -> None:
        """Update the root's outputs, if nothing but them is left to change.

        A plan of some addresses does not change outputs, so every later plan would show a change.
        """
        file = self._plan()
        shown = self.terraform.show_json(file)
        if changes_outputs(shown) and not resources_to_apply(shown):
            self.terraform.apply(file)

    def _remove(
        self, whole: TerraformPlanJson, only: Sequence[str], kept: Sequence[PlannedFleet]
    ) -> None:
        """Plan the removal of exactly these addresses, and apply it if it does nothing else."""
        file = self._plan_part(only, kept)
        shown = self.terraform.show_json(file)
        for resource in resources_to_apply(shown):
            if resource.step != "delete" or resource.address not in only:
                raise Conflict(
                    resource.address, "would change along with a removal", "plan and approve it"
                )
        self._partial_plan(file, shown, whole, frozenset())

    def _waiting(self, shown: TerraformPlanJson) -> _Waiting:
        """Return approved removals of fleets that still have nodes or a target capacity.

        Their drain may take hours: a new image for another fleet must not wait for it, and the
        fleets that will take their pods must be created first.

        Raises:
            Refused: There is nothing else to apply.
        """
        planned = fleets(shown)
        nodes, _ = nodes_of(planned, self.cloud)
        allowed = self.policy(nodes).allow_destroy
        reasons = {
            fleet.address: f"{fleet.name} {not_drained(fleet, nodes.get(fleet.fleet_id, ()))}"
            for fleet in planned
            if fleet.step in {"delete", "replace"}
            and removed_name(fleet) in allowed
            and (nodes.get(fleet.fleet_id) or fleet.capacity_before)
        }
        if not reasons:
            return _Waiting(reasons=(), addresses=frozenset())
        found = resources_to_apply(shown)
        modules = {resource.module for resource in found if resource.address in reasons} - {""}
        held = {resource.address for resource in found if resource.module in modules} | set(reasons)
        if all(resource.address in held for resource in found):
            first, *more = sorted(reasons.values())
            name, _, what = first.partition(" ")
            others = f" (and {counted_noun(len(more), 'more fleet')})" if more else ""
            raise Refused(name, f"{what}; the capacity loop drains it first{others}")
        return _Waiting(reasons=tuple(sorted(reasons.values())), addresses=frozenset(held))

    def _in_parts(
        self, whole: TerraformPlanJson, edits: Sequence[PoolEdit], waiting: _Waiting
    ) -> str:
        """Apply everything else first, above all templates; then EC2's part; then the rest.

        In this order new types never launch from an old template.
        """
        edited = frozenset(edit.address for edit in edits)
        now = [
            resource.address
            for resource in resources_to_apply(whole)
            if resource.address not in waiting.addresses
        ]
        others = [address for address in now if address not in edited]
        kept = [fleet for fleet in _ended(whole) if fleet.address in waiting.addresses]
        sentences = []
        if others:
            file = self._plan_part(others, kept)
            sentences.append(
                self._partial_plan(file, self.terraform.show_json(file), whole, frozenset())
            )
        if not edits:
            return " ".join(sentences)
        taken = [edit for edit in edits if self._is_taken(edit)]
        sentences.append(self._apply_rest(whole, edited, now if waiting.addresses else (), kept))
        return f"{' '.join(sentences)} Fleets changed without a capacity: {len(taken)}."

    def _is_taken(self, edit: PoolEdit) -> bool:
        """Return whether EC2 accepted it; if not, it is left for Terraform, in the last part."""
        with suppress(PortError):
            if self.set_pools is not None:
                self.set_pools(edit)
                return True
        return False

    def _plan_part(self, only: Sequence[str], kept: Sequence[PlannedFleet]) -> str:
        """Plan these addresses only; fleets of `kept` stay unchanged. Return the plan's file."""
        variables = ""
        if kept:
            self.plans.variables_file.write_bytes(kept_variables(self.variables(), kept))
            variables = str(self.plans.variables_file)
        # A fleet that is named without its template would include those of all fleets.
        templates = [_OF_FLEET.sub(_OF_TEMPLATE, each) for each in only]
        return self._plan(only=sorted({*only, *templates}), variables_file=variables)

    def _plan(self, *, only: Sequence[str] = (), variables_file: str = "") -> str:
        """Plan again, next to the approved plan. Return the plan's file."""
        file = str(self.plans.replanned_file)
        with self.replanning():
            return self.terraform.plan(file, only=only, variables_file=variables_file).file

    def _apply_rest(
        self,
        whole: TerraformPlanJson,
        edited: frozenset[str],
        only: Sequence[str],
        kept: Sequence[PlannedFleet],
    ) -> str:
        """Apply the rest, above all tags; this also updates the state with EC2's current values."""
        for _ in range(_REPLANS_MAX + 1):
            file = self._plan_part(only, kept)
            shown = self.terraform.show_json(file)
            if not self._moved(_sending(fleets(shown), frozenset())):
                return self._partial_plan(file, shown, whole, edited)
        raise Conflict("plan", "live capacity keeps changing", "plan again: the rest is left to do")

    def _partial_plan(
        self, file: str, shown: TerraformPlanJson, whole: TerraformPlanJson, edited: frozenset[str]
    ) -> str:
        if not is_part_of(shown, whole, edited):
            raise Conflict(
                "plan", "something else changed since the approval", "plan and approve again"
            )
        planned = fleets(shown)
        self._assert_allowed(shown, planned)
        return self._apply(file, planned)

    def _apply(self, file: str, planned: tuple[PlannedFleet, ...]) -> str:
        """Apply; keep fleets that were being created when Terraform was stopped.

        Terraform considers a fleet whose creation it did not see complete as broken, and would
        replace it with its nodes at the next apply.
        """
        try:
            return self.terraform.apply(file)
        except (ToolError, Forbidden):
            with suppress(ReconcilerError):
                self._keep_made_fleets(planned)
            raise

    def _keep_made_fleets(self, planned: tuple[PlannedFleet, ...]) -> None:
        by_address = {fleet.address: fleet for fleet in planned}
        for found in self.terraform.tainted():
            fleet = by_address.get(found.address)
            if fleet is not None and found.id:
                cloud = self.cloud(cluster_of(fleet), _groups_of(fleet, found.id))
                live = cloud.fleet(Region(fleet.region), FleetId(found.id))
                if live.state in LIVE_STATES:
                    self.terraform.untaint(found.address)

    def _assert_allowed(self, shown: TerraformPlanJson, planned: tuple[PlannedFleet, ...]) -> None:
        nodes, blind = nodes_of(planned, self.cloud)
        against = [*refused(guard(shown, self.policy(nodes))), *blind]
        if against:
            raise Refused(against[0].where, f"{against[0].code}: {against[0].message}")
        for fleet in planned:
            left = nodes.get(fleet.fleet_id, ())
            if fleet.step in {"delete", "replace"} and (left or fleet.capacity_before):
                raise Refused(
                    fleet.name, f"{not_drained(fleet, left)}; the capacity loop drains it first"
                )

    def _moved(self, planned: Sequence[PlannedFleet]) -> bool:
        """Return whether any fleet that the plan changes has another live target by now."""
        touched = [fleet for fleet in planned if fleet.touches_capacity]
        return any(self._live_target(fleet) != fleet.capacity_before for fleet in touched)

    def _live_target(self, fleet: PlannedFleet) -> int | None:
        try:
            cloud = self.cloud(cluster_of(fleet), fleet.groups)
            live = cloud.fleet(Region(fleet.region), FleetId(fleet.fleet_id))
        except NotFound:
            return None
        return live.target_capacity


def _groups_of(fleet: PlannedFleet, made: str) -> frozenset[str]:
    """Return the name in Auto Scaling of a group that an apply made; empty for an EC2 Fleet."""
    return frozenset({made}) if fleet.provider == "asg" else frozenset()


def not_drained(fleet: PlannedFleet, nodes: Sequence[str]) -> str:
    """Return what the removal of a fleet waits for."""
    named = f" ({', '.join(nodes[:5])}{' …' if len(nodes) > 5 else ''})" if nodes else ""
    left = counted_noun(len(nodes), "node")
    return f"still has {left}{named} and target capacity {fleet.capacity_before or 0}"


def _ended(shown: TerraformPlanJson) -> list[PlannedFleet]:
    """Return the fleets that a plan would end without a successor."""
    return [fleet for fleet in fleets(shown) if fleet.step == "delete"]


def _with_their_modules(
    shown: TerraformPlanJson, removals: Sequence[PlannedFleet]
) -> tuple[str, ...]:
    """Return addresses of removed fleets and of what is removed with them, such as templates."""
    going = {fleet.address for fleet in removals}
    found = resources_to_apply(shown)
    modules = {resource.module for resource in found if resource.address in going} - {""}
    return tuple(
        sorted(
            resource.address
            for resource in found
            if resource.address in going or resource.module in modules
        )
    )


def _sending(planned: Sequence[PlannedFleet], beside: frozenset[str]) -> list[PlannedFleet]:
    """Return the fleets with which Terraform would send a target; EC2 itself changes `beside`."""
    return [f for f in planned if f.sends_capacity and f.address not in beside]
