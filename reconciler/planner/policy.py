"""What a policy is: a function over the plan in progress; `planner.ORDER` lists them."""

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.planner.builder import PlanBuilder


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySpec:
    """A policy: its folder defines one of these as `SPEC`, which `planner.ORDER` lists."""

    name: str
    """The folder's name, as used in the docs."""
    propose: Callable[[PlanBuilder], None]
    """Reads the builder's view and earlier decisions, and adds its own through the builder."""
