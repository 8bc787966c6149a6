"""The config's `terraform` keys are the variables of the eks_fleet module."""

import re
from pathlib import Path

from reconciler.config.terraform import TerraformVariables

MODULE = Path(__file__).parents[3] / "terraform" / "eks_fleet"
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
}
"""Variables that follow from the fleet's own keys."""


def test_every_module_variable_can_be_set_and_no_other() -> None:
    """A variable that the config does not know cannot be used; one too many breaks the plan."""
    sources = "".join(path.read_text(encoding="utf-8") for path in sorted(MODULE.glob("*.tf")))
    declared = set(re.findall(r'^variable "(\w+)"', sources, re.MULTILINE))
    assert set(TerraformVariables.model_fields) == declared - FROM_THE_FLEET
