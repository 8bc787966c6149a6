"""What a machine needs for tests over real Terraform; without it they are skipped, and say why."""

import os
import shutil

import pytest

from reconciler.adapters.terraform.mirror import VARIABLE
from tests.terraform.program import mirror_directory

_ENVIRONMENT = dict(os.environ)  # noqa: TID251 - what is installed here decides

needs_terraform = pytest.mark.skipif(
    shutil.which("terraform") is None,
    reason="the terraform program is not on the PATH; install it to run these",
)
needs_provider = pytest.mark.skipif(
    mirror_directory() is None and not _ENVIRONMENT.get("CI"),
    reason=f"no mirror has the AWS provider ({VARIABLE} names one); with CI set the network is"
    " asked",
)
real_terraform = [
    pytest.mark.sandbox,
    pytest.mark.terraform,
    pytest.mark.timeout(3600),  # each command starts the AWS provider, which takes its seconds
    needs_terraform,
]
"""Marks of a module whose tests run pipelines over emulated AWS."""
