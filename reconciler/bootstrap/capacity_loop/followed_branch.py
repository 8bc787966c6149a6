"""Passes the config and status reported by the second loop's process to the capacity loop."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from reconciler.bootstrap.capacity_loop.config_source import (
    ConfigSource,
    stated_catalogue,
)
from reconciler.bootstrap.second_loop.channel import Message, Turn
from reconciler.bootstrap.second_loop.loop import GitopsOptions, check_options
from reconciler.bootstrap.second_loop.process import SecondLoop
from reconciler.config.environment import Flags, cluster_name_of, stated_values
from reconciler.gitops.drift.live import is_live
from reconciler.gitops.repository.followed import BranchConfig
from reconciler.gitops.repository.progress import with_live
from reconciler.gitops.repository.status import ClusterProgress
from reconciler.loops.reconcile_loop import CycleReport
from reconciler.model.errors import ConfigError, ReconcilerError
from reconciler.model.outcome import Outcome
from reconciler.model.plan import Plan
from reconciler.model.snapshot import CloudState, Snapshot
from reconciler.web.board import StatusBoard

FIRST_SECONDS: Final = 60.0
"""How long a start without a config of its own waits; after that the program ends and is restarted
by its supervisor."""
HomeRegion = Callable[[], str | None]


class CapacitySide(Protocol):
    """Gives a followed branch the parts of the capacity loop that it needs."""

    board: StatusBoard

    @property
    def cloud(self) -> CloudState | None:
        """Return what EC2 answered last; None: nothing yet."""
        ...

    def config_refused(self, error: ReconcilerError, file: str) -> None:
        """Report a config that cannot be used; the previous one stays in force."""
        ...

    def show_config(self) -> None:
        """Show which config is in force."""
        ...

    def notify(self, source: str) -> None:
        """Start the next cycle now, and record which source asked for it."""
        ...

    def may_send(self) -> bool:
        """Return whether this replica is the one that acts."""
        ...


class FollowedBranch:
    """Passes the state of the branch to the capacity loop; a Reporter of its cycles.

    Args:
        source: The capacity loop's config.
        capacity: The capacity loop.
    """

    def __init__(self, source: ConfigSource, capacity: CapacitySide) -> None:
        self._source = source
        self._capacity = capacity
        self._state: BranchConfig | None = None
        self._acted_on = ""
        """Digest of the repository's config that the last complete cycle used."""

    @property
    def trouble(self) -> ReconcilerError | None:
        """Return what is wrong with the head of the branch; None also when none is followed."""
        state = self._state
        return None if state is None or not state.trouble else trouble_of(state)

    def may_act(self) -> bool:
        """Return whether the second loop may commit and push."""
        return self._capacity.may_send()

    def config_followed(self, followed: BranchConfig) -> None:
        """Take a new state of the branch over and start the next cycle."""
        before, self._state = self.trouble, followed
        if followed.trouble:
            self._capacity.config_refused(trouble_of(followed), "the head of the branch")
        elif before is not None:
            self._capacity.show_config()
        if followed.config is not None:
            self._source.offer(followed.config)
            self._capacity.notify("followed-branch")

    def turned(self, turn: Turn) -> None:
        """Show the result of the second loop's turn, and which of its configs are live."""
        progress = turn.progress
        seen = (
            None
            if progress is None
            else tuple(self._with_live(cluster_progress) for cluster_progress in progress)
        )
        self._capacity.board.second_loop_ended(turn.text, seen, failed=turn.failed)

    def plan_made(self, snapshot: Snapshot, plan: Plan) -> None:
        """See Reporter."""

    def action_ended(self, outcome: Outcome) -> None:
        """See Reporter."""

    def cycle_ended(self, report: CycleReport) -> None:
        """See Reporter."""
        followed = self._source.followed
        if report.error is None and followed is not None:
            self._acted_on = followed.digest

    def _with_live(self, progress: ClusterProgress) -> ClusterProgress:
        """Return the progress with what this process sees of its own cluster."""
        state, source, cloud = self._state, self._source, self._capacity.cloud
        head = None if state is None or state.trouble else state.config
        ours = progress.cluster == source.settings.cluster
        if not ours or cloud is None or head is None or head.path != progress.config:
            return progress
        now = source.followed
        in_force = now is not None and now.digest == head.digest
        # EC2 is compared with the config in force only.
        live = is_live(source.config, source.settings.regions[0], cloud) if in_force else True
        return with_live(progress, live, in_force=in_force and self._acted_on == head.digest)


