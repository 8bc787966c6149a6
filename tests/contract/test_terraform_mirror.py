"""Where providers are looked for."""

from pathlib import Path

import pytest

from reconciler.adapters.terraform.mirror import (
    PROVIDER,
    REGISTRY,
    VARIABLE,
    ProviderSources,
    cli_config,
    provider_sources,
)
from reconciler.model.errors import ToolError


def mirror(directory: Path) -> Path:
    """A directory that is laid out as a provider mirror."""
    (directory / PROVIDER / "5.100.0").mkdir(parents=True)
    return directory


def sources(
    environment: dict[str, str], roots: list[Path], checkout: Path | None = None
) -> ProviderSources:
    """What is found from outside of a checkout."""
    return provider_sources(
        environment, lambda path: checkout is not None and path.is_relative_to(checkout), roots
    )


def test_named_directory_wins_over_the_search(tmp_path: Path) -> None:
    """An operator who names a mirror must get that one."""
    named, found = mirror(tmp_path / "named"), mirror(tmp_path / "roots" / "found")
    environment = {VARIABLE: str(named), "HOME": str(tmp_path)}
    assert sources(environment, [found.parent]) == ProviderSources(directories=(named,))


def test_named_directory_that_is_no_mirror_is_refused(tmp_path: Path) -> None:
    """Falling back to the network would hide the mistake until the network is gone."""
    with pytest.raises(ToolError, match=VARIABLE):
        sources({VARIABLE: str(tmp_path)}, [])


@pytest.mark.parametrize("depth", ["one", "one/two"])
def test_mirror_below_a_root_is_found(tmp_path: Path, depth: str) -> None:
    """An air-gapped machine has its providers somewhere that no file names."""
    found = mirror(tmp_path / "root" / depth)
    expected = ProviderSources(directories=(found,), searched=True)
    assert sources({"HOME": str(tmp_path)}, [tmp_path / "root"]) == expected


def test_first_of_several_mirrors_is_always_the_same(tmp_path: Path) -> None:
    """Plan and apply on one machine must use the same providers."""
    expected = mirror(tmp_path / "root" / "a")
    mirror(tmp_path / "root" / "b")
    assert sources({"HOME": str(tmp_path)}, [tmp_path / "root"]).directories == (expected,)


def test_implied_mirror_comes_before_the_search(tmp_path: Path) -> None:
    """Terraform itself would take the provider from there."""
    implied = mirror(tmp_path / ".terraform.d" / "plugins")
    mirror(tmp_path / "root" / "a")
    assert sources({"HOME": str(tmp_path)}, [tmp_path / "root"]).directories == (implied,)


def test_users_own_mirrors_are_taken_over_for_the_aws_provider(tmp_path: Path) -> None:
    """A company's mirrors must not be bypassed; programs that its settings name are not taken."""
    (tmp_path / ".terraformrc").write_text(
        'provider_installation {\n  dev_overrides {\n    "evil/evil" = "/tmp/evil"\n  }\n'
        '  # filesystem_mirror { path = "/commented" }\n'
        '  filesystem_mirror {\n    path    = "/srv/mirror"\n    include = ["*/*/*"]\n  }\n'
        '  network_mirror {\n    url = "https://mirror.example.com/providers/"\n  }\n}\n'
        'credentials_helper "evil" {}\n'
    )
    mirror(tmp_path / "root" / "a")
    found = sources({"HOME": str(tmp_path)}, [tmp_path / "root"])
    assert found == ProviderSources(
        directories=(Path("/srv/mirror"),), urls=("https://mirror.example.com/providers/",)
    )
    text = cli_config(found)
    assert "evil" not in text
    assert text.count('include = ["registry.terraform.io/hashicorp/aws"]') == 2


def test_no_mirror_of_the_checkout_is_taken(tmp_path: Path) -> None:
    """Whoever writes the repository would bring the provider along."""
    (tmp_path / ".terraformrc").write_text(
        f'provider_installation {{\n  filesystem_mirror {{\n    path = "{tmp_path}/x"\n  }}\n}}\n'
    )
    mirror(tmp_path / ".terraform.d" / "plugins")
    assert sources({"HOME": str(tmp_path)}, [], tmp_path) == REGISTRY
    (tmp_path / ".terraformrc").unlink()
    assert sources({"HOME": str(tmp_path)}, [], tmp_path) == REGISTRY


def test_no_mirror_means_the_registry_for_the_aws_provider_alone(tmp_path: Path) -> None:
    """An ordinary machine downloads its provider, and none that a module or a state names."""
    environment = {"HOME": str(tmp_path)}
    assert sources(environment, [tmp_path / "none", tmp_path]) == REGISTRY
    assert "direct {\n    include = [" in cli_config(REGISTRY)
