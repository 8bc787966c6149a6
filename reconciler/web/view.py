"""The state of the running program at one moment, as requests over HTTP read it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from reconciler.gitops.drift.live import LiveDrift
from reconciler.gitops.repository.status import ClusterProgress
from reconciler.loops.reconcile_loop import CycleReport
from reconciler.model.ids import Region
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.web.failing import PastAction
from reconciler.web.unbound_pods import UnboundPod


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigInForce:
    """The config in force, and what is wrong with the newest one."""

    file: str = ""
    commit: str = ""
    """The commit it came from; empty: it is a file of this machine."""
    cluster: str = ""
    regions: tuple[str, ...] = ()
    dry_run: bool = False
    allow_destroy: frozenset[str] = frozenset()
    """Fleets that may be emptied once the config no longer names them."""
    sleep_seconds: float = 20.0
    loaded_at: datetime | None = None
    faults: tuple[str, ...] = ()
    """Empty when the newest config is in force: the file on disk, or the head of the branch."""
    remedy: str = ""
    """What ends the faults; empty: they are in the config, and `reconciler validate` lists them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadershipView:
    """Which of the replicas acts."""

    enabled: bool
    """False: there is no election, this replica always leads."""
    leads: bool
    holder: str = ""
    """Identity of the last known holder of the Lease; empty: none, or unknown."""
    trouble: str = ""
    """Why this replica could not take part in the election last time."""
    lost: bool = False
    """Whether this replica led and no longer does: until another has led for `LOST_SECONDS`."""


ALONE: Final = LeadershipView(enabled=False, leads=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Everything at one moment; immutable."""

    version: str
    started_at: datetime
    config: ConfigInForce = ConfigInForce()
    plan: Plan | None = None
    snapshot: Snapshot | None = None
    """What the plan was made from. Its objects are those of the caches, which exist anyway."""
    requested: Mapping[tuple[str, Region], int] = field(default_factory=dict)
    """EC2's targets, by fleet and region: those the plan saw, with the changes that EC2 has
    accepted."""
    last_cycle: CycleReport | None = None
    """Without snapshot and plan, which would keep a whole cluster in memory."""
    cycles: int = 0
    errors_in_a_row: int = 0
    succeeded_at: datetime | None = None
    unsaved_since: datetime | None = None
    """When saving the state that must survive a restart failed first; None: all of it is saved."""
    turned_seconds: float = 0.0
    """Monotonic time of the loop's last sign of life: a cycle, a plan or an action, or an answer to
    a call that it waits for."""
    succeeded_seconds: float | None = None
    actions: tuple[PastAction, ...] = ()
    """The last ones, newest first."""
    failing: tuple[PastAction, ...] = ()
    """Actions that failed, or are refused for minutes, and have not succeeded since, newest
    first."""
    last_failed: PastAction | None = None
    """The last action that failed, whatever came after it."""
    queue_trouble: str = ""
    """Why calls to the interruption queue fail, in SQS's words; empty while they work."""
    drift: tuple[LiveDrift, ...] = ()
    """Fleets that differ from the config."""
    second_loop: str = ""
    """The result of the second loop's last turn; empty when it does not run."""
    second_loop_succeeded_seconds: float | None = None
    """Monotonic time of its last turn that did not fail; None: there was none."""
    second_loop_failing_seconds: float | None = None
    """Monotonic time of the first failed turn after that; None: the last one did not fail."""
    unbound: tuple[UnboundPod, ...] = ()
    """Pods that have had room on nodes that exist for minutes, the longest waiting first."""
    progress: tuple[ClusterProgress, ...] = ()
    """How far each config of the second loop has come."""
