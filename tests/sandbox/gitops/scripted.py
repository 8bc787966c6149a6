"""Terraform and EC2 under a test's control: one fleet, and plans that say what the test wants."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from reconciler.model.errors import NotFound, PortError
from reconciler.model.fleet import Fleet, Instance
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, InstanceId, Region
from reconciler.model.snapshot import CloudState
from reconciler.ports.repository import CheckoutState
from reconciler.ports.terraform import SavedPlan, StateVersion, TaintedResource, TerraformDiagnostic
from tests.unit.gitops.plans import fleet_attributes, plan, resource

REGION = Region("us-west-2")
FLEET_ID = FleetId("fleet-primary-small")
NEW_TAGS = {"cluster": "analytics", "fleet": "primary-small", "team": "data"}


def pools(instance_type: str) -> list[dict[str, Any]]:
    """A fleet's `launch_template_config` block."""
    template = {"launch_template_id": "lt-1", "version": "$Latest"}
    return [
        {
            "launch_template_specification": [template],
            "override": [{"instance_type": instance_type}],
        }
    ]


class OneFleetCloud:
    """EC2 with one fleet, whose target may move each time somebody looks."""

    def __init__(self, target: int, *, nodes: int = 0) -> None:
        self.target = target
        self.nodes = nodes
        self.failure: PortError | None = None
        self.on_look: Callable[[], None] = lambda: None

    def fleet(self, region: Region, fleet_id: FleetId) -> Fleet:
        """The fleet, read now."""
        self.on_look()
        if self.failure is not None:
            raise self.failure
        if fleet_id != FLEET_ID or region != REGION:
            raise NotFound(fleet_id, "gone")
        return Fleet(
            id=fleet_id,
            name="primary-small",
            provider="ec2-fleet",
            region=region,
            state="active",
            target_capacity=self.target,
            tags=FrozenMap({"cluster": "analytics", "fleet": "primary-small"}),
        )

    def observe(self, regions: Sequence[Region]) -> CloudState:
        """The fleet's nodes."""
        if self.failure is not None:
            raise self.failure
        instances = tuple(
            Instance(
                id=InstanceId(f"i-{number}"),
                region=REGION,
                fleet_id=FLEET_ID,
                state="running",
                instance_type="r5.xlarge",
                zone="us-west-2a",
                launched_at=None,
            )
            for number in range(self.nodes)
        )
        return CloudState(instances=instances, regions=frozenset(regions), instances_known=True)

    def fleet_state(self, region: Region, fleet_id: FleetId) -> str:
        """Never called: pipelines end no orphans."""
        raise AssertionError("a pipeline must not end nodes")

    def set_target_capacity(self, region: Region, fleet_id: FleetId, capacity: int) -> None:
        """Never called: pipelines do not scale."""
        raise AssertionError("a pipeline must not scale")

    def instances(self, region: Region, ids: Sequence[InstanceId]) -> tuple[Instance, ...]:
        """Never called."""
        raise AssertionError("not asked for")

    def terminate(
        self,
        region: Region,
        fleet_id: FleetId,
        ids: Sequence[InstanceId],
        *,
        lower_target: bool,
        expected_target: int | None = None,
    ) -> int | None:
        """Never called: pipelines end no nodes."""
        raise AssertionError("a pipeline must not end nodes")


def fleets_of(variables_file: str) -> dict[str, Any]:
    """The fleets that the variables of a plan in parts name; none without such a file."""
    if not variables_file:
        return {}
    fleets: dict[str, Any] = json.loads(Path(variables_file).read_text())["fleets"]
    return fleets


class ScriptedTerraform:
    """Plans what the test says, over the cloud's present target."""

    def __init__(self, cloud: OneFleetCloud) -> None:
        self._cloud = cloud
        self.actions = ["update"]
        self.tags: dict[str, str] = NEW_TAGS
        self.more: dict[str, Any] = {}
        self.changes = True
        """What Terraform says of each plan by its exit code."""
        self.state = StateVersion(lineage="one", serial=3)
        self.plans: list[dict[str, Any]] = []
        self.applied: list[int | None] = []

    def version(self) -> str:
        """Some version."""
        return "1.11.4"

    def init(self, backend_config: Sequence[str] = ()) -> None:
        """Nothing to install."""

    def validate(self) -> tuple[TerraformDiagnostic, ...]:
        """Always valid."""
        return ()

    def state_version(self) -> StateVersion:
        """What the test says."""
        return self.state

    def plan(
        self,
        file: str,
        *,
        lock: bool = True,
        only: Sequence[str] = (),
        variables_file: str = "",
    ) -> SavedPlan:
        """Save a plan that says what the cloud is and what should be."""
        before = fleet_attributes(target=self._cloud.target)
        after = fleet_attributes(target=self._cloud.target, tags=self.tags, **self.more)
        planned = None if self.actions == ["delete"] else after
        return self.save(file, plan(resource("aws_ec2_fleet", self.actions, before, planned)))

    def save(self, file: str, shown: dict[str, Any]) -> SavedPlan:
        """Keep it under this name."""
        Path(file).write_text(json.dumps(shown))
        self.plans.append(shown)
        return SavedPlan(file=file, changes=self.changes)

    def show_json(self, file: str) -> dict[str, Any]:
        """What `plan` saved."""
        shown: dict[str, Any] = json.loads(Path(file).read_text())
        return shown

    def sources(self, file: str) -> dict[str, str]:
        """Nothing odd."""
        return {"m-/main.tf": "# rendered"}

    def apply(self, file: str) -> str:
        """Keep which target would have been sent to EC2."""
        after = self.show_json(file)["resource_changes"][0]["change"]["after"]
        blocks = after["target_capacity_specification"] if after else [{}]
        self.applied.append(blocks[0].get("total_target_capacity"))
        return "Apply complete!"

    def tainted(self) -> tuple[TaintedResource, ...]:
        """Nothing is half made."""
        return ()

    def untaint(self, address: str) -> None:
        """Never called: nothing is tainted."""
        raise AssertionError("not asked for")

    def unlock(self, lock_id: str) -> None:
        """Never called: a pipeline takes no lock away."""
        raise AssertionError("a pipeline must not unlock")


class NoCheckout:
    """A directory outside git."""

    def state(self, directory: str) -> CheckoutState | None:
        """No commit."""
        return None
