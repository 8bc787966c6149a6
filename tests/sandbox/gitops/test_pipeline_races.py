"""What happens between plan and apply, with Terraform and EC2 under the test's control."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.config.loader import Purpose, parse_config
from reconciler.gitops.applying.left_behind import IMPORTS
from reconciler.gitops.pipeline import Pipeline, PipelineSettings
from reconciler.gitops.rendering.render import TFVARS, render
from reconciler.gitops.rendering.root_module import root_module_of
from reconciler.gitops.terraform_plan.config_facts import config_facts
from reconciler.gitops.terraform_plan.directory import PlanDirectory
from reconciler.model.errors import Conflict, Refused, Unavailable
from reconciler.ports.terraform import StateVersion
from tests.sandbox.gitops.scripted import (
    FLEET_ID,
    NEW_TAGS,
    NoCheckout,
    OneFleetCloud,
    ScriptedTerraform,
)

pytestmark = pytest.mark.sandbox


CONFIG = b"cluster: analytics\nsectors: {primary: {kind: memory, fleets: [{size: small}]}}\n"
"""A config of one fleet."""


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
    return Pipeline(terraform, lambda _cluster, _groups: cloud, NoCheckout(), settings)


def stages_beside_a_config(
    tmp_path: Path, config: bytes, terraform: ScriptedTerraform, *allowed: str
) -> Pipeline:
    """The pipeline over files that are a render of no fleets; all but the values are `allowed`."""
    cloud = OneFleetCloud(4)
    module = tmp_path / "module"
    module.mkdir(exist_ok=True)
    (module / TFVARS).write_text('{"cluster_name": "analytics", "fleets": {}}')
    settings = PipelineSettings(
        module=module,
        plans=PlanDirectory(tmp_path / "plan"),
        facts=config_facts(config),
        allow_files=dict.fromkeys(allowed, ""),
    )
    return Pipeline(terraform, lambda _cluster, _groups: cloud, NoCheckout(), settings)


def test_unmoved_capacity_applies_the_approved_plan_itself(tmp_path: Path) -> None:
    """What was reviewed is what is applied."""
    cloud = OneFleetCloud(4)
    terraform = ScriptedTerraform(cloud)
    pipeline = stages(tmp_path, cloud, terraform)
    assert pipeline.plan().inputs.targets == {FLEET_ID: 4}
    assert pipeline.apply().replans == 0
    assert (len(terraform.plans), terraform.applied) == (1, [4])


def test_imports_of_a_run_that_was_killed_do_not_stay(tmp_path: Path) -> None:
    """Import blocks that stay would be committed by somebody, and fail once the fleet is gone."""
    cloud = OneFleetCloud(4)
    pipeline = stages(tmp_path, cloud, ScriptedTerraform(cloud))
    left = tmp_path / "module" / IMPORTS
    for stage in (pipeline.plan, pipeline.drift):
        left.write_text('import {\n  to = a.b\n  id = "fleet-1"\n}\n')
        stage()
        assert not left.exists()


LEFT = 'import {\n  to = module.fleets.module.fleet["%s"].aws_ec2_fleet.this\n  id = "fleet-1"\n}\n'
"""What `reconciler import` wrote once."""


def test_import_that_would_fail_after_the_removal_stops_it(tmp_path: Path) -> None:
    """`ci finish` removed the fleet and failed then, and so did every plan of the root."""
    terraform = ScriptedTerraform(OneFleetCloud(0))
    terraform.actions = ["delete"]
    pipeline = stages_beside_a_config(tmp_path, CONFIG + b"allow_destroy: [old-small]\n", terraform)
    (tmp_path / "module/imports.tf").write_text(LEFT % "old-small")
    (finding,) = pipeline.plan().findings
    assert (finding.severity, finding.code) == ("refused", "import/gone")
    for stage in (pipeline.finish, pipeline.drift):
        with pytest.raises(Refused, match="names old-small, which"):
            stage()
    assert terraform.plans == []


def test_imports_that_are_carried_out_are_named_by_plan_and_drift(tmp_path: Path) -> None:
    """The file does no harm yet, and nobody will think of it when it does."""
    terraform = ScriptedTerraform(OneFleetCloud(4))
    terraform.changes = False
    pipeline = stages_beside_a_config(tmp_path, CONFIG, terraform)
    values = {"cluster_name": "analytics", "fleets": {"primary-small": {}}}
    (tmp_path / "module" / TFVARS).write_text(json.dumps(values))
    (tmp_path / "module/imports.tf").write_text(LEFT % "primary-small")
    assert "import/done" in {finding.code for finding in pipeline.plan().findings}
    told = "imports.tf: everything that it names is in the state: remove the file"
    assert told in pipeline.drift().notes


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
        with pytest.raises(Conflict, match="keeps changing"):
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
    with pytest.raises(Refused, match="still has 1 node "):
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


@pytest.mark.parametrize(("changes", "severity"), [(False, "warning"), (True, "refused")])
def test_plan_of_files_that_the_config_does_not_render_may_change_nothing(
    tmp_path: Path, changes: bool, severity: str
) -> None:
    """A fleet that the config no longer has was made, since its review was merged late.

    The commit of a config, which comes before its render, must not fail for it.
    """
    terraform = ScriptedTerraform(OneFleetCloud(4))
    terraform.changes = changes
    pipeline = stages_beside_a_config(tmp_path, CONFIG, terraform)
    report = pipeline.plan()
    (finding,) = report.findings
    assert (finding.severity, finding.code) == (severity, "render/stale")
    assert (report.allowed, report.nothing_to_apply) == (not changes, False)
    if changes:
        with pytest.raises(Refused, match="the guard refused this plan"):
            pipeline.apply()
    assert terraform.applied == []


def test_files_that_the_pipeline_allows_may_differ_from_the_render(tmp_path: Path) -> None:
    """Whoever changed a rendered file and named it in the pipeline could apply nothing any more."""
    terraform = ScriptedTerraform(OneFleetCloud(4))
    rendered = config_facts(CONFIG).rendered
    pipeline = stages_beside_a_config(tmp_path, CONFIG, terraform, *rendered)
    (finding,) = pipeline.plan().findings
    assert (finding.severity, finding.code) == ("warning", "render/stale")
    pipeline.apply()
    assert len(terraform.applied) == 1


def test_apply_finds_that_the_config_renders_to_other_files_by_now(tmp_path: Path) -> None:
    """A catalogue beside the config may change in a commit that leaves the config alone."""
    terraform = ScriptedTerraform(OneFleetCloud(4))
    module = tmp_path / "module"
    module.mkdir()
    for file in render(root_module_of(parse_config(CONFIG, name="x", purpose=Purpose.RENDER))):
        (module / file.path).parent.mkdir(parents=True, exist_ok=True)
        (module / file.path).write_bytes(file.content)
    settings = PipelineSettings(
        module=module, plans=PlanDirectory(tmp_path / "plan"), facts=config_facts(CONFIG)
    )
    cloud = OneFleetCloud(4)

    def stages_with(settings: PipelineSettings) -> Pipeline:
        return Pipeline(terraform, lambda _cluster, _groups: cloud, NoCheckout(), settings)

    assert stages_with(settings).plan().findings == ()
    other = config_facts(CONFIG.replace(b"small", b"large"))
    with pytest.raises(Conflict, match=r"fleets\.auto\.tfvars\.json: not what the sector config"):
        stages_with(replace(settings, facts=other)).apply()
    assert terraform.applied == []
