"""Terraform, limited to what a pipeline over saved plans needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

TerraformPlanJson = dict[str, Any]
"""`terraform show -json PLAN`, format 1.x: https://developer.hashicorp.com/terraform/internals/json-format"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerraformDiagnostic:
    """One message of `terraform validate -json`."""

    severity: Literal["error", "warning"]
    summary: str
    detail: str = ""
    where: str = ""
    """`file:line` when Terraform names one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateVersion:
    """The version of the state that a decision is based on; it changes with every write."""

    lineage: str = ""
    """Terraform's id of the state over its whole life; empty when there is no state yet."""
    serial: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPlan:
    """A plan file that `apply` can execute."""

    file: str
    changes: bool
    """Terraform's detailed exit code: False for 0, True for 2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaintedResource:
    """A resource whose creation did not complete, and that Terraform would create again."""

    address: str
    type: str
    id: str


class Terraform(Protocol):
    """One root module and its state.

    Every method raises ToolError when Terraform is missing, fails, runs out of its time or is
    interrupted; the state lock is released except when the process is killed.
    """

    def version(self) -> str:
        """Return Terraform's own version, such as `1.11.4`."""
        ...

    def init(self, backend_config: Sequence[str] = ()) -> None:
        """Install providers and modules and connect to the state; repeating it is harmless.

        Args:
            backend_config: Files or `key=value` settings of the backend; no secrets, since
                arguments are visible to every process of the machine.
        """
        ...

    def validate(self) -> tuple[TerraformDiagnostic, ...]:
        """Return the messages of `terraform validate`; empty when there are none."""
        ...

    def state_version(self) -> StateVersion:
        """Return the state's current version."""
        ...

    def plan(
        self,
        file: str,
        *,
        lock: bool = True,
        only: Sequence[str] = (),
        variables_file: str = "",
    ) -> SavedPlan:
        """Refresh, plan, and save the plan to `file`; changes nothing.

        Args:
            file: Absolute path; readable by its owner only, since plans hold secrets.
            lock: False for reports that no apply will follow.
            only: Addresses to limit the plan to, with what they need; none: everything. Terraform
                adds every resource whose module instance is gone, whether it is named or not.
            variables_file: Absolute path of a JSON file whose variables replace those of the root
                module; empty: none.
        """
        ...

    def show_json(self, file: str) -> TerraformPlanJson:
        """Return a saved plan as JSON."""
        ...

    def sources(self, file: str) -> Mapping[str, str]:
        """Return every configuration file that a saved plan is based on, modules included.

        They are needed since the plan's JSON leaves out what Terraform does when it destroys
        something.
        """
        ...

    def apply(self, file: str) -> str:
        """Apply exactly this saved plan; Terraform refuses it when the state has changed.

        Returns:
            Terraform's last line, such as `Apply complete! Resources: 2 added, …`.

        Raises:
            Conflict: The saved plan is stale; nothing was changed.
        """
        ...

    def tainted(self) -> tuple[TaintedResource, ...]:
        """Return resources that Terraform would replace, as their creation is incomplete."""
        ...

    def untaint(self, address: str) -> None:
        """Mark a resource of the state as complete; this changes the state and nothing else.

        Raises:
            Conflict: The state is locked by another run.
        """
        ...

    def unlock(self, lock_id: str) -> None:
        """Remove the lock of a run that died; while that run is alive this removes its protection.

        Raises:
            ToolError: There is no such lock (any more).
        """
        ...
