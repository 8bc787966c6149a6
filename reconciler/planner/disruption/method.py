"""What a method is: one reason for which nodes are disrupted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from reconciler.model.actions import PolicyName

Run = TypeVar("Run")
"""What a method works on: the PlanBuilder, or a VoluntaryRun that voluntary methods share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method(Generic[Run]):
    """A method's file declares one of these as `METHOD`; `engine` lists them in order."""

    name: str
    """The reason, as disruption budgets and the docs call it."""
    policy: PolicyName
    """The `policy` of its actions."""
    propose: Callable[[Run], None]
    """Reads what was decided before, and writes through the builder."""
