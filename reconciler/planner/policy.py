"""What a policy is: a function over the plan in progress; `planner.ORDER` lists them."""

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.planner.builder import PlanBuilder


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec:
    """A policy's folder has one of these as `SPEC`, which `planner.ORDER` names."""

    name: str
    """The folder's name, and the word in the docs."""
    propose: Callable[[PlanBuilder], None]
    """Reads the builder's view and what was decided before, and writes through the builder."""
