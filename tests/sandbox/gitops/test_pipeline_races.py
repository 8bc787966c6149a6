"""What happens between plan and apply, with Terraform and EC2 under the test's control."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from reconciler.gitops.limits import config_facts
from reconciler.gitops.pipeline import Pipeline, PipelineSettings
from reconciler.gitops.plan_directory import PlanDirectory
from reconciler.gitops.render import TFVARS
from reconciler.model.errors import Conflict, NotFound, PortError, Refused, Unavailable
from reconciler.model.fleet import Fleet, Instance
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, InstanceId, Region
from reconciler.model.snapshot import CloudState
from reconciler.ports.repository import CheckoutState
from reconciler.ports.terraform import SavedPlan, StateVersion, TaintedResource, TerraformDiagnostic
from tests.unit.gitops.plans import fleet_attributes, plan, resource

pytestmark = pytest.mark.sandbox

REGION = Region("us-west-2")
FLEET_ID = FleetId("fleet-primary-small")
NEW_TAGS = {"cluster": "analytics", "fleet": "primary-small", "team": "data"}


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

    def set_target_capacity(self, region: Region, fleet_id: FleetId, capacity: int) -> None:
        """Never called: pipelines do not scale."""
        raise AssertionError("a pipeline must not scale")

    def instances(self, region: Region, ids: Sequence[InstanceId]) -> tuple[Instance, ...]:
        """Never called."""
        raise AssertionError("not asked for")

    def terminate_instances(self, region: Region, ids: Sequence[InstanceId]) -> None:
        """Never called: pipelines end no nodes."""
        raise AssertionError("a pipeline must not end nodes")


class ScriptedTerraform:
    """Plans what the test says, over the cloud's present target."""

    def __init__(self, cloud: OneFleetCloud) -> None:
        self._cloud = cloud
        self.actions = ["update"]
        self.tags: dict[str, str] = NEW_TAGS
        self.more: dict[str, Any] = {}
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

    def plan(self, file: str, *, lock: bool = True, only: Sequence[str] = ()) -> SavedPlan:
        """Save a plan that says what the cloud is and what should be."""
        before = fleet_attributes(target=self._cloud.target)
        after = fleet_attributes(target=self._cloud.target, tags=self.tags, **self.more)
        planned = None if self.actions == ["delete"] else after
        return self.save(file, plan(resource("aws_ec2_fleet", self.actions, before, planned)))

    def save(self, file: str, shown: dict[str, Any]) -> SavedPlan:
        """Keep it under this name."""
        Path(file).write_text(json.dumps(shown))
        self.plans.append(shown)
        return SavedPlan(file=file, changes=True)

    def show_json(self, file: str) -> dict[str, Any]:
        """What `plan` saved."""
        shown: dict[str, Any] = json.loads(Path(file).read_text())
        return shown

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


def stages(
    tmp_path: Path, cloud: OneFleetCloud, terraform: ScriptedTerraform, *, allowed: bool = False
) -> Pipeline:
    """The pipeline over both."""
    (tmp_path / "module").mkdir(exist_ok=True)
    settings = PipelineSettings(
        module=tmp_path / "module",
        plans=PlanDirectory(tmp_path / "plan"),
        allow_destroy=frozenset({"primary-small"} if allowed else ()),
    )
    return Pipeline(terraform, lambda _cluster: cloud, NoCheckout(), settings)


def test_unmoved_capacity_applies_the_approved_plan_itself(tmp_path: Path) -> None:
    """What was reviewed is what is applied."""
    cloud = OneFleetCloud(4)
    terraform = ScriptedTerraform(cloud)
    pipeline = stages(tmp_path, cloud, terraform)
    assert pipeline.plan().binding.targets == {FLEET_ID: 4}
    assert pipeline.apply().replans == 0
    assert (len(terraform.plans), terraform.applied) == (1, [4])


def test_moved_capacity_is_never_rolled_back(tmp_path: Path) -> None:
    """An hour of scaling must not be undone by a tag."""
    cloud = OneFleetCloud(4)
    terraform = ScriptedTerraform(cloud)
    pipeline = stages(tmp_path, cloud, terraform)
    pipeline.plan()
    cloud.target = 40
    assert pipeline.apply().replans == 1
    assert terraform.applied == [40]


