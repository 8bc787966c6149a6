"""Faults of the simulated cluster's API server, as a script writes them."""

from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from reconciler.config import scalars
from reconciler.config.base import Section
from reconciler.config.faults import quoted, wrong_type
from reconciler.config.types import Count, Name, PositiveSeconds, Seconds
from reconciler.sandbox.faults.base import ANY, Names, When

RequestFaultName = Literal[
    "conflict",
    "expired",
    "too-many-requests",
    "internal-error",
    "service-unavailable",
    "gateway-timeout",
    "lost-reply",
    "no-answer",
    "delay",
    "empty-list",
    "slow-watch",
    "dropped-watch",
]
_OF: Final = {
    "retry_after_seconds": ("retry_after", {"too-many-requests", "service-unavailable"}),
    "delay_seconds": ("delay", {"delay", "slow-watch"}),
    "events": ("events", {"dropped-watch"}),
    "lasts_seconds": ("lasts", {"dropped-watch"}),
}
_ALL_VERBS: Final = frozenset(
    {"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", ANY}
)
_VERBS: Final = {
    "conflict": {"create", "update", "patch", "delete"},
    "expired": {"list", "watch"},
    "empty-list": {"list"},
    "slow-watch": {"watch"},
    "dropped-watch": {"watch"},
}


class RequestFault(When):
    """What requests to the API server meet."""

    fault: Annotated[RequestFaultName, BeforeValidator(scalars.any_text)]
    """`expired` is 410 for a watch or a `continue` token; `lost-reply` is carried out and not
    answered, `no-answer` is neither."""
    verbs: Names = (ANY,)
    """As in RBAC: get, list, watch, create, update, patch, delete, deletecollection."""
    resources: Names = (ANY,)
    """As in RBAC: `pods`, `pods/eviction`, `nodes`."""
    name: Name = ANY
    """Only the object of this name."""
    user_agent: Name = ""
    """Only clients whose User-Agent contains this."""
    retry_after_seconds: Count = Field(default=1, alias="retry_after")
    """429 and 503: whole seconds in Retry-After; 0 leaves the header out."""
    delay_seconds: PositiveSeconds | None = Field(default=None, alias="delay")
    """`delay`: how long the answer is held back; `slow-watch`: each event."""
    events: Count = 0
    """`dropped-watch`: after so many events …"""
    lasts_seconds: Seconds = Field(default=0.0, alias="lasts")
    """… or after this long, whichever comes first that is not 0; both 0: at once."""

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        for name, (written, faults) in _OF.items():
            if name in self.model_fields_set and self.fault not in faults:
                raise wrong_type(f"`{written}` means nothing to {self.fault}")
        if self.fault in {"delay", "slow-watch"} and self.delay_seconds is None:
            raise wrong_type(f"`{self.fault}` needs `delay`")
        unknown = set(self.verbs) - _ALL_VERBS
        if unknown:
            raise wrong_type(f"there is no verb {quoted(min(unknown))}")
        possible = _VERBS.get(self.fault)
        if possible is not None and ANY not in self.verbs and not possible & set(self.verbs):
            raise wrong_type(f"`{self.fault}` shows only on {', '.join(sorted(possible))}")
        return self

    def shows_on(self, verb: str) -> bool:
        """Return whether the fault is possible for a verb, and the script names that verb."""
        possible = _VERBS.get(self.fault)
        named = ANY in self.verbs or verb in self.verbs
        return named and (possible is None or verb in possible)


class KubernetesFaults(Section):
    """Everything that goes wrong at the API server."""

    requests: tuple[RequestFault, ...] = ()
    """Faults of single requests; the first that shows wins."""
