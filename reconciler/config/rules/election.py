"""`config/range` for the times of `leader_election`, with which two replicas must not both act."""

from collections.abc import Iterator

from pydantic_core import PydanticCustomError

from reconciler.config import scalars
from reconciler.config.faults import RANGE
from reconciler.config.rules.document import Document
from reconciler.config.tree import Mapping, Scalar, text_of
from reconciler.model.errors import Problem

JITTER = 1.2
"""As in reconciler.loops.lease.election."""
_DEFAULTS = {"lease_duration": 15.0, "renew_deadline": 10.0, "retry_period": 2.0}


def check_election(document: Document) -> Iterator[Problem]:
    """Check lease_duration > renew_deadline > 1.2 x retry_period, with defaults where unset."""
    section = document.root.mapping("leader_election")
    times = dict(_DEFAULTS)
    for key in _DEFAULTS:
        node = section.get(key)
        if isinstance(node, Scalar) and text_of(node) is not None:
            try:
                times[key] = scalars.duration_seconds(node.text)
            except PydanticCustomError:
                return  # reported elsewhere
    lease, renew, retry = times.values()
    if lease <= renew:
        message = f"lease_duration ({lease:g} s) must be more than renew_deadline ({renew:g} s)"
        stated = _stated(section, "lease_duration", "renew_deadline")
        yield document.problem(RANGE, ("leader_election", stated), message)
    if renew <= retry * JITTER:
        message = f"renew_deadline ({renew:g} s) must be over {JITTER} x retry_period ({retry:g} s)"
        stated = _stated(section, "renew_deadline", "retry_period")
        yield document.problem(RANGE, ("leader_election", stated), message)


def _stated(section: Mapping, *keys: str) -> str:
    """Return the first key that the config states, which is to be changed."""
    return next((key for key in keys if section.states(key)), keys[0])
