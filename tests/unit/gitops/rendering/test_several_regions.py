"""A root module for each Region that fleets are in."""

import hashlib

import orjson
import pytest

from reconciler.config.loader import parse_config
from reconciler.gitops.rendering.root_module import RootModule, root_modules_of
from reconciler.gitops.rendering.targets import RenderTarget
from reconciler.gitops.repository.progress import progress_of
from reconciler.gitops.repository.proposal import propose
from reconciler.gitops.repository.roots import changed_roots
from reconciler.gitops.repository.status import ClusterStatus
from reconciler.gitops.terraform_plan.config_facts import config_facts
from reconciler.model.errors import UsageError

EAST = "us-east-1"
CONFIG = """\
cluster: analytics
regions: [us-west-2, us-east-1]
terraform:
  ami: ami-west
  ebs_size: 60
  security_group_id: sg-1
  private_subnet_ids: {us-west-2a: subnet-1}
  backend: {bucket: states, key: data/fleets.tfstate, region: us-west-2}
  by_region:
    us-east-1: {ami: ami-east, security_group_id: sg-2, private_subnet_ids: {us-east-1a: subnet-2}}
sectors:
  primary:
    kind: memory
    fleets:
    - {size: small, min_capacity: 2}
    - {size: medium, regions: [us-west-2]}
    - {size: large, regions: [us-east-1], initial_node_count: 3}
    - {size: xlarge, zone: us-east-1a, terraform: {ami: ami-own, ebs_size: 90}}
"""
MOVED = """\
cluster: analytics
regions: [us-east-1]
terraform: {ami: ami-1, security_group_id: sg-1, private_subnet_ids: {us-east-1a: subnet-1}}
sectors: {primary: {kind: memory, fleets: [{size: small}]}}
"""
TARGET = RenderTarget(config_path="sectors.yaml", output_dir="terraform")


def roots(text: str = CONFIG, *also: str) -> dict[str | None, RootModule]:
    """The root modules by Region."""
    return dict(root_modules_of(parse_config(text), also=also))


def test_fleet_is_in_the_root_of_each_of_its_regions() -> None:
    """Planning over two Regions would need a second config, and fleets made by hand."""
    assert {region: sorted(root.fleets) for region, root in roots().items()} == {
        None: ["primary-medium", "primary-small"],
        EAST: ["primary-large", "primary-small", "primary-xlarge-us-east-1a"],
    }


def test_images_and_subnets_are_of_the_region() -> None:
    """An image of one Region does not exist in another: no node would ever launch."""
    found = roots()
    home, east = found[None].fleets["primary-small"], found[EAST].fleets["primary-small"]
    keys = ("ami", "security_group_id", "private_subnet_ids", "ebs_size")
    assert [home[key] for key in keys] == ["ami-west", "sg-1", {"us-west-2a": "subnet-1"}, 60]
    assert [east[key] for key in keys] == ["ami-east", "sg-2", {"us-east-1a": "subnet-2"}, 60]
    own = found[EAST].fleets["primary-xlarge-us-east-1a"]
    assert [own[key] for key in ("ami", "security_group_id", "ebs_size")] == ["ami-own", "sg-2", 90]


def test_image_that_an_alias_names_is_in_every_region() -> None:
    """Each Region would repeat it."""
    text = CONFIG.replace("ami-west", "al2023@latest").replace("ami: ami-east, ", "")
    assert roots(text)[EAST].fleets["primary-small"]["ami"] == "al2023@latest"


def test_region_has_its_own_provider_and_state() -> None:
    """Two roots with one state would delete each other's fleets."""
    home, east = roots()[None], roots()[EAST]
    assert (home.region, east.region) == ("us-west-2", EAST)
    assert home.backend is not None
    assert east.backend is not None
    assert home.backend.key == "data/fleets.tfstate"
    assert east.backend.key == "data/fleets-us-east-1.tfstate"
    assert east.backend.region == "us-west-2"


def test_minimum_is_kept_at_home_alone() -> None:
    """Nodes of the minimum would be launched in every Region and ended again."""
    found = roots()
    counts = {
        (region, name): fleet["initial_node_count"]
        for region, root in found.items()
        for name, fleet in root.fleets.items()
    }
    assert counts[None, "primary-small"] == 2
    assert counts[EAST, "primary-small"] == 0
    assert counts[EAST, "primary-large"] == 3


def test_minimum_of_a_fleet_that_is_not_at_home_is_kept_in_its_first_region() -> None:
    """The key would be accepted and do nothing."""
    text = CONFIG.replace("initial_node_count: 3", "min_capacity: 3")
    assert roots(text)[EAST].fleets["primary-large"]["initial_node_count"] == 3
    assert config_facts(text.encode(), region=EAST).fleets["primary-large"].min_capacity == 3
    assert config_facts(text.encode()).fleets["primary-large"].min_capacity == 0


