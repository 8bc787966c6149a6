"""How a failed Terraform call is reported: the hint fits the cause."""

import pytest

from reconciler.adapters.terraform.failures import failure
from reconciler.adapters.terraform.program import CommandResult

REGION = """
Error: invalid AWS Region: us-wset-2

  with provider["registry.terraform.io/hashicorp/aws"],
  on main.tf line 3, in provider "aws":
"""
PROVIDER = """
Error: Failed to query available provider packages

Could not retrieve the list of available versions for provider hashicorp/aws: could not connect to
registry.terraform.io
"""
MOVED = """
Error: Error asking for state migration action: input disabled

Can't ask approval for state migration when interactive input is disabled.

Please remove the "-input=false" option and try again.
"""
IMPORT = """
Error: Configuration for import target does not exist

The configuration for the given import
module.fleets.module.fleet["primary-medium"].aws_launch_template.this does not exist. All target
instances must have an associated configuration to be imported.
"""
GONE = """
Error: Cannot import non-existent remote object
"""
VALUE = """
Error: Invalid value

  with provider["registry.terraform.io/hashicorp/aws"],
"""


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (REGION, "`regions`"),
        (PROVIDER, "provider mirror"),
        (MOVED, "move the folder's terraform.tfstate away"),
        (IMPORT, "imports.tf"),
        (GONE, "imports.tf"),
        (VALUE, ""),
    ],
)
def test_hint_is_about_the_cause(text: str, hint: str) -> None:
    """A mistyped region is no missing provider, though the message names the registry."""
    error = failure("plan", CommandResult(status=1, out="", error=text), text)
    assert hint in error.hint
    assert bool(error.hint) == bool(hint)
