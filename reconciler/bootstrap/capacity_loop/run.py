"""Runs the capacity loop: its options, signals, HTTP server and exit code."""

import os
from contextlib import ExitStack
from dataclasses import dataclass

import structlog

from reconciler.adapters.aws import home_region
from reconciler.adapters.system_clock import SystemClock, stop_on_signals
from reconciler.bootstrap.capacity_loop.config_source import ConfigSource
from reconciler.bootstrap.capacity_loop.followed_branch import Following, config_and_second_loop
from reconciler.bootstrap.capacity_loop.loop import CapacityLoop
from reconciler.bootstrap.second_loop.loop import GitopsOptions
from reconciler.bootstrap.stop_deadline import StopDeadline, exit_code_of, stop_seconds_of
from reconciler.config.environment import Flags
from reconciler.config.loader import DEFAULT_FILE
from reconciler.loops.reconcile_loop import ReconcileLoop
from reconciler.model.binding import Binding
from reconciler.model.errors import InvariantViolated, ReconcilerError
from reconciler.telemetry import events
from reconciler.telemetry.logging import set_up_logging
from reconciler.telemetry.scrubbing import secrets_of
from reconciler.telemetry.threads import ends_of_threads_logged
from reconciler.web.server import WebServer


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Holds the options of `reconciler run`."""

    config: str | None
    """A file. With `gitops` it is in force until the repository was read, and may be None."""
    flags: Flags
    once: bool = False
    gitops: GitopsOptions | None = None
    """None: the second loop runs elsewhere, or not at all."""


def run_capacity_loop(options: RunOptions) -> int:
    """Run the capacity loop until it is asked to stop, or for one cycle.

    Returns:
        The exit code: 0; 130 after SIGINT; with `once`, 1 when an action had no effect.

    Raises:
        ConfigError: The config has faults; nothing was touched.
        UsageError: Flags or variables are invalid, or no cluster is named.
        ReconcilerError: The port is taken; more cycles failed in a row than allowed; the repository
            could not be read and there is no file to start with.
    """
    if options.gitops is None:
        source = ConfigSource(options.config or DEFAULT_FILE, options.flags, home_region)
        return _run_with(options, source, None)
    verbosity = int(options.flags.get("verbosity") or 0)
    set_up_logging(verbosity, secrets_of(os.environ))  # noqa: TID251 - masked, not read
    begun = config_and_second_loop(
        options.config, options.gitops, options.flags, home_region, verbosity
    )
    with begun as (source, following):
        return _run_with(options, source, following)


def _run_with(options: RunOptions, source: ConfigSource, following: Following | None) -> int:
    hook = source.config.notifications.slack_hook.get_secret_value()
    secrets = [hook, *secrets_of(os.environ)]  # noqa: TID251 - masked, not read
    set_up_logging(source.config.verbosity, secrets)
    clock = SystemClock()
    capacity = CapacityLoop(source, clock, secrets)
    try:
        with ends_of_threads_logged():
            return _run(options, capacity, clock, following)
    except Exception as error:
        if isinstance(error, InvariantViolated) or not isinstance(error, ReconcilerError):
            capacity.log_crash()
        raise


def _run(
    options: RunOptions, capacity: CapacityLoop, clock: SystemClock, following: Following | None
) -> int:
    deadline = StopDeadline(lambda: exit_code_of(stopped), lambda: stop_seconds_of(stopped))
    with (
        stop_on_signals(clock.stop, [capacity.wake, deadline.arm]) as stopped,
        ExitStack() as stack,
    ):
        if not options.once:
            server = stack.enter_context(WebServer(capacity.listen, capacity.routes))
            capacity.log_start(server.address)
        loop = stack.enter_context(capacity.loop())
        if options.once:
            capacity.lead_or_fail()
            code = _once(loop)
        else:
            if following is not None:
                following.tell(capacity.branch)
            loop.run()
            code = 0
    deadline.disarm()
    structlog.get_logger().info(events.STOPPED, signal=stopped.number)
    return code or exit_code_of(stopped)


def _once(loop: ReconcileLoop) -> int:
    report = loop.run_once()
    if report.error is not None:
        raise report.error
    found = report.plan.binding if report.plan is not None else Binding()
    if found.contradicted:
        raise ReconcilerError(
            "cluster",
            f"{found.verdict}: {found.because}",
            "nothing was ended, drained or deleted",
        )
    return 0 if report.settled else 1
