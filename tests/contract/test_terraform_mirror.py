"""Where providers are looked for."""

from pathlib import Path

import pytest

from reconciler.adapters.terraform.mirror import PROVIDER, VARIABLE, plugin_directory
from reconciler.model.errors import ToolError


def mirror(directory: Path) -> Path:
    """A directory that is laid out as a provider mirror."""
    (directory / PROVIDER / "5.100.0").mkdir(parents=True)
    return directory


def test_named_directory_wins_over_the_search(tmp_path: Path) -> None:
    """An operator who names a mirror must get that one."""
    named, found = mirror(tmp_path / "named"), mirror(tmp_path / "roots" / "found")
    environment = {VARIABLE: str(named), "HOME": str(tmp_path)}
    assert plugin_directory(environment, tmp_path, [found.parent]) == named


def test_named_directory_that_is_no_mirror_is_refused(tmp_path: Path) -> None:
    """Falling back to the network would hide the mistake until the network is gone."""
    with pytest.raises(ToolError, match=VARIABLE):
        plugin_directory({VARIABLE: str(tmp_path)}, tmp_path, [])


@pytest.mark.parametrize("depth", ["one", "one/two"])
def test_mirror_below_a_root_is_found(tmp_path: Path, depth: str) -> None:
    """An air-gapped machine has its providers somewhere that no file names."""
    found = mirror(tmp_path / "root" / depth)
    assert plugin_directory({"HOME": str(tmp_path)}, tmp_path, [tmp_path / "root"]) == found


def test_first_of_several_mirrors_is_always_the_same(tmp_path: Path) -> None:
    """Plan and apply on one machine must use the same providers."""
    expected = mirror(tmp_path / "root" / "a")
    mirror(tmp_path / "root" / "b")
    assert plugin_directory({"HOME": str(tmp_path)}, tmp_path, [tmp_path / "root"]) == expected


def test_implied_mirror_is_left_to_terraform(tmp_path: Path) -> None:
    """Terraform's own mirror may be combined with the network; -plugin-dir may not."""
    mirror(tmp_path / ".terraform.d" / "plugins")
    mirror(tmp_path / "root" / "a")
    assert plugin_directory({"HOME": str(tmp_path)}, tmp_path, [tmp_path / "root"]) is None


def test_users_own_installation_settings_are_respected(tmp_path: Path) -> None:
    """A company's network mirror must not be bypassed."""
    (tmp_path / ".terraformrc").write_text("provider_installation {\n  direct {}\n}\n")
    mirror(tmp_path / "root" / "a")
    assert plugin_directory({"HOME": str(tmp_path)}, tmp_path, [tmp_path / "root"]) is None


def test_no_mirror_means_the_network(tmp_path: Path) -> None:
    """An ordinary machine downloads its providers."""
    environment = {"HOME": str(tmp_path)}
    assert plugin_directory(environment, tmp_path, [tmp_path / "none", tmp_path]) is None
