"""Priorities of fleets by regular expressions over their names, as in Cluster Autoscaler."""

from collections.abc import Iterable
from functools import lru_cache

from reconciler.model.name_expression import NameExpression, parse_expression

NamedPriorities = tuple[tuple[int, tuple[str, ...]], ...]
"""Numbers, each with the expressions whose fleets have it."""


def priority_of(names: Iterable[str], priorities: NamedPriorities) -> int:
    """Return the highest number with an expression that one of the names matches; 0 if none.

    Source: cluster-autoscaler/expander/priority: an expression may match anywhere in the name, and
    groups that none matches come last.
    """
    known = tuple(filter(None, names))
    return max(
        (
            number
            for number, expressions in priorities
            if any(_is_found(expression, name) for expression in expressions for name in known)
        ),
        default=0,
    )


@lru_cache(maxsize=16_384)
def _is_found(expression: str, name: str) -> bool:
    """Return whether the expression matches in a name; cached, as every plan asks again."""
    return _parsed(expression).is_found_in(name)


@lru_cache(maxsize=1024)
def _parsed(expression: str) -> NameExpression:
    return parse_expression(expression)
