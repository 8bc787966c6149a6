"""What all faults of a script have in common: when they show, and small types."""

from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from reconciler.config import scalars
from reconciler.config.base import Section
from reconciler.config.faults import out_of_range
from reconciler.config.types import Count, Name, PositiveCount, PositiveSeconds, Seconds, Share

ANY: Final = "*"


def _listed(value: Any) -> Any:
    """Return a list; one text is a list of one."""
    return [value] if isinstance(value, str) else value


Names: TypeAlias = Annotated[tuple[Name, ...], BeforeValidator(_listed)]
"""One name or a list of names; `*` is all of them."""
Lifecycle: TypeAlias = Annotated[
    Literal["spot", "on-demand", "*"], BeforeValidator(scalars.any_text)
]


def covers(names: tuple[str, ...], name: str) -> bool:
    """Return whether `name` is one of them."""
    return ANY in names or name in names


class When(Section):
    """How often, how likely and at what time a fault shows."""

    count: PositiveCount | None = None
    """Shows at most so many times; without it for as long as it is in force."""
    after: Count = 0
    """How many occasions pass without a fault first."""
    probability: Share = 1.0
    """Shows in this share of occasions, drawn with the script's seed."""
    from_seconds: Seconds = Field(default=0.0, alias="from")
    """Not before this much time since the fault came into force."""
    until_seconds: PositiveSeconds | None = Field(default=None, alias="until")
    """Not after this much time since the fault came into force; without it: no end."""

    @model_validator(mode="after")
    def _window(self) -> Self:
        if self.until_seconds is not None and self.until_seconds <= self.from_seconds:
            raise out_of_range("`until` must be later than `from`")
        return self


class PoolFault(When):
    """A fault of capacity pools, or of the fleets that launch from them."""

    fleet: Name = ANY
    """The fleet's id or the value of its tag `fleet`."""
    instance_type: Name = ANY
    """Such as `r5.xlarge`."""
    zone: Name = ANY
    """Such as `us-west-2a`."""
    lifecycle: Lifecycle = ANY
    """`spot` or `on-demand`."""
