"""An apply whose types reach EC2 without a capacity, with Terraform under the test's control."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from reconciler.gitops.applying.apply import FinishedRemovals
from reconciler.gitops.pipeline import Pipeline, PipelineSettings
from reconciler.gitops.rendering.render import TFVARS
from reconciler.gitops.terraform_plan.config_facts import ConfigFacts
from reconciler.gitops.terraform_plan.directory import PlanDirectory
from reconciler.gitops.terraform_plan.pools import PoolEdit
from reconciler.model.errors import Conflict, Forbidden, PortError, Refused
from reconciler.ports.terraform import SavedPlan, TaintedResource
from tests.sandbox.gitops.scripted import (
    NoCheckout,
    OneFleetCloud,
    ScriptedTerraform,
    fleets_of,
    pools,
)
from tests.unit.gitops.plans import fleet_attributes, plan, resource, template_change

pytestmark = pytest.mark.sandbox


class Account(OneFleetCloud):
    """EC2 with one fleet, whose types may be changed; scaled whenever anybody does anything."""

    def __init__(self) -> None:
        super().__init__(4)
        self.types = "r5.xlarge"
        self.refusal: PortError | None = None
        self.done: list[str] = []

    def set_pools(self, edit: PoolEdit) -> None:
        """What an apply asks of EC2 itself."""
        if self.refusal is not None:
            raise self.refusal
        assert edit.fleet_id == "fleet-primary-small"
        self.types = edit.configs[0]["Overrides"][0]["InstanceType"]
        self.done.append(f"ec2: {self.types}")
        self.target += 1


class PoolTerraform(ScriptedTerraform):
    """Plans an image and types, as far as they are not there yet."""

    def __init__(self, account: Account) -> None:
        super().__init__(account)
        self._account = account
        self.ami = "ami-1"
        self.wanted_ami = "ami-2"

    def plan(
        self,
        file: str,
        *,
        lock: bool = True,
        only: Sequence[str] = (),
        variables_file: str = "",
    ) -> SavedPlan:
        """Save a plan of what is left to do."""
        found = []
        template = template_change(self.ami, self.wanted_ami)
        if self.ami != self.wanted_ami:
            found.append(template)
        before = fleet_attributes(
            target=self._account.target, launch_template_config=pools(self._account.types)
        )
        after = before | {"launch_template_config": pools("m5.large")}
        if before != after:
            found.append(resource("aws_ec2_fleet", ["update"], before, after))
        if only:
            assert list(only) == [template["address"]]
            found = [each for each in found if each["address"] in only]
        return self.save(file, plan(*found))

    def apply(self, file: str) -> str:
        """Do it, sending the plan's capacity along with types."""
        for entry in self.show_json(file)["resource_changes"]:
            after = entry["change"]["after"]
            if entry["type"] == "aws_launch_template":
                self.ami = after["image_id"]
                self._account.done.append(f"terraform: {self.ami}")
                continue
            sent = after["target_capacity_specification"][0]["total_target_capacity"]
            self._account.types = after["launch_template_config"][0]["override"][0]["instance_type"]
            self._account.done.append(f"terraform: {self._account.types} with {sent}")
        return "Apply complete!"


def stages(tmp_path: Path, account: Account, terraform: PoolTerraform) -> Pipeline:
    """The pipeline over both."""
    (tmp_path / "module").mkdir()
    settings = PipelineSettings(module=tmp_path / "module", plans=PlanDirectory(tmp_path / "plan"))
    return Pipeline(
        terraform,
        lambda _cluster, _groups: account,
        NoCheckout(),
        settings,
        set_pools=account.set_pools,
    )


def test_types_reach_ec2_without_a_capacity_and_after_their_template(tmp_path: Path) -> None:
    """New types from an old image would not boot; an old capacity would undo the scaling."""
    account = Account()
    pipeline = stages(tmp_path, account, PoolTerraform(account))
    pipeline.plan()
    account.target = 9
    applied = pipeline.apply()
    assert account.done == ["terraform: ami-2", "ec2: m5.large"]
    assert account.target == 10
    assert "Fleets changed without a capacity: 1." in applied.message


def test_types_that_ec2_refuses_are_changed_by_terraform_with_the_live_capacity(
    tmp_path: Path,
) -> None:
    """A way that is closed must not leave an approved plan half done."""
    account = Account()
    account.refusal = Forbidden("fleet", "not like this")
    pipeline = stages(tmp_path, account, PoolTerraform(account))
    pipeline.plan()
    account.target = 9
    assert "without a capacity: 0." in pipeline.apply().message
    assert account.done == ["terraform: ami-2", "terraform: m5.large with 9"]


