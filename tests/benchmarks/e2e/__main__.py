"""`python -m tests.benchmarks.e2e [--write] …`: measure at the size of the promise, and print.

The default takes 6 to 8 minutes on two quiet cores and 8 GB of memory; Linux, Go or built programs.
"""

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path

from reconciler.sandbox.control_plane.binaries import provide_binaries
from tests.benchmarks.e2e.bursts import Reacted, bursts, measure
from tests.benchmarks.e2e.churn import Churn
from tests.benchmarks.e2e.process import Reconciler, reconciler
from tests.benchmarks.e2e.report import Measured, Stretch, markdown, write_page
from tests.benchmarks.e2e.waiting import pause
from tests.benchmarks.e2e.world import World, make_world, say


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.e2e", description=(__doc__ or "").partition(":")[2]
    )
    made.add_argument("--nodes", type=int, default=1000, help="Ready nodes (1000)")
    made.add_argument("--pods-per-node", type=int, default=30, help="running pods on each (30)")
    made.add_argument("--singles", type=int, default=30, help="single pods, one by one (30)")
    made.add_argument("--largest", type=int, default=5000, help="pods of the largest burst (5000)")
    made.add_argument("--churn", type=int, default=100, help="pods begun and ended a second (100)")
    made.add_argument("--churn-seconds", type=float, default=90, help="for so long (90)")
    made.add_argument("--idle-seconds", type=float, default=30, help="watch it idle first (30)")
    made.add_argument("--profile", type=Path, help="write the reconciler's cProfile here")
    made.add_argument("--keep-log", type=Path, help="copy the reconciler's log here")
    made.add_argument("--write", action="store_true", help="put the tables into the docs page")
    return made


def _stretch(running: Reconciler, what: str, seconds: float) -> Stretch:
    """CPU and memory over a time in which nothing else is done."""
    before = running.usage()
    pause(seconds)
    after = running.usage()
    rss = [each.rss_mib for each in running.samples if before.at <= each.at <= after.at]
    found = Stretch(
        what=what,
        seconds=after.at - before.at,
        cores=(after.cpu_seconds - before.cpu_seconds) / (after.at - before.at),
        rss_first_mib=rss[0] if rss else before.rss_mib,
        rss_last_mib=rss[-1] if rss else after.rss_mib,
        rss_most_mib=max(rss, default=after.rss_mib),
    )
    say(f"{what}: {found.cores:.2f} cores, {found.rss_last_mib:.0f} MiB")
    return found


def _churned(world: World, running: Reconciler, per_second: int, seconds: float) -> Stretch:
    churn = Churn(world, per_second)
    churn.start()
    pause(12)  # until as many pods go as come
    found = _stretch(running, "", seconds)
    lag = churn.wait_seen()
    rate = churn.stop()
    say(f"{rate:.0f} pods a second; the API server's watches were {lag:.1f} s behind at the end")
    churn.wait_seen()
    return found.named(f"churn of {rate:.0f} pods a second")


def _reacted(world: World, options: argparse.Namespace) -> list[Reacted]:
    found = []
    for reacted in measure(world, tuple(bursts(options.singles, options.largest))):
        found.append(reacted)
        worst = max(reacted.beyond_window)
        say(
            f"{reacted.burst.pods} pods in {reacted.arrival_seconds:.2f} s:"
            f" {worst:.2f} s beyond the window, {reacted.raises} calls"
        )
    return found


def _keep(running: Reconciler, file: Path | None) -> None:
    if file is not None:
        file.write_bytes(running.log.read_bytes())


def run(options: argparse.Namespace) -> Measured:
    """Measure everything once."""
    environment = os.environ  # noqa: TID251 - Go and its cache are found there
    programs = provide_binaries(environment, say)
    profiler = ("-m", "cProfile", "-o", str(options.profile)) if options.profile else ()
    with make_world(programs, options.nodes, options.pods_per_node) as world:
        pause(20)  # its controllers and KWOK have taken the cluster in
        with (
            reconciler(world.config, world.environment(), *profiler) as running,
            ExitStack() as stack,
        ):
            stack.callback(_keep, running, options.keep_log)
            first = running.first_plan_seconds()
            say(f"first plan after {first:.1f} s")
            stretches = [_stretch(running, "nothing happens", options.idle_seconds)]
            if options.churn:
                stretches.append(_churned(world, running, options.churn, options.churn_seconds))
            reacted = _reacted(world, options)
            stretches.append(_stretch(running, "after the bursts, all pending", 10))
            peak = running.peak_mib()
    return Measured(
        nodes=options.nodes,
        pods=options.nodes * options.pods_per_node,
        first_plan_seconds=first,
        stretches=tuple(stretches),
        bursts=tuple(reacted),
        peak_mib=peak,
    )


def main() -> int:
    """Run what was asked for."""
    options = parser().parse_args()
    text = markdown(run(options))
    sys.stdout.write("\n" + text)
    if options.write:
        write_page(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
