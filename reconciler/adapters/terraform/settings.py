"""Settings of the Terraform adapter."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class TerraformSettings:
    """One root module and the limits of every call."""

    directory: Path
    """The root module."""
    program: str = ""
    """Path of the program; empty: `terraform` on the PATH."""
    lock_timeout_seconds: int = 60
    """How long Terraform itself waits for the state lock."""
    init_timeout_seconds: float = 900.0
    """Long enough for a provider of several hundred megabytes."""
    read_timeout_seconds: float = 300.0
    plan_timeout_seconds: float = 1800.0
    apply_timeout_seconds: float = 7200.0
    stop_seconds: float = 300.0
    """How long an interrupted Terraform may take to finish the current API call and to release its
    lock, before it is killed."""
