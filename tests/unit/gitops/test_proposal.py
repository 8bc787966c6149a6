"""From a config to the files of its directory."""

import orjson
import pytest

from reconciler.gitops.proposal import propose
from reconciler.gitops.targets import RenderTarget
from reconciler.model.errors import ConfigError, UsageError

TARGET = RenderTarget(config_path="sectors.yaml", output_dir="terraform")
SMALL = b"cluster: one\nsectors: {primary: {kind: memory, fleets: [{size: small}]}}\n"


def test_valid_config_proposes_the_rendered_files_below_the_output() -> None:
    """Files elsewhere would be somebody else's."""
    proposal = propose(TARGET, SMALL, old_manifests={})
    paths = [change.path for change in proposal.changes]
    assert proposal.cluster == "one"
    assert "terraform/fleets.auto.tfvars.json" in paths
    assert all(path.startswith("terraform/") for path in paths)
    assert all(change.content is not None for change in proposal.changes)


def test_files_of_an_older_render_are_removed() -> None:
    """A module that is no longer rendered would stay in force otherwise."""
    old = orjson.dumps({"files": ["main.tf", "modules/gone/main.tf"]})
    changes = propose(TARGET, SMALL, old_manifests={None: old}).changes
    assert [c.path for c in changes if c.content is None] == ["terraform/modules/gone/main.tf"]


@pytest.mark.parametrize(
    "manifest",
    [b"", b"nonsense", b"[]", b'{"files": 3}', b'{"files": ["../sectors.yaml", "/x", 7, "."]}'],
)
def test_odd_manifest_removes_nothing(manifest: bytes) -> None:
    """A crafted manifest must not make the loop delete the config or other files."""
    changes = propose(TARGET, SMALL, old_manifests={None: manifest}).changes
    assert not [change for change in changes if change.content is None]


def test_invalid_config_proposes_nothing() -> None:
    """A config with faults must never reach Terraform."""
    with pytest.raises(ConfigError) as caught:
        propose(TARGET, b"cluster: one\nsectors: {a: {kind: nosuch}}\n", old_manifests={})
    assert caught.value.problems


def test_nameless_cluster_takes_the_given_name_or_is_refused() -> None:
    """Fleets tagged with no cluster would never be found again."""
    nameless = SMALL.split(b"\n", 1)[1]
    assert propose(TARGET, nameless, old_manifests={}, cluster_name="two").cluster == "two"
    with pytest.raises(UsageError):
        propose(TARGET, nameless, old_manifests={})