def test_fleet_that_was_made_before_the_apply_failed_is_kept(tmp_path: Path) -> None:
    """Rights that are missing, or end, after CreateFleet: the next plan would replace the fleet."""
    kept: list[str] = []

    class Failing(PoolTerraform):
        """Makes the fleet, and may then not read it."""

        def apply(self, file: str) -> str:
            raise Forbidden("terraform apply", "UnauthorizedOperation: DescribeFleets")

        def tainted(self) -> tuple[TaintedResource, ...]:
            address = 'module.fleets.module.fleet["primary-small"].aws_ec2_fleet.this'
            made = "fleet-primary-small"
            return (TaintedResource(address=address, type="aws_ec2_fleet", id=made),)

        def untaint(self, address: str) -> None:
            kept.append(address)

    account = Account()
    account.refusal = Forbidden("fleet", "not like this")
    terraform = Failing(account)
    terraform.ami = terraform.wanted_ami
    pipeline = stages(tmp_path, account, terraform)
    pipeline.plan()
    with pytest.raises(Forbidden):
        pipeline.apply()
    assert len(kept) == 1


def test_change_that_comes_between_the_parts_stops_the_apply(tmp_path: Path) -> None:
    """What nobody approved must not slip in because an apply has several parts."""
    account = Account()
    terraform = PoolTerraform(account)
    pipeline = stages(tmp_path, account, terraform)
    pipeline.plan()
    account.on_look = lambda: setattr(terraform, "wanted_ami", "ami-3")
    with pytest.raises(Conflict, match="something else changed since the approval"):
        pipeline.apply()
    assert account.done == []


class RemovingTerraform(ScriptedTerraform):
    """Plans the end of a fleet, and a new image for another one until it is there."""

    def __init__(self, account: Account) -> None:
        super().__init__(account)
        self.left = True
        self.with_image = True
        self.actions = ["delete"]
        self.removed = False
        self.stale_outputs = False
        self.dragged_along = False
        self.done: list[list[str]] = []

    def plan(
        self,
        file: str,
        *,
        lock: bool = True,
        only: Sequence[str] = (),
        variables_file: str = "",
    ) -> SavedPlan:
        """Save a plan of what is left to do."""
        before = fleet_attributes(target=self._cloud.target)
        after = None if self.actions == ["delete"] else before | {"spot": False}
        removal = [
            resource("aws_ec2_fleet", self.actions, before, after),
            resource("aws_launch_template", ["delete"], {"id": "lt-1"}, None),
        ]
        removal = [] if self.removed else removal
        image = template_change("ami-1", "ami-2", name="primary-medium")
        found = [*removal, *([image] if self.left and self.with_image else [])]
        if only:
            # Terraform takes in what has no module instance any more, named or not.
            kept = fleets_of(variables_file)
            orphans = [] if "primary-small" in kept else removal
            found = [
                each
                for each in found
                if each["address"] in only or each in orphans or self.dragged_along
            ]
        ids = {"before": {"primary-small": "fleet-primary-small"}, "after": {}}
        outputs = {"fleet_id": {"actions": ["update"], **ids}} if self.stale_outputs else {}
        return self.save(file, plan(*found, output_changes={} if only else outputs))

    def apply(self, file: str) -> str:
        """Keep which resources it was about; outputs follow only a plan of the whole root."""
        shown = self.show_json(file)
        about = [entry["address"] for entry in shown["resource_changes"]]
        self.done.append(about)
        self.removed = self.removed or any("small" in address for address in about)
        self.stale_outputs = self.removed and not shown["output_changes"]
        self.left = self.left and not any("medium" in address for address in about)
        return "Apply complete!"


def removing(
    tmp_path: Path, account: Account, approved: str = "primary-small", **rendered: str
) -> tuple[Pipeline, RemovingTerraform]:
    """The pipeline over both; the removal is approved."""
    (tmp_path / "module").mkdir()
    (tmp_path / "module" / TFVARS).write_text('{"cluster_name": "analytics", "fleets": {}}')
    terraform = RemovingTerraform(account)
    settings = PipelineSettings(
        module=tmp_path / "module",
        plans=PlanDirectory(tmp_path / "plan"),
        allow_destroy=frozenset(filter(None, [approved])),
        facts=ConfigFacts(rendered=rendered),
    )
    return Pipeline(terraform, lambda _cluster, _groups: account, NoCheckout(), settings), terraform


def test_image_does_not_wait_for_a_drain_which_ends_later(tmp_path: Path) -> None:
    """One removal that was not drained kept every other change of the cluster back."""
    account = Account()
    account.nodes = 2
    pipeline, terraform = removing(tmp_path, account)
    report = pipeline.plan()
    assert [f.code for f in report.findings] == ["fleet/not-drained"]
    account.target = 3  # the drain goes on while somebody approves
    applied = pipeline.apply()
    assert terraform.done == [
        ['module.fleets.module.fleet["primary-medium"].aws_launch_template.this']
    ]
    nodes = "primary-small still has 2 nodes (i-0, i-1) and target capacity 4"
    assert applied.waiting == (nodes,)
    account.target = account.nodes = 0
    pipeline.plan()
    applied = pipeline.apply()
    assert applied.waiting == ()
    assert [len(about) for about in terraform.done] == [1, 2]


