"""A rendered root that is planned without any cloud."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.gitops.rendering.render import TFVARS, render
from reconciler.gitops.rendering.root_module import RootModule
from reconciler.gitops.rendering.write import write_rendered
from tests.terraform.program import TerraformProgram, find_terraform

# Merged over the rendered provider block: nothing of AWS is asked while planning new fleets.
OFFLINE_PROVIDER = """
provider "aws" {
  region                      = "us-west-2"
  access_key                  = "none"
  secret_key                  = "none"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_requesting_account_id  = true
}
"""


def make_fleet(**overrides: Any) -> dict[str, Any]:
    """The variables of a small fleet that is fit to be made."""
    return {
        "sector_label": "primary",
        "node_pool_size": "small",
        "node_pool_kind": "memory",
        "spot": True,
        "initial_node_count": 2,
        "ami": "ami-0aa",
        "security_group_id": "sg-0aa",
        "private_subnet_ids": {"us-west-2a": "subnet-0aa"},
        **overrides,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineRoot:
    """A rendered and initialised root; its tfvars are the test's."""

    terraform: TerraformProgram
    folder: Path

    def errors_of(self, fleets: dict[str, Any]) -> str:
        """What planning these fleets says is wrong, on one line; empty when nothing is."""
        variables = {"cluster_name": "analytics", "fleets": fleets}
        (self.folder / TFVARS).write_text(json.dumps(variables))
        done = self.terraform.run(self.folder, "plan", "-out=saved", "-refresh=false")
        assert bool(done.stderr.strip()) == bool(done.returncode), done.stderr
        return " ".join(done.stderr.replace("│", " ").split())

    def planned(self, fleets: dict[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
        """What the plan makes: values by fleet and resource type."""
        errors = self.errors_of(fleets)
        assert errors == ""
        shown = json.loads(self.terraform.run(self.folder, "show", "-json", "saved").stdout)
        made: dict[str, dict[str, dict[str, Any]]] = {}
        for resource in shown["resource_changes"]:
            assert resource["change"]["actions"] == ["create"]
            (fleet,) = re.findall(r'fleet\["(.*)"\]', resource["address"])
            made.setdefault(fleet, {})[resource["type"]] = resource["change"]["after"]
        return made


def make_offline_root(folder: Path) -> OfflineRoot:
    """Render into the folder and initialise it."""
    terraform = find_terraform()
    write_rendered(
        render(RootModule(cluster_name="analytics", region="us-west-2", fleets={})), folder
    )
    (folder / "offline_override.tf").write_text(OFFLINE_PROVIDER)
    terraform.init(folder)
    return OfflineRoot(terraform=terraform, folder=folder)
