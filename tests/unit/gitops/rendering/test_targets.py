"""Which configs are rendered, and to where."""

import pytest

from reconciler.gitops.rendering.targets import RenderTarget, find_targets, overlooked
from reconciler.gitops.repository.roots import changed_roots, gone_configs
from reconciler.model.errors import UsageError

FILES = (
    "sectors.yaml",
    "clusters/a/sectors.yaml",
    "clusters/b/sectors.yaml",
    "clusters/b/c/sectors.yaml",
)


def test_plain_path_renders_beside_the_config() -> None:
    """The output must land where the pipeline looks for it."""
    assert find_targets(FILES, ["sectors.yaml"]) == (
        RenderTarget(config_path="sectors.yaml", output_dir="terraform"),
    )


def test_missing_plain_path_is_a_target_still() -> None:
    """A config that was deleted or mistyped must be reported, not silently skipped."""
    assert [t.config_path for t in find_targets((), ["./x/sectors.yaml"])] == ["x/sectors.yaml"]


def test_wildcard_stays_within_one_directory() -> None:
    """A pattern for clusters must not pick up vendored copies further down."""
    found = find_targets(FILES, ["clusters/*/sectors.yaml"], "tf")
    assert [(t.config_path, t.output_dir) for t in found] == [
        ("clusters/a/sectors.yaml", "clusters/a/tf"),
        ("clusters/b/sectors.yaml", "clusters/b/tf"),
    ]


def test_pattern_that_finds_nothing_is_said_of_several_too() -> None:
    """A mistyped pattern next to a right one would be found only by reading the output."""
    (said,) = overlooked(FILES, (), ["sectors.yaml", "nowhere.yaml", "cluster/**/sectors.yaml"])
    assert said.startswith("no sector config is called cluster/**/sectors.yaml (* matches one")


def test_submodule_that_a_pattern_matches_is_said() -> None:
    """A cluster in a submodule is not rendered, and the others look as if all were well."""
    submodules = ["clusters/z", "vendored", "clusters/a/terraform"]
    (said,) = overlooked(FILES, submodules, ["clusters/*/sectors.yaml"])
    assert said.startswith("clusters/z is a submodule, which is not followed: clusters/z/sectors.")
    (said,) = overlooked((), ["clusters"], ["clusters/*/sectors.yaml"])
    assert "clusters/*/sectors.yaml is not looked for" in said
    many = overlooked((), [f"clusters/{n}" for n in range(5_010)], ["clusters/*/sectors.yaml"])
    assert (len(many), many[-1].rpartition(": ")[2]) == (11, "5,000")


def test_option_with_a_wrong_path_is_named() -> None:
    """`path: '../x' is not a path` leaves open which of the options is meant."""
    with pytest.raises(UsageError, match=r"^--config: "):
        find_targets(FILES, [""])
    for output in ("../../x", ""):
        with pytest.raises(UsageError, match=r"^--out: "):
            find_targets(FILES, ["sectors.yaml"], output)


@pytest.mark.parametrize("name", ["..", ".git", ".GIT", ".", ""])
def test_name_that_git_checks_out_nowhere_is_left_out(name: str) -> None:
    """One commit with a tree that was made by hand would stop the second loop for every cluster."""
    found = find_targets((*FILES, f"clusters/{name}/sectors.yaml"), ["clusters/*/sectors.yaml"])
    assert found == find_targets(FILES, ["clusters/*/sectors.yaml"])


@pytest.mark.parametrize("path", ["../sectors.yaml", "/etc/sectors.yaml", ".git/config", "."])
def test_config_outside_the_repository_is_refused(path: str) -> None:
    """A path that leaves the repository could read or write elsewhere."""
    with pytest.raises(UsageError):
        find_targets(FILES, [path])


@pytest.mark.parametrize("output", [".", "../x", "/tmp", "sectors.yaml"])  # noqa: S108 - refused
def test_output_over_the_config_or_outside_is_refused(output: str) -> None:
    """Rendering over the config's own directory would mix ours with theirs."""
    with pytest.raises(UsageError):
        find_targets(FILES, ["sectors.yaml"], output)


def test_configs_that_share_an_output_are_refused() -> None:
    """Two configs in one output would remove each other's files in turn."""
    with pytest.raises(UsageError, match=r"a\.yaml, b\.yaml would share terraform"):
        find_targets((), ["a.yaml", "b.yaml"])
    with pytest.raises(UsageError, match=r"a\.yaml, b\.yaml would share terraform"):
        changed_roots(("a.yaml", "b.yaml"), ["*.yaml"])


def test_removed_configs_of_one_directory_are_named_all_the_same() -> None:
    """The very commit that tidies such a directory up would stop every cluster's pipeline."""
    assert gone_configs((), ["*.yaml"], {"a.yaml", "b.yaml"}) == ("a.yaml", "b.yaml")