def test_removal_alone_is_refused_until_it_is_drained(tmp_path: Path) -> None:
    """A job that applied nothing must not look as if it had."""
    account = Account()
    account.nodes = 2
    pipeline, terraform = removing(tmp_path, account)
    terraform.with_image = False
    pipeline.plan()
    with pytest.raises(Refused, match=r"primary-small: still has 2 nodes.* drains it first"):
        pipeline.apply()
    assert terraform.done == []


GONE = [
    'module.fleets.module.fleet["primary-small"].aws_ec2_fleet.this',
    'module.fleets.module.fleet["primary-small"].aws_launch_template.this',
]


def test_finish_removes_what_is_drained_and_leaves_what_nobody_approved(tmp_path: Path) -> None:
    """A removal ended only when a person ran the pipeline; an image must still be approved."""
    account = Account()
    account.nodes = 2
    pipeline, terraform = removing(tmp_path, account)
    nodes = "primary-small still has 2 nodes (i-0, i-1) and target capacity 4"
    assert pipeline.finish() == FinishedRemovals(waiting=(nodes,), others=1)
    account.nodes = 0  # the target is still to go down
    assert pipeline.finish().removed == ()
    assert terraform.done == []
    account.target = 0
    assert pipeline.finish() == FinishedRemovals(removed=("primary-small",), others=1)
    assert terraform.done == [GONE]


def test_finish_of_the_last_removal_is_complete(tmp_path: Path) -> None:
    """Whoever follows the commit has to see that nothing of it is left."""
    account = Account()
    account.target = 0
    pipeline, terraform = removing(tmp_path, account)
    terraform.with_image = False
    finished = pipeline.finish()
    assert (finished.removed, finished.complete) == (("primary-small",), True)


def test_after_the_last_removal_no_plan_has_anything_to_do(tmp_path: Path) -> None:
    """The removal left the root's outputs as they were: every later plan had a change."""
    account = Account()
    account.target = 0
    pipeline, terraform = removing(tmp_path, account)
    terraform.with_image = False
    pipeline.finish()
    assert terraform.done == [GONE, []]
    assert not terraform.stale_outputs
    assert pipeline.finish() == FinishedRemovals()
    assert terraform.done == [GONE, []]


def test_finish_writes_the_outputs_that_a_killed_one_left(tmp_path: Path) -> None:
    """It was killed between the removal and the outputs."""
    pipeline, terraform = removing(tmp_path, Account())
    terraform.with_image = False
    terraform.removed = terraform.stale_outputs = True
    assert pipeline.finish() == FinishedRemovals()
    assert terraform.done == [[]]


def test_outputs_wait_for_changes_that_nobody_approved(tmp_path: Path) -> None:
    """A plan of the whole root would change them too."""
    account = Account()
    account.target = 0
    pipeline, terraform = removing(tmp_path, account)
    assert pipeline.finish().others == 1
    assert terraform.done == [GONE]


@pytest.mark.parametrize("approved", ["", "primary-medium"])
def test_finish_removes_only_what_the_config_names(tmp_path: Path, approved: str) -> None:
    """No pull request showed the removal of this fleet as approved."""
    account = Account()
    account.target = 0
    pipeline, terraform = removing(tmp_path, account, approved)
    finished = pipeline.finish()
    assert (finished.removed, terraform.done) == ((), [])
    assert finished.others == (3 if approved else 0)
    assert bool(terraform.plans) == bool(approved)  # without an approval nothing is started


def test_finish_never_replaces(tmp_path: Path) -> None:
    """What a replacement makes is new, and nobody saw it as a plan."""
    account = Account()
    account.target = 0
    pipeline, terraform = removing(tmp_path, account)
    terraform.actions = ["delete", "create"]
    finished = pipeline.finish()
    assert (finished.removed, finished.waiting, terraform.done) == ((), (), [])


def test_finish_applies_nothing_when_terraform_would_do_more(tmp_path: Path) -> None:
    """A resource that depends on a removal would be changed without an approval."""
    account = Account()
    account.target = 0
    pipeline, terraform = removing(tmp_path, account)
    terraform.dragged_along = True
    with pytest.raises(Conflict, match="would change along with a removal"):
        pipeline.finish()
    assert terraform.done == []


def test_finish_applies_nothing_when_the_nodes_are_not_known(tmp_path: Path) -> None:
    """A fleet of which EC2 tells nothing may have nodes with pods."""
    account = Account()
    account.target = 0
    account.failure = Forbidden("DescribeInstances", "denied")
    pipeline, terraform = removing(tmp_path, account)
    with pytest.raises(Refused, match="fleet/nodes-unknown"):
        pipeline.finish()
    assert terraform.done == []


def test_finish_waits_for_the_render_of_a_newer_config(tmp_path: Path) -> None:
    """The newer commit may have taken the fleet back."""
    account = Account()
    account.target = 0
    pipeline, terraform = removing(tmp_path, account, **{TFVARS: "another digest"})
    with pytest.raises(Conflict, match="not what the sector config renders to"):
        pipeline.finish()
    assert (terraform.plans, terraform.done) == ([], [])