class Following:
    """Keeps messages of the second loop until there is a capacity loop to receive them.

    Args:
        options: Options of the second loop.
        cluster: The capacity loop's; empty: that of the only config.
        verbosity: As counted from `-v`.
        own_catalogue: Whether the capacity loop uses the catalogue that the config names.

    Raises:
        UsageError: The options are invalid.
    """

    def __init__(
        self, options: GitopsOptions, cluster: str, verbosity: int, *, own_catalogue: bool
    ) -> None:
        check_options(options)
        self._changed = threading.Condition()
        self._followed: BranchConfig | None = None
        self._trouble = ""
        self._branch: FollowedBranch | None = None
        self._loop = SecondLoop(
            options,
            cluster=cluster,
            own_catalogue=own_catalogue,
            verbosity=verbosity,
            on_message=self._received,
            ended=lambda text: self._received(Turn(text=text, progress=None, failed=True)),
            may_act=self._may_act,
        )

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the second loop during the block; neither its end nor its errors end the block."""
        self._loop.start()
        try:
            yield
        finally:
            self._loop.stop()

    def first(self, where: str) -> BranchConfig:
        """Return the repository's first answer.

        Raises:
            ConfigError: It has no valid config.
            ReconcilerError: It could not be read in time.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._followed is not None, FIRST_SECONDS)
            followed, trouble = self._followed, self._trouble
        if followed is None:
            what = f"no sector config was read within {FIRST_SECONDS:g} s: {trouble or 'no answer'}"
            raise ReconcilerError(where, what, "start with --config FILE to begin without it")
        if followed.config is None:
            raise trouble_of(followed)
        return followed

    def tell(self, branch: FollowedBranch) -> None:
        """Send messages to a capacity loop from now on, beginning with those that it missed."""
        with self._changed:
            self._branch, followed = branch, self._followed
        if followed is not None:
            branch.config_followed(followed)

    def _received(self, message: Message) -> None:
        with self._changed:
            branch = self._branch
            if isinstance(message, BranchConfig):
                self._followed = message
            else:
                self._trouble = message.text
            self._changed.notify_all()
        if branch is None:
            return
        if isinstance(message, BranchConfig):
            branch.config_followed(message)
        else:
            branch.turned(message)

    def _may_act(self) -> bool:
        branch = self._branch
        return branch is not None and branch.may_act()


@contextmanager
def config_and_second_loop(
    config: str | None,
    options: GitopsOptions,
    flags: Flags,
    home_region: HomeRegion,
    verbosity: int,
) -> Iterator[tuple[ConfigSource, Following]]:
    """Yield the config to start with, and the second loop, which runs during the block.

    Args:
        config: A file, in force until the repository was read; None: wait for the repository.
        options: Options of the second loop.
        flags: What the command line gave.
        home_region: Asked for a config without `regions`.
        verbosity: As counted from `-v`.

    Raises:
        ConfigError: The config has faults.
        UsageError: Options, flags or variables are invalid.
        ReconcilerError: The repository could not be read in time.
    """
    own_catalogue = not stated_catalogue(flags)
    if config is not None:
        source = ConfigSource(config, flags, home_region)
        cluster = source.settings.cluster
        following = Following(options, cluster, verbosity, own_catalogue=own_catalogue)
        with following.running():
            yield source, following
        return
    cluster = cluster_name_of(stated_values(flags)) or ""
    following = Following(options, cluster, verbosity, own_catalogue=own_catalogue)
    with following.running():
        first = following.first(options.repository).config
        assert first is not None, "checked there"
        yield ConfigSource(first, flags, home_region), following


def trouble_of(followed: BranchConfig) -> ReconcilerError:
    """Return what is wrong with the head of the branch, as an error."""
    if followed.problems:
        name = followed.trouble.partition(":")[0] or "the repository's config"
        return ConfigError(name, followed.problems)
    return ReconcilerError("the repository's config", followed.trouble, followed.remedy)