def test_region_without_fleets_keeps_its_root_so_that_its_fleets_are_removed() -> None:
    """Fleets whose root module is gone run on, and nothing plans their end."""
    alone = CONFIG.partition("    - {size: large")[0].replace(
        "[us-west-2, us-east-1]", "[us-west-2]"
    )
    manifest = orjson.dumps({"files": ["main.tf"]})
    paths = {
        change.path: change.content
        for change in propose(
            TARGET, alone.encode(), old_manifests={None: manifest, EAST: manifest}
        ).changes
    }
    values = orjson.loads(paths["terraform-us-east-1/fleets.auto.tfvars.json"] or b"")
    assert values == {"cluster_name": "analytics", "fleets": {}}
    only_home = propose(TARGET, alone.encode(), old_manifests={None: manifest})
    assert only_home.directories == ("terraform",)


def test_other_home_region_beside_its_old_root_is_refused() -> None:
    """Two roots would make the fleets of one Region, and each has half of them in its state."""
    both: dict[str | None, bytes] = {None: b"{}", EAST: b"{}"}
    with pytest.raises(UsageError, match="us-east-1 is the home region now") as refused:
        propose(TARGET, MOVED.encode(), old_manifests=both)
    assert "has no fleet, remove terraform-us-east-1" in refused.value.hint
    assert propose(TARGET, CONFIG.encode(), old_manifests=both, rendered_for="us-west-2").changes


@pytest.mark.parametrize("further", [(), (EAST,)])
def test_other_home_region_than_the_directory_was_rendered_for_is_refused(
    further: tuple[str, ...],
) -> None:
    """The state kept the fleets of the old one, and the order could not be taken back either."""
    older: dict[str | None, bytes] = dict.fromkeys((None, *further), b"{}")
    with pytest.raises(UsageError, match="terraform was rendered for us-west-2") as refused:
        propose(TARGET, MOVED.encode(), old_manifests=older, rendered_for="us-west-2")
    assert refused.value.hint.startswith("name us-west-2 first again; or, ")
    remove = "remove terraform and terraform-us-east-1:" if further else "remove terraform:"
    assert remove in refused.value.hint
    assert propose(TARGET, MOVED.encode(), old_manifests={}).changes


def test_pipeline_has_a_job_for_each_region() -> None:
    """Rendered roots that no job plans are fleets that never come."""
    files = [
        "sectors.yaml",
        "terraform/.rendered.json",
        "terraform-us-east-1/.rendered.json",
        "terraform-old/.rendered.json",
        "terraform-us-east-2/main.tf",
    ]
    every = changed_roots(files, ["sectors.yaml"])
    assert [root.output_dir for root in every] == ["terraform", "terraform-us-east-1"]
    changed = changed_roots(files, ["sectors.yaml"], changed=["terraform-us-east-1/main.tf"])
    assert [root.output_dir for root in changed] == ["terraform-us-east-1"]


def test_plan_of_a_region_knows_the_fleets_and_files_of_its_root() -> None:
    """Drift would miss the fleets of the home Region in the other one."""
    facts = config_facts(CONFIG.encode(), region=EAST)
    assert facts.region == EAST
    assert "primary-medium" not in facts.made_here
    assert facts.fleets["primary-small"].min_capacity == 0
    rendered = {
        change.path: change.content
        for change in propose(TARGET, CONFIG.encode(), old_manifests={}).changes
    }
    for path, digest in facts.rendered.items():
        content = rendered[f"terraform-us-east-1/{path}"]
        assert content is not None
        assert hashlib.sha256(content).hexdigest() == digest


@pytest.mark.parametrize(
    ("east", "stage", "detail"),
    [
        ("success", "applied", ""),
        ("pending", "planned", "terraform-us-east-1: is being applied"),
        ("failure", "planned", "terraform-us-east-1: the apply failed: see the pipeline"),
    ],
)
def test_config_has_come_as_far_as_the_last_of_its_regions(
    east: str, stage: str, detail: str
) -> None:
    """A failed apply in one Region would be hidden by the other's success."""
    status = ClusterStatus(
        target=TARGET, state="unchanged", directories=("terraform", "terraform-us-east-1")
    )
    checks = {
        "fleet-reconciler/apply/terraform": "success",
        "fleet-reconciler/apply/terraform-us-east-1": east,
    }
    progress = progress_of(status, checks)  # type: ignore[arg-type] # literals
    assert (progress.stage, progress.detail) == (stage, detail)