def test_moved_capacity_and_another_change_need_a_new_approval(tmp_path: Path) -> None:
    """The approval of a tag is not the approval of whatever came meanwhile."""
    cloud = OneFleetCloud(4)
    terraform = ScriptedTerraform(cloud)
    pipeline = stages(tmp_path, cloud, terraform)
    pipeline.plan()
    cloud.target = 40
    terraform.tags = {**NEW_TAGS, "team": "other"}
    with pytest.raises(Conflict, match="so did something else"):
        pipeline.apply()
    assert terraform.applied == []


@pytest.mark.parametrize("more", [{"context": "other"}, {}])
def test_capacity_that_keeps_moving_stops_only_what_would_send_it(
    tmp_path: Path, more: dict[str, str]
) -> None:
    """A race that cannot be won must end; tags send no capacity, and need not wait for a calm."""
    cloud = OneFleetCloud(4)
    terraform = ScriptedTerraform(cloud)
    terraform.more = more
    pipeline = stages(tmp_path, cloud, terraform)
    pipeline.plan()

    def move() -> None:
        cloud.target += 1

    cloud.on_look = move
    if more:
        with pytest.raises(Conflict, match="keeps moving"):
            pipeline.apply()
    else:
        assert pipeline.apply().replans == 1
    assert len(terraform.applied) == (0 if more else 1)


def test_unknown_live_capacity_stops_the_apply(tmp_path: Path) -> None:
    """Not knowing is no reason to send an old number."""
    cloud = OneFleetCloud(4)
    terraform = ScriptedTerraform(cloud)
    pipeline = stages(tmp_path, cloud, terraform)
    pipeline.plan()
    cloud.failure = Unavailable("EC2", "no answer")
    with pytest.raises(Unavailable):
        pipeline.apply()
    assert terraform.applied == []


def test_approved_removal_waits_for_the_last_node(tmp_path: Path) -> None:
    """A target of zero with nodes still draining is not drained."""
    cloud = OneFleetCloud(0, nodes=1)
    terraform = ScriptedTerraform(cloud)
    terraform.actions = ["delete"]
    pipeline = stages(tmp_path, cloud, terraform, allowed=True)
    report = pipeline.plan()
    assert [f.code for f in report.findings] == ["fleet/not-drained"]
    with pytest.raises(Refused, match="still has 1 nodes"):
        pipeline.apply()
    cloud.nodes = 0
    pipeline.apply()
    assert len(terraform.applied) == 1


def test_removal_is_refused_when_ec2_does_not_answer(tmp_path: Path) -> None:
    """A fleet whose nodes cannot be seen must be taken for full."""
    cloud = OneFleetCloud(0)
    terraform = ScriptedTerraform(cloud)
    terraform.actions = ["delete"]
    cloud.failure = Unavailable("EC2", "no answer")
    report = stages(tmp_path, cloud, terraform, allowed=True).plan()
    assert not report.allowed
    assert "fleet/nodes-unknown" in {f.code for f in report.findings}


def test_serial_that_moved_stops_the_apply(tmp_path: Path) -> None:
    """Somebody else applied in between."""
    cloud = OneFleetCloud(4)
    terraform = ScriptedTerraform(cloud)
    pipeline = stages(tmp_path, cloud, terraform)
    pipeline.plan()
    terraform.state = StateVersion(lineage="one", serial=4)
    with pytest.raises(Conflict, match="serial was 3, is 4"):
        pipeline.apply()


def test_files_that_the_config_does_not_render_are_a_warning(tmp_path: Path) -> None:
    """A reviewer must know that the plan is not of the config they read."""
    cloud = OneFleetCloud(4)
    module = tmp_path / "module"
    module.mkdir()
    (module / TFVARS).write_text("{}")
    config = b"cluster: analytics\nsectors: {primary: {kind: memory, fleets: [{size: small}]}}\n"
    settings = PipelineSettings(
        module=module, plans=PlanDirectory(tmp_path / "plan"), facts=config_facts(config)
    )
    pipeline = Pipeline(ScriptedTerraform(cloud), lambda _cluster: cloud, NoCheckout(), settings)
    (finding,) = pipeline.plan().findings
    assert (finding.severity, finding.code) == ("warning", "render/stale")
