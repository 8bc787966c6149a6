"""Faults of the emulated AWS, as a script writes them."""

from typing import Annotated, Final, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from reconciler.config import scalars
from reconciler.config.base import Section
from reconciler.config.faults import out_of_range, wrong_type
from reconciler.config.types import (
    Boolean,
    Count,
    Name,
    PositiveCount,
    PositiveSeconds,
    Seconds,
)
from reconciler.sandbox.faults.base import ANY, Names, PoolFault, When

_KEYS_OF_FAULTS: Final = {
    "error": {"code", "status", "message"},
    "lost-reply": set[str](),
    "no-answer": set[str](),
    "stale": {"age_seconds"},
    "delay": {"delay_seconds"},
}
_NEEDED: Final = {"error": "code", "stale": "age_seconds", "delay": "delay_seconds"}
_WRITTEN: Final = {"age_seconds": "age", "delay_seconds": "delay"}


class CapacityFault(PoolFault):
    """Pools that give no more instances: EC2's error in history, activity and answers."""

    code: Name = "InsufficientInstanceCapacity"
    """EC2's error code, such as MaxSpotInstanceCountExceeded or VcpuLimitExceeded."""
    message: Name = ""
    """Empty: EC2's own text for the code."""
    remaining: Count = 0
    """Instances that may still be launched before the error shows."""


class LaunchDelay(Section):
    """How long a launch takes, drawn separately for each instance."""

    min_seconds: Seconds = Field(default=0.0, alias="min")
    """The shortest launch."""
    max_seconds: PositiveSeconds = Field(alias="max")
    """The longest launch."""
    distribution: Annotated[
        Literal["uniform", "exponential"], BeforeValidator(scalars.any_text)
    ] = "uniform"
    """`exponential`: most are near `min`, a few near `max`."""

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.max_seconds < self.min_seconds:
            raise out_of_range("`max` must not be less than `min`")
        return self


class LaunchFault(PoolFault):
    """What becomes of instances that are launched."""

    image: Name = ANY
    """The image's id, such as `ami-03cf127a`."""
    delay: LaunchDelay | None = None
    """From pending to running; without it the sandbox's own time."""
    joins: Boolean = True
    """false: the instance runs and never becomes a node."""


class ModifyingFault(When):
    """Fleets whose ModifyFleet takes long."""

    fleet: Name = ANY
    """The fleet's id or the value of its tag `fleet`."""
    lasts_seconds: PositiveSeconds = Field(alias="lasts")
    """How long the fleet is `modifying`."""
    refuse: Boolean = False
    """Whether a further ModifyFleet is refused meanwhile (FleetNotInModifiableState)."""


class InterruptionFault(PoolFault):
    """Spot instances that EC2 takes back; each one that runs is one occasion, the oldest first."""

    notice_seconds: Seconds = Field(default=120.0, alias="notice")
    """From the notice to the end."""


class Bucket(Section):
    """One token bucket."""

    capacity: PositiveCount
    """Tokens when it is full."""
    per_second: Annotated[float, BeforeValidator(scalars.real)]
    """Tokens that come back each second."""

    @model_validator(mode="after")
    def _refills(self) -> Self:
        if self.per_second < 0:
            raise out_of_range("per_second must be 0 or more")
        return self


class Throttling(Section):
    """EC2's request throttling, per action and Region; `{}` has EC2's own documented buckets."""

    requests: dict[str, Bucket] = Field(default_factory=dict)
    """Buckets of requests that differ from EC2's own, by action."""
    resources: dict[str, Bucket] = Field(default_factory=dict)
    """Buckets of instances (RunInstances, TerminateInstances, …) that differ from EC2's own."""


class CallFault(When):
    """What calls of the AWS APIs meet."""

    fault: Annotated[
        Literal["error", "lost-reply", "no-answer", "stale", "delay"],
        BeforeValidator(scalars.any_text),
    ]
    """`lost-reply` is carried out and not answered, `no-answer` is neither."""
    service: Name = "ec2"
    """Signing name, such as `ec2`, `autoscaling`, `sqs`, `s3`."""
    actions: Names = (ANY,)
    """Such as ModifyFleet; for S3 the HTTP method."""
    vanished: Boolean = False
    """Only calls that name an instance which is terminated or unknown."""
    user_agent: Name = ""
    """Only clients whose User-Agent contains this."""
    code: Name | None = None
    """`error`: AWS's error code, such as InternalError, Unavailable, UnauthorizedOperation."""
    status: PositiveCount | None = None
    """`error`: the HTTP status; without it the one that goes with the code."""
    message: Name = ""
    """`error`: the text; without it AWS's own."""
    age_seconds: PositiveSeconds | None = Field(default=None, alias="age")
    """`stale`: how old the answer is; never older than the fault itself."""
    delay_seconds: PositiveSeconds | None = Field(default=None, alias="delay")
    """`delay`: how long the answer is held back."""

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        own = _KEYS_OF_FAULTS[self.fault]
        for name in sorted(set[str]().union(*_KEYS_OF_FAULTS.values()) - own):
            if name in self.model_fields_set:
                raise wrong_type(f"`{_WRITTEN.get(name, name)}` means nothing to {self.fault}")
        needed = _NEEDED.get(self.fault)
        if needed is not None and getattr(self, needed) is None:
            raise wrong_type(f"`{self.fault}` needs `{_WRITTEN.get(needed, needed)}`")
        if self.status is not None and not 400 <= self.status <= 599:
            raise out_of_range("`status` must be from 400 to 599")
        return self


class AwsFaults(Section):
    """Everything that goes wrong in AWS."""

    capacity: tuple[CapacityFault, ...] = ()
    """Pools without capacity."""
    launches: tuple[LaunchFault, ...] = ()
    """Slow launches and instances that never join; the first that shows wins."""
    modifying: tuple[ModifyingFault, ...] = ()
    """Fleets that are `modifying` for long; the first that shows wins."""
    interruptions: tuple[InterruptionFault, ...] = ()
    """Spot interruptions: the notice, and later the end."""
    throttling: Throttling | None = None
    """Token buckets; without it nothing is throttled."""
    calls: tuple[CallFault, ...] = ()
    """Faults of single calls; the first that shows wins."""
