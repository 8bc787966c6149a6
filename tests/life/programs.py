"""Random programs: a config and what happens under it, in order, at some distance each."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from reconciler.model.cluster import Taint

WORKLOADS = (
    "deployment", "deployment", "deployment", "job", "job", "stateful", "bare", "guarded",
    "budgeted", "disk", "balloon", "urgent", "batch", "huge", "slow", "pinned",
)  # fmt: skip
CHANGES = (
    "finish", "finish", "finish", "remove", "remove", "scale", "scale", "delete-pod", "guard",
    "unguard", "daemon",
)  # fmt: skip
OPERATORS = (
    "minimum", "maximum", "thresholds", "allow-destroy", "cordon", "uncordon", "keep-node",
    "let-node-go", "end-by-hand", "delete-node-by-hand", "target-by-hand", "foreign-node",
    "forbid-end", "allow-end",
)  # fmt: skip
FAULTS = (
    "fail", "fail", "fail", "lost", "lost", "no-capacity", "no-capacity", "capacity", "no-pool",
    "pools", "never-join", "never-ready", "end-early", "join", "slow-launch", "fast-launch", "lock",
    "unlock", "interrupt", "vanish", "silence", "revive", "stale-cluster", "stale-cloud", "fresh",
    "holes", "whole", "slow-stop", "fast-stop", "silent-region", "all-regions",
)  # fmt: skip
CRASHES = ("crash",) * 5
OPERATORS_OF_GROUPS = ("stand-by", "stand-by", "back-in-service", "protect", "unprotect")
KINDS = ("nothing", *WORKLOADS, *WORKLOADS, *CHANGES, *OPERATORS, *FAULTS, *CRASHES)
KINDS_OF_GROUPS = (*KINDS, *OPERATORS_OF_GROUPS, "target-by-hand", "end-by-hand", "interrupt")
PAUSES = (0, 1, 5, 20, 60, 200, 200, 600)
"""Seconds before a step."""


@dataclass(frozen=True)
class Step:
    """Something happens; `a` and `b` say what to, each kind in its own way."""

    kind: str
    after: int = 20
    """Seconds since the step before."""
    a: int = 0
    b: int = 0


@dataclass(frozen=True)
class Config:
    """The sector config that the program starts with."""

    minimum: int = 0
    maximum: int | None = None
    threshold: float = 0.5
    non_empty_at_once: int = 1
    spares: int = 0
    over_subscription: float = 0.0
    consolidation: bool = False
    regions: int = 1
    rolling_update: bool = False
    spot_rescheduler: bool = False
    spot_return: bool = False
    headroom: int = 0
    """Nodes' worth of room that sector `primary` keeps free."""
    steady_taints: tuple[Taint, ...] = ()
    """Of the on-demand fleet."""
    groups: tuple[str, ...] = ()
    """Fleets that are Auto Scaling groups, in the home region."""
    unhurried: bool = False
    """Calls take no time: nothing happens between observing and acting."""
    fulfil_seconds: float = 0.0
    """How long EC2 takes to act on a new target: what it will launch is missing until then."""


@dataclass(frozen=True)
class Program:
    """One life."""

    config: Config
    steps: tuple[Step, ...]


SOME_GROUPS = ((), ("primary-large", "batch-small"))
"""Half of all configs have groups."""
MANY_GROUPS = (("primary-large", "batch-small"), ("primary-large", "primary-steady", "batch-small"))
"""Every config has groups, beside a fleet of the same sector."""


def configs(groups: Sequence[tuple[str, ...]] = SOME_GROUPS) -> st.SearchStrategy[Config]:
    """Configs of all kinds, with these fleets as groups."""
    return st.builds(
        Config,
        minimum=st.sampled_from([0, 0, 1, 2]),
        maximum=st.sampled_from([None, None, 2, 4]),
        threshold=st.sampled_from([0.5, 0.3, 0.9]),
        non_empty_at_once=st.sampled_from([1, 1, 2, 3]),
        spares=st.sampled_from([0, 0, 0, 1]),
        over_subscription=st.sampled_from([0.0, 0.0, 0.3]),
        consolidation=st.booleans(),
        regions=st.sampled_from([1, 1, 2]),
        unhurried=st.booleans(),
        fulfil_seconds=st.sampled_from([0.0, 2.0]),
        groups=st.sampled_from(groups),
    )


def programs(
    steps_min: int = 10,
    steps_max: int = 30,
    kinds: Sequence[str] = KINDS,
    groups: Sequence[tuple[str, ...]] = SOME_GROUPS,
) -> st.SearchStrategy[Program]:
    """Programs of so many steps; with a minimum they are of some length, and still shrink."""
    step = st.builds(
        Step,
        kind=st.sampled_from(kinds),
        after=st.sampled_from(PAUSES),
        a=st.integers(0, 7),
        b=st.integers(0, 7),
    )
    return st.builds(
        Program,
        config=configs(groups),
        steps=st.lists(step, min_size=steps_min, max_size=steps_max).map(tuple),
    )
