"""What a policy is: a function over the cycle in progress, found by its folder."""

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.planner.cycle import Cycle


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec:
    """A policy's folder declares one of these as `SPEC`."""

    name: str
    """The folder's name, and the word in the docs."""
    propose: Callable[[Cycle], None]
    """Adds actions, reservations and reasons to the cycle; reads nothing else."""
