"""Which root modules a pipeline looks at."""

import pytest

from reconciler.gitops.repository.roots import changed_roots, cluster_in

FILES = (
    "README.md",
    "clusters/a/sectors.yaml",
    "clusters/a/terraform/main.tf",
    "clusters/b/sectors.yaml",
    "clusters/b/terraform/main.tf",
    "clusters/b/terraform-notes.md",
)
PATTERNS = ("clusters/*/sectors.yaml",)


def roots(changed: set[str] | None) -> list[str]:
    """Their directories."""
    return [target.output_dir for target in changed_roots(FILES, PATTERNS, changed=changed)]


def test_without_a_base_every_root_counts() -> None:
    """A first push or a rewritten branch must not skip a cluster."""
    assert roots(None) == ["clusters/a/terraform", "clusters/b/terraform"]


def test_config_or_rendered_file_makes_its_root_count() -> None:
    """A pull request changes the config, the second loop's commit the render."""
    assert roots({"clusters/a/sectors.yaml"}) == ["clusters/a/terraform"]
    assert roots({"clusters/b/terraform/modules/gone.tf"}) == ["clusters/b/terraform"]


def test_other_files_make_none_count() -> None:
    """Fifty clusters must not plan for a word in the README."""
    assert roots({"README.md", "clusters/b/terraform-notes.md"}) == []


def test_region_that_a_config_will_be_rendered_for_counts() -> None:
    """A pull request that adds a region would be planned for the other one alone."""
    further = {"clusters/a/sectors.yaml": ("us-east-1",)}
    found = changed_roots(FILES, PATTERNS, changed={"clusters/a/sectors.yaml"}, further=further)
    assert [target.output_dir for target in found] == [
        "clusters/a/terraform",
        "clusters/a/terraform-us-east-1",
    ]


def test_file_that_a_config_names_makes_its_root_count() -> None:
    """A policy file with a fault was merged unseen, and no later config was taken over."""
    named = {"clusters/a/sectors.yaml": ("clusters/a/policy.yaml",)}
    found = changed_roots(FILES, PATTERNS, changed={"clusters/a/policy.yaml"}, named=named)
    assert [target.output_dir for target in found] == ["clusters/a/terraform"]
    assert changed_roots(FILES, PATTERNS, changed={"clusters/b/policy.yaml"}, named=named) == ()


@pytest.mark.parametrize(
    ("config", "cluster"),
    [
        (b"cluster: analytics\n", "analytics"),
        (b"cluster:\n", ""),
        (b"cluster: ~\n", ""),
        (b"cluster: null\n", ""),
        (b"cluster: 'null'\n", "null"),
        (b"cluster: ~\ncluster_name: analytics\n", "analytics"),
    ],
)
def test_cluster_without_a_value_names_none(config: bytes, cluster: str) -> None:
    """The name that `--cluster-name` gives would not be used, and the role of no cluster asked."""
    assert cluster_in(config) == cluster
