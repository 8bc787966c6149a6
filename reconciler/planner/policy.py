"""What a policy is: a function over the plan in progress, found by its folder."""

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.planner.builder import PlanBuilder


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec:
    """A policy's folder declares one of these as `SPEC`."""

    name: str
    """The folder's name, and the word in the docs."""
    propose: Callable[[PlanBuilder], None]
    """Reads the builder's view and what was decided before, and writes through the builder."""
