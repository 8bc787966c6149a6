"""The parts of a run, one after another, into Findings that grow."""

import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

from reconciler.model.errors import ReconcilerError
from tests.benchmarks.e2e.bursts import SINGLE, WARM_UP, Burst, Reacted, bursts, measure
from tests.benchmarks.e2e.churn import Churn
from tests.benchmarks.e2e.findings import Churned, Findings, Part, Stretch, stretch
from tests.benchmarks.e2e.process import Reconciler, Usage, reconciler
from tests.benchmarks.e2e.progress import say
from tests.benchmarks.e2e.waiting import pause
from tests.benchmarks.e2e.world import World, make_world

_FAILURES = (OSError, HTTPException, RuntimeError, ReconcilerError)
"""What may happen to a part of a run on a machine that has too much to do."""
_TURNOVER_SECONDS = 12.0
"""From the first churned pod until as many go as come."""
_WARM_SECONDS = 15.0
"""For caches and the interpreter's memory to fill, before growth is looked for."""
_LOOK_SECONDS = 30.0
_CALM_SECONDS = 5.0
"""For the cycle that the last of the churn sets off."""
_TAIL_CHARACTERS = 1500


def run(programs: Path, options: Namespace, found: Findings) -> None:
    """Measure the parts that were asked for, once each.

    Args:
        programs: Directory of the control plane's programs.
        options: The command line's.
        found: Filled as far as the run gets.
    """
    with make_world(programs, options.nodes, options.pods_per_node) as world:
        _settle(world)
        with reconciler(world.config, world.environment()) as running:
            try:
                _parts(world, running, options, found)
            finally:
                _keep(running, options.keep_log)


def _parts(world: World, running: Reconciler, options: Namespace, found: Findings) -> None:
    found.first_plan_seconds = running.first_plan_seconds()
    say(f"first plan after {found.first_plan_seconds:.1f} s")
    found.idle = _watched(running, "nothing happens", options.idle_seconds)
    if "churn" in options.parts:
        with _part("churn", running, found):
            _churn(world, running, options, found)
    if "latency" in options.parts:
        with _part("latency", running, found):
            _latency(world, running, options, found)


@contextmanager
def _part(name: Part, running: Reconciler, found: Findings) -> Iterator[None]:
    """Note why a part ended early, and let the others go on."""
    try:
        yield
    except (*_FAILURES, KeyboardInterrupt) as error:
        found.missing[name] = f"{type(error).__name__}: {error}"
        say(f"{name} ended early: {found.missing[name]}")
        say(f"the reconciler's last words: {running.log.read_text()[-_TAIL_CHARACTERS:]}")
        if isinstance(error, KeyboardInterrupt):
            raise
    finally:
        if running.process.poll() is None:
            found.peak_mib = running.peak_mib()


def _settle(world: World) -> None:
    say("controllers and KWOK take the cluster in")
    try:
        world.settle()
    except TimeoutError as error:
        say(f"measuring all the same: {error}")
    say("the nodes' instances grow older than what EC2 calls new")
    world.age()


def _watched(running: Reconciler, what: str, seconds: float) -> Stretch:
    """CPU and memory over a time in which nothing else is done."""
    say(f"{what}, for {seconds:.0f} s")
    before = running.usage()
    pause(seconds)
    found = stretch(before, running.usage(), running.samples)
    say(f"{what}: {found.cores:.3f} cores, {found.rss_last_mib:.0f} MiB")
    return found


def _churn(world: World, running: Reconciler, options: Namespace, found: Findings) -> None:
    with Churn(world, options.churn) as churn:
        say(f"churn begins; measured after {_TURNOVER_SECONDS + _WARM_SECONDS:.0f} s")
        pause(_TURNOVER_SECONDS + _WARM_SECONDS)
        before, begun_before = running.usage(), churn.begun
        end = before.at + options.churn_seconds
        while (left := end - time.monotonic()) > 0:
            pause(min(left, _LOOK_SECONDS))
            found.churned = _churned(running, churn, options.churn, before, begun_before)
        found.behind_seconds = churn.wait_seen()
    say(f"the API server's watches were {found.behind_seconds:.1f} s behind at the end")
    churn.wait_seen()
    pause(_CALM_SECONDS)


def _churned(
    running: Reconciler, churn: Churn, wanted: int, before: Usage, begun_before: int
) -> Churned:
    """The churn up to now."""
    usage = stretch(before, running.usage(), running.samples)
    rate = (churn.begun - begun_before) / usage.seconds
    say(
        f"churn for {usage.seconds:.0f} s: {rate:.1f} pods/s, {usage.cores:.3f} cores,"
        f" {usage.rss_last_mib:.1f} MiB (at first {usage.rss_first_mib:.1f},"
        f" most {usage.rss_most_mib:.1f})"
    )
    return Churned(wanted=wanted, rate=rate, usage=usage)


def _latency(world: World, running: Reconciler, options: Namespace, found: Findings) -> None:
    wanted = (*[SINGLE] * WARM_UP, *bursts(options.singles, options.largest))
    for number, reacted in enumerate(measure(world, running, wanted), 1):
        if number > WARM_UP:
            found.bursts.append(reacted)
        _tell(number, wanted, reacted)
    found.after_bursts = _watched(running, "all of them pending", options.idle_seconds)


def _tell(number: int, wanted: tuple[Burst, ...], reacted: Reacted) -> None:
    say(
        f"burst {number} of {len(wanted)}: {reacted.burst.pods} pods:"
        f" {max(reacted.beyond_window):.2f} s beyond the window of {reacted.window_seconds:.2f} s,"
        f" {reacted.raises} calls"
    )


def _keep(running: Reconciler, file: Path | None) -> None:
    if file is not None:
        file.write_bytes(running.log.read_bytes())
