"""Rendering a root module: pure, self-contained, the same bytes for the same value."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from reconciler.gitops.rendering.assets import MODULES, first_with_assets, module_sources
from reconciler.gitops.rendering.render import TFVARS, render
from reconciler.gitops.rendering.root_module import RootModule, S3Backend
from reconciler.gitops.rendering.targets import MANIFEST
from reconciler.model.errors import InvariantViolated

HOSTILE = '${file("/etc/passwd")} %{ if true } "q" \\ \' <&> \x7f ü😀'


def make_fleet(**overrides: Any) -> dict[str, Any]:
    """The variables of a small spot fleet."""
    return {
        "sector_label": "primary",
        "node_pool_size": "small",
        "node_pool_kind": "memory",
        "spot": True,
        "initial_node_count": 2,
        **overrides,
    }


def make_root(**overrides: Any) -> RootModule:
    """A root module with one fleet."""
    values: dict[str, Any] = {
        "cluster_name": "analytics",
        "region": "us-west-2",
        "fleets": {"primary-small": make_fleet()},
    }
    return RootModule(**{**values, **overrides})


def rendered(root: RootModule) -> dict[str, str]:
    """The rendered files as text by path."""
    return {file.path: file.content.decode() for file in render(root)}


def test_render_of_equal_values_is_the_same_bytes() -> None:
    """Bytes that change without a cause would be committed, planned and reviewed for nothing."""
    one = make_root(fleets={"b-small": make_fleet(), "a-small": make_fleet()})
    other = make_root(
        fleets={
            "a-small": dict(reversed(make_fleet().items())),
            "b-small": make_fleet(),
        }
    )
    assert render(one) == render(other)


def test_render_vendors_all_modules_without_their_tests() -> None:
    """A root that refers to files outside of it cannot be planned in CI."""
    paths = set(rendered(make_root()))
    vendored = {f"modules/{name}/{file}" for name in MODULES for file in module_sources(name)}
    assert vendored <= paths
    assert len(vendored) >= 8
    assert not [path for path in paths if "tftest" in path or path.endswith(".md")]


def test_render_refers_to_nothing_outside_of_the_folder() -> None:
    """A module source from elsewhere would need a network and could change under a plan."""
    for path, text in rendered(make_root()).items():
        sources = re.findall(r'^  source\s+= "([^"]+)"', text, re.MULTILINE)
        assert set(sources) <= {"./modules/fleets", "../eks_fleet", "../eks_group"}, path


def test_render_root_variables_have_the_rules_of_the_set() -> None:
    """Without them a hand-edited tfvars file would reach EC2 unchecked."""
    text = rendered(make_root())["variables.tf"]
    assert text.endswith(module_sources("fleets")["variables.tf"].decode())


def test_render_tfvars_hold_cluster_and_fleets_literally() -> None:
    """A tag that is evaluated instead of copied would leak what the planning machine can read."""
    fleet = make_fleet(tags={HOSTILE: HOSTILE})
    text = rendered(make_root(fleets={"primary-small": fleet}))[TFVARS]
    assert json.loads(text) == {"cluster_name": "analytics", "fleets": {"primary-small": fleet}}
    assert text.endswith("}\n")
    assert text.index('"cluster_name"') < text.index('"fleets"')


def test_render_without_backend_declares_none() -> None:
    """A backend nobody asked for would move the state."""
    text = rendered(make_root())["versions.tf"]
    assert "backend" not in text
    assert "cloud" not in text
    assert '">= 1.9"' in text
    assert '">= 5.100, < 7"' in text


def test_render_with_backend_locks_in_s3() -> None:
    """Without a lock two pipelines apply at once."""
    backend = S3Backend(bucket="states", key="a/b.tfstate", region="us-west-2")
    text = rendered(make_root(backend=backend))["versions.tf"]
    assert text.count("backend") == 1
    assert 'backend "s3" {' in text
    assert "    use_lockfile = true\n" in text
    assert '">= 1.10"' in text


def test_render_with_backend_without_lockfile_needs_no_newer_terraform() -> None:
    """A user of 1.9 would be turned away for a feature that is switched off."""
    backend = S3Backend(bucket="s", key="k", region="us-west-2", use_lockfile=False)
    text = rendered(make_root(backend=backend))["versions.tf"]
    assert "    use_lockfile = false\n" in text
    assert '">= 1.9"' in text


def test_render_hostile_backend_arrives_literally() -> None:
    """Text of a config must never become Terraform code."""
    backend = S3Backend(
        bucket=HOSTILE,
        key='k"\n}\nresource "x" "y" {}',
        region="r",
        kms_key_id="alias/k",
        endpoint="http://127.0.0.1:9000",
    )
    text = rendered(make_root(backend=backend))["versions.tf"]
    assert '"$${file(\\"/etc/passwd\\")} %%{ if true }' in text
    assert 'key            = "k\\"\\n}\\nresource \\"x\\" \\"y\\" {}"\n' in text
    assert 'endpoints      = { "s3" = "http://127.0.0.1:9000" }\n' in text
    assert "use_path_style = true\n" in text


@pytest.mark.parametrize(("region", "provider_blocks"), [("us-west-2", 1), (None, 0)])
def test_render_provider_region_is_the_config_s(region: str | None, provider_blocks: int) -> None:
    """Fleets in another Region than the config's would never be found by the capacity loop."""
    text = rendered(make_root(region=region))["main.tf"]
    assert text.count('provider "aws"') == provider_blocks
    assert text.count('region = "us-west-2"') == provider_blocks


def test_render_manifest_names_every_file() -> None:
    """A file that the manifest misses would stay behind when it is no longer rendered."""
    files = rendered(make_root())
    assert json.loads(files[MANIFEST]) == {"files": sorted(files)}


def test_assets_of_an_installation_without_them_are_an_error(tmp_path: Path) -> None:
    """An installation that lost its modules must say so, not render half a root."""
    complete = tmp_path / "complete"
    (complete / "templates" / "root").mkdir(parents=True)
    assert first_with_assets([tmp_path / "missing", complete]) == complete
    with pytest.raises(InvariantViolated, match="install the wheel again"):
        first_with_assets([tmp_path / "missing", tmp_path])
