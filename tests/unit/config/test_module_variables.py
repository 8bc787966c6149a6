"""The config's `terraform` keys are the variables of the modules eks_fleet and eks_group."""

import re
from pathlib import Path

from reconciler.config.terraform import TerraformVariables

MODULES = Path(__file__).parents[3] / "terraform"
FROM_THE_FLEET = {
    "cluster_name",
    "sector_label",
    "node_pool_size",
    "node_pool_kind",
    "zone",
    "spot",
    "lifecycle_in_name",
    "initial_node_count",
    "instance_types",
    "group_name",
    "max_size",
    "node_resources",
}
"""Variables that follow from the fleet's own keys."""
FROM_THE_SET = {"looked_up"}
"""What the module `fleets` gives to each of its fleets."""


def test_every_module_variable_can_be_set_and_no_other() -> None:
    """A variable that the config does not know cannot be used; one too many breaks the plan."""
    files = sorted([*MODULES.glob("eks_fleet/*.tf"), *MODULES.glob("eks_group/*.tf")])
    sources = "".join(path.read_text(encoding="utf-8") for path in files)
    declared = set(re.findall(r'^variable "(\w+)"', sources, re.MULTILINE))
    assert set(TerraformVariables.model_fields) == declared - FROM_THE_FLEET - FROM_THE_SET
