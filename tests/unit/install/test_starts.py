"""Installs whose pods would end at once with exit code 2, refused by the manifest and the chart."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from reconciler.adapters.git.settings import GitSettings
from reconciler.config.loader import parse_config
from reconciler.install.settings import Gitops, InstallSettings, check
from reconciler.model.errors import UsageError
from tests.unit.install.command import CONFIG

SCHEMA = Path(__file__).parents[3] / "charts/fleet-reconciler/values.schema.json"
DIGEST = f"sha256:{'a' * 64}"
TAKEN = [
    "https://git.example/team/fleets.git",
    "https://git.example:8443/team/fleets.git",
    "https://[2001:db8::1]:8443/fleets.git",
    "ssh://git@git.example:2222/fleets.git",
    "ssh://git.example/fleets.git",
    "git+ssh://git@git.example/fleets.git",
    "git://git.example/fleets.git",
    "git@git.example:team/fleets.git",
    "http://localhost:3000/fleets.git",
    "http://127.0.0.1/fleets.git",
    "http://[::1]:3000/fleets.git",
    "file:///srv/fleets.git",
    "/srv/fleets.git",
]
REFUSED = [
    "http://git.internal/team/fleets.git",
    "http://localhost.evil.example/fleets.git",
    "https://me:hunter2@git.example/fleets.git",
    "https://hunter2@git.example/fleets.git",
    "ssh://git:hunter2@git.example/fleets.git",
    "git://git:hunter2@git.example/fleets.git",
    "https://git.example/fleets.git?private_token=hunter2",
    "https://git.example/fleets.git?ref=main&access_token=hunter2",
    "ssh://git@git.example/fleets.git?private_token=hunter2",
    "https://git.example/glpat-0123456789abcdefghij/fleets.git",
    "https://git.example:hunter2/fleets.git",
    "https://[git.example/fleets.git",
    "ftp://git.example/fleets.git",
    "ext::sh -c x",
    "http::https://git.example/fleets.git",
    "-x",
    "a\nb",
]
BRANCHES = ["main", "release/1.2", "a_b-c.d", "9", "b" * 200]
NO_BRANCHES = [
    *("bad..branch", "-x", "", "a//b", "a/", "a.", "a.lock", "a.lock/b", "a/.b", "/a", ".a"),
    *("a b", "a~1", "a:b", "main\n", "a@{1}", "b" * 201),
]
IMAGES = [
    "fleet-reconciler:1",
    "r/x",
    "r.example:5000/team/x_y__z--w:1.2-rc.1",
    "REGISTRY/fleet-reconciler:1",
    f"r.example/x@{DIGEST}",
]
NO_IMAGES = [
    *("r/x:1:2", "r/x@sha256:abc", "R/X:1", "X:1", "r//x:1", "r/x:", "r/x@", "r/x/", "r..e/x"),
    *("-r/x:1", "r-/x:1", "r/x:-1", f"r/x:{'t' * 129}", "r/x:1\n", "a" * 513, "https://r/x:1"),
    f"r/x@{DIGEST}:1",
]


def manifest_takes(
    image: str = "r/x:1", *, repository: str = TAKEN[0], branch: str = BRANCHES[0]
) -> bool:
    """Whether the manifest is printed."""
    second = Gitops(repository=repository, branch=branch)
    made = InstallSettings(cluster="analytics", config=CONFIG, image=image, gitops=second)
    try:
        check(made, parse_config(CONFIG))
    except UsageError:
        return False
    return True


def chart_takes(image: dict[str, Any] | None = None, **gitops: str) -> bool:
    """Whether the values fit the chart's schema."""
    defaults = yaml.safe_load((SCHEMA.parent / "values.yaml").read_text())  # as Helm merges them
    values = {
        **defaults,
        "cluster": "analytics",
        "config": CONFIG,
        "image": image or {"repository": "r/x", "tag": "1"},
        "gitops": {**defaults["gitops"], "repository": TAKEN[0], **gitops},
    }
    try:
        jsonschema.validate(values, json.loads(SCHEMA.read_text()))
    except jsonschema.ValidationError:
        return False
    return True


def pods_take(repository: str = TAKEN[0], branch: str = "main") -> bool:
    """Whether the second loop starts with it, and the token's file that each install names."""
    try:
        GitSettings(url=repository, branch=branch, token_file=Path("git-token"))
    except UsageError:
        return False
    return True


@pytest.mark.parametrize("address", [*TAKEN, *REFUSED])
def test_address_is_taken_by_all_or_by_none(address: str) -> None:
    """A pod that ends with exit code 2 takes the capacity loop with it."""
    asked = (
        pods_take(address),
        manifest_takes(repository=address),
        chart_takes(repository=address),
    )
    assert asked == (address in TAKEN,) * 3


@pytest.mark.parametrize("branch", [*BRANCHES, *NO_BRANCHES])
def test_branch_is_taken_by_all_or_by_none(branch: str) -> None:
    """As the address."""
    asked = (pods_take(branch=branch), manifest_takes(branch=branch), chart_takes(branch=branch))
    assert asked == (branch in BRANCHES,) * 3


@pytest.mark.parametrize("image", [*IMAGES, *NO_IMAGES])
def test_image_that_no_runtime_pulls_is_refused(image: str) -> None:
    """The pods of `r/x:1:2` stay in InvalidImageName."""
    assert manifest_takes(image=image) == (image in IMAGES)


@pytest.mark.parametrize(
    ("image", "is_taken"),
    [
        ({"repository": "r.example:5000/team/x"}, True),
        ({"repository": "REGISTRY/x", "tag": "", "digest": DIGEST}, True),
        ({"repository": "r/x:1"}, False),
        ({"repository": "R/X"}, False),
        ({"repository": "r//x"}, False),
        ({"repository": ""}, False),
        ({"repository": "r/x", "tag": "-1"}, False),
        ({"repository": "r/x", "digest": "sha256:abc"}, False),
    ],
)
def test_image_of_the_chart_is_one_that_a_runtime_pulls(
    image: dict[str, Any], is_taken: bool
) -> None:
    """Its three parts are put together without another look."""
    assert chart_takes(image=image) is is_taken
