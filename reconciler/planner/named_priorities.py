"""Priorities of fleets by regular expressions of their names, as Cluster Autoscaler has them."""

from collections.abc import Iterable
from functools import lru_cache

from reconciler.model.name_expression import NameExpression, parse_expression

NamedPriorities = tuple[tuple[int, tuple[str, ...]], ...]
"""Numbers, each with the expressions whose fleets have it."""


def priority_of(names: Iterable[str], priorities: NamedPriorities) -> int:
    """Return the highest number of which an expression is found in one of the names; 0 of none.

    Source: cluster-autoscaler/expander/priority: an expression may match anywhere in the name, and
    groups that none matches come last.
    """
    known = tuple(filter(None, names))
    return max(
        (
            number
            for number, expressions in priorities
            if any(_is_found(each, name) for each in expressions for name in known)
        ),
        default=0,
    )


@lru_cache(maxsize=16_384)
def _is_found(expression: str, name: str) -> bool:
    """Return whether a name has the expression in it: every plan asks about the same names."""
    return _parsed(expression).is_found_in(name)


@lru_cache(maxsize=1024)
def _parsed(expression: str) -> NameExpression:
    return parse_expression(expression)
