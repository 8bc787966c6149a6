"""A rendered root as terraform sees it, without a cloud: literal texts, rules at var.fleets."""

import base64
import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from reconciler.gitops.rendering.hcl import to_hcl
from tests.terraform.offline_root import OfflineRoot, make_fleet, make_offline_root
from tests.terraform.program import find_terraform

pytestmark = pytest.mark.terraform

HOSTILE = {
    "interpolation": '${file("/etc/passwd")}',
    "escaped": "$${x} %%{y}",
    "directive": "%{ for x in [1] }${x}%{ endfor }",
    "quotes": "\"double\" 'single' `back`",
    "backslashes": "\\n \\u0041 \\\\ \\",
    "shell": "$(id) ; | & < >",
    "unicode": "ünïcode 日本 😀",
    "${key}": "",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> OfflineRoot:
    """The rendered root of this module."""
    return make_offline_root(tmp_path_factory.mktemp("root"))


def test_hostile_tags_are_planned_literally(root: OfflineRoot) -> None:
    """A tag that is evaluated would publish what the planning machine can read."""
    resources = root.planned({"primary-small": make_fleet(tags=HOSTILE)})["primary-small"]
    ours = {
        "Name": "analytics-primary-small",
        "Spot": "true",
        "cluster": "analytics",
        "fleet": "primary-small",
        "kind": "memory",
        "kubernetes.io/cluster/analytics": "owned",
        "sector": "primary",
        "size": "small",
    }
    template, fleet = resources["aws_launch_template"], resources["aws_ec2_fleet"]
    assert fleet["tags"] == template["tags"] == HOSTILE | ours
    specifications = {s["resource_type"]: s["tags"] for s in template["tag_specifications"]}
    assert specifications == {"instance": HOSTILE | ours, "volume": HOSTILE | ours}


@pytest.mark.parametrize(
    ("fleets", "message"),
    [
        (
            {
                "primary-small": make_fleet(),
                "primary-small-us-west-2a": make_fleet(zone="us-west-2a"),
            },
            "both with and without zone (primary-small)",
        ),
        (
            {
                "primary-small": make_fleet(),
                "primary-medium": make_fleet(node_pool_size="medium", node_pool_kind="cpu"),
            },
            "of one sector_label must have one node_pool_kind (primary)",
        ),
        (
            {"primary-small": make_fleet(tags={"Spot": "no", "aws:x": "y"})},
            "must not use reserved keys in tags (primary-small: Spot)",
        ),
        ({"other-small": make_fleet()}, "must be named <sector_label>-<node_pool_size>"),
        ({"primary-small": make_fleet(ami="")}, "ami must be the id of a machine image"),
    ],
    ids=["with-and-without-zone", "two-kinds", "reserved-tags", "name", "no-image"],
)
def test_faulty_fleets_are_refused_when_planning(
    fleets: dict[str, Any], message: str, root: OfflineRoot
) -> None:
    """A tfvars file edited by hand must meet the rules that `reconciler validate` enforces."""
    assert message in root.errors_of(fleets)


def test_hcl_texts_are_read_back_as_they_were(tmp_path: Path) -> None:
    """Every mix of what HCL gives a meaning to must come out of Terraform as it went in."""
    pieces = ["$", "{", "}", "%", '"', "\\", "\n", "\t", "u0041", "~", "é", "\u2028", "😀"]
    texts = ["".join(mix) for mix in product(pieces, repeat=3)]
    (tmp_path / "main.tf").write_text(
        "locals {\n  texts = [\n" + "".join(f"    {to_hcl(t)},\n" for t in texts) + "  ]\n}\n"
    )
    done = find_terraform().run(tmp_path, "console", stdin="base64encode(jsonencode(local.texts))")
    assert done.returncode == 0, done.stderr
    assert json.loads(base64.b64decode(done.stdout.strip().strip('"'))) == texts
