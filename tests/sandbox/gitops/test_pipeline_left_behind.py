"""An apply that imports what an earlier one left behind, over a Terraform under our control."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from reconciler.gitops.applying.left_behind import IMPORTS
from reconciler.gitops.pipeline import Pipeline, PipelineSettings
from reconciler.gitops.rendering.render import TFVARS
from reconciler.gitops.terraform_plan.directory import PlanDirectory
from reconciler.gitops.terraform_plan.pools import PoolEdit
from reconciler.ports.terraform import SavedPlan
from tests.sandbox.gitops.scripted import (
    NEW_TAGS,
    NoCheckout,
    OneFleetCloud,
    ScriptedTerraform,
    fleets_of,
    pools,
)
from tests.unit.gitops.plans import fleet_attributes, fleet_change, plan, resource

pytestmark = pytest.mark.sandbox
LEFT_BEHIND = {"aws_ec2_fleet": "fleet-primary-medium", "aws_launch_template": "lt-medium"}
SMALL = 'module.fleets.module.fleet["primary-small"].aws_ec2_fleet.this'
MEDIUM = 'module.fleets.module.fleet["primary-medium"]'
IMPORTED = {f"{MEDIUM}.aws_ec2_fleet.this", f"{MEDIUM}.aws_launch_template.this"}


class ImportingTerraform(ScriptedTerraform):
    """Plans a change of one fleet, and another one that it makes unless it is told to import it."""

    def __init__(self, cloud: OneFleetCloud, module: Path) -> None:
        super().__init__(cloud)
        self._imports = module / IMPORTS
        self._sources: dict[str, dict[str, str]] = {}
        self.image = "ami-1"
        self.types = self.wanted_types = "r5.xlarge"
        self.done: list[set[str]] = []

    def plan(
        self,
        file: str,
        *,
        lock: bool = True,
        only: Sequence[str] = (),
        variables_file: str = "",
    ) -> SavedPlan:
        """Save a plan of what is left to do, and what it was made from."""
        blocks = self._imports.read_text() if self._imports.exists() else ""
        self._sources[file] = super().sources(file) | ({f"m-/{IMPORTS}": blocks} if blocks else {})
        before = fleet_attributes(
            target=self._cloud.target, launch_template_config=pools(self.types)
        )
        after = before | {"tags": NEW_TAGS, "launch_template_config": pools(self.wanted_types)}
        wanted = None if self.actions == ["delete"] else after
        first = resource("aws_ec2_fleet", self.actions, before, wanted)
        if only:
            # Terraform takes in what has no module instance any more, named or not.
            kept = fleets_of(variables_file)
            assert self.actions != ["delete"] or "primary-small" in kept
        found = [first, *self._medium(blocks)]
        return self.save(file, plan(*(e for e in found if not only or e["address"] in only)))

    def _medium(self, blocks: str) -> list[dict[str, Any]]:
        """The fleet that may be there already, and its template."""
        if any(about >= IMPORTED for about in self.done):
            return []
        template = {"id": "lt-medium", "image_id": "ami-1"}
        if not blocks:
            new = resource("aws_launch_template", ["create"], None, template, key="primary-medium")
            return [fleet_change(["create"], "primary-medium"), new]
        assert all(address in blocks for address in IMPORTED)
        found = [
            fleet_change(["no-op"], "primary-medium"),
            resource(
                "aws_launch_template",
                ["no-op"] if self.image == "ami-1" else ["update"],
                template,
                template | {"image_id": self.image},
                key="primary-medium",
            ),
        ]
        for each in found:
            each["change"]["importing"] = {"id": LEFT_BEHIND[each["type"]]}
        return found

    def set_pools(self, edit: PoolEdit) -> None:
        """What an apply asks of EC2 itself."""
        assert edit.fleet_id == "fleet-primary-small"
        self.types = edit.configs[0]["Overrides"][0]["InstanceType"]

    def sources(self, file: str) -> dict[str, str]:
        """What `plan` was made from."""
        return self._sources[file]

    def apply(self, file: str) -> str:
        """Keep which resources it was about."""
        shown = self.show_json(file)
        self.done.append({entry["address"] for entry in shown["resource_changes"]})
        return "Apply complete!"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A root module."""
    made = tmp_path / "module"
    made.mkdir()
    (made / TFVARS).write_text('{"cluster_name": "analytics", "fleets": {}}')
    return made


def stages(module: Path, cloud: OneFleetCloud, terraform: ImportingTerraform) -> Pipeline:
    """The pipeline over both, in an account with one fleet that no state knows of."""
    settings = PipelineSettings(
        module=module,
        plans=PlanDirectory(module.parent / "plan"),
        allow_destroy=frozenset({"primary-small"}),
    )
    return Pipeline(
        terraform,
        lambda _cluster, _groups: cloud,
        NoCheckout(),
        settings,
        left_behind=lambda _cluster, _region, _names, _groups: {"primary-medium": LEFT_BEHIND},
        set_pools=terraform.set_pools,
    )


@pytest.mark.parametrize("image", ["ami-1", "ami-2"])
def test_plan_that_is_made_again_imports_what_the_approved_one_does(
    module: Path, image: str
) -> None:
    """Each plan was fine and each apply refused it, for as long as capacity kept moving."""
    cloud = OneFleetCloud(4)
    terraform = ImportingTerraform(cloud, module)
    terraform.image = image
    pipeline = stages(module, cloud, terraform)
    assert pipeline.plan().counts["import"] == 2
    cloud.target = 40
    assert pipeline.apply().replans == 1
    (done,) = terraform.done
    assert done > IMPORTED
    assert not (module / IMPORTS).exists()


@pytest.mark.parametrize("image", ["ami-1", "ami-2"])
def test_fleet_is_imported_beside_a_removal_that_waits_for_its_drain(
    module: Path, image: str
) -> None:
    """The part without the removal made the fleet once more, and was refused at each attempt."""
    cloud = OneFleetCloud(4, nodes=2)
    terraform = ImportingTerraform(cloud, module)
    terraform.actions, terraform.image = ["delete"], image
    pipeline = stages(module, cloud, terraform)
    assert pipeline.plan().counts["import"] == 2
    assert len(pipeline.apply().waiting) == 1
    assert terraform.done == [IMPORTED]
    assert not (module / IMPORTS).exists()


def test_types_reach_ec2_without_a_capacity_beside_an_import(module: Path) -> None:
    """Terraform would send a capacity along, as it did while an import could not be made again."""
    cloud = OneFleetCloud(4)
    terraform = ImportingTerraform(cloud, module)
    terraform.wanted_types = "m5.large"
    pipeline = stages(module, cloud, terraform)
    pipeline.plan()
    assert "without a capacity: 1." in pipeline.apply().message
    assert terraform.types == "m5.large"
    imports, rest = terraform.done
    assert imports == IMPORTED
    assert rest == {SMALL}


def test_apply_begins_without_the_imports_of_one_that_was_killed(module: Path) -> None:
    """The same plan could not be applied any more: the file was not rendered."""
    cloud = OneFleetCloud(4)
    terraform = ImportingTerraform(cloud, module)
    pipeline = stages(module, cloud, terraform)
    pipeline.plan()
    (module / IMPORTS).write_text('import {\n  to = a.b\n  id = "fleet-1"\n}\n')
    assert pipeline.apply().replans == 0
    assert len(terraform.done) == 1
