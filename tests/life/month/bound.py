"""What the pods of a run needed at least: a lower bound on node-hours for any clairvoyant.

At each moment the pods that run need at least

    L(t) = the larger of the L2 bounds of bin packing (Martello and Toth, 1990) in CPU and memory

nodes, as each dimension alone is a bin packing problem that the true one contains. L2 counts, for
each size a up to half a node, the pods too large to share with one of size a, those above half a
node, and the volume of the rest that finds no room beside these.

From it three bounds on node-seconds, each valid for whoever knows the whole month in advance and
lets the same pods run at the same times:

- bare: the integral of L. Nodes would come and go in no time.
- boot: the least of the integral of n(t) plus `boot` seconds for each launch, over all n >= L. It
  falls apart into levels: of a gap at level k (times when L < k between times when L >= k) the
  cheaper of staying and of going and booting again is paid.
- policy: boot, with L replaced by its maximum over the last `linger` seconds. The config forbids
  to end a node sooner after it was needed: an empty one waits for `idle_threshold`, one with pods
  must have been superfluous for `unneeded_time` all along, which it cannot be while L needs it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Shape = tuple[int, int]
"""CPU milli and memory MiB of a pod."""
Steps = list[tuple[float, int]]
"""A step function: from this second on, this many."""


def least_bins(sizes: Counter[int], capacity: int) -> int:
    """The L2 bound: so many bins of a capacity hold these sizes at least."""
    best = 0
    small = sorted({size for size in sizes if 0 < size <= capacity / 2})
    for least in [0, *small]:
        alone = shared = volume = room = 0
        for size, count in sizes.items():
            if size > capacity - least:
                alone += count
            elif size > capacity / 2:
                shared += count
                room += count * (capacity - size)
            elif size >= least:
                volume += count * size
        rest = max(0, volume - room)
        best = max(best, alone + shared + -(-rest // capacity))
    return best


@dataclass(frozen=True, slots=True)
class Interval:
    """One pod on one node."""

    begin: float
    end: float
    shape: Shape


def needed(intervals: Iterable[Interval], capacity: Shape) -> Steps:
    """L over time."""
    events = sorted(
        event
        for interval in intervals
        if interval.end > interval.begin
        for event in ((interval.begin, 1, interval.shape), (interval.end, -1, interval.shape))
    )
    running: Counter[Shape] = Counter()
    steps: Steps = [(0.0, 0)]
    known: dict[frozenset[tuple[Shape, int]], int] = {}
    for index, (at, change, shape) in enumerate(events):
        running[shape] += change
        if not running[shape]:
            del running[shape]
        if index + 1 < len(events) and events[index + 1][0] == at:
            continue
        key = frozenset(running.items())
        if key not in known:
            known[key] = _least_nodes(running, capacity)
        if known[key] != steps[-1][1]:
            steps.append((at, known[key]))
    return steps


def _least_nodes(running: Counter[Shape], capacity: Shape) -> int:
    cpu: Counter[int] = Counter()
    memory: Counter[int] = Counter()
    for (milli, mib), count in running.items():
        cpu[milli] += count
        memory[mib] += count
    return max(least_bins(cpu, capacity[0]), least_bins(memory, capacity[1]))


def lingering(steps: Sequence[tuple[float, int]], seconds: float) -> Steps:
    """The maximum over the last so many seconds."""
    moments = sorted({at for at, _ in steps} | {at + seconds for at, _ in steps})
    found: Steps = []
    pending = list(steps)
    window: list[tuple[float, int]] = []
    """Values in force within the window, each with the second at which it ceased to be."""
    position, current = 0, 0
    for moment in moments:
        while position < len(pending) and pending[position][0] <= moment:
            window.append((pending[position][0], current))
            current = pending[position][1]
            position += 1
        window = [(ceased, value) for ceased, value in window if ceased > moment - seconds]
        highest = max([current, *(value for _, value in window)])
        if not found or found[-1][1] != highest:
            found.append((moment, highest))
    return found


def bare_seconds(steps: Sequence[tuple[float, int]], end: float) -> float:
    """The integral of a step function up to `end`."""
    ends = [*(at for at, _ in steps[1:]), end]
    pairs = zip(steps, ends, strict=True)
    return sum(max(0.0, min(stop, end) - at) * value for (at, value), stop in pairs)


def boot_seconds(steps: Sequence[tuple[float, int]], end: float, boot: float) -> float:
    """The least of node-seconds and boots for a step function: level by level."""
    total = 0.0
    for level in range(1, max(value for _, value in steps) + 1):
        up_since: float | None = None
        down_since: float | None = None
        for at, value in [*((at, value) for at, value in steps if at < end), (end, 0)]:
            if value >= level and up_since is None:
                gap = boot if down_since is None else min(boot, at - down_since)
                total += gap
                up_since = at
            elif value < level and up_since is not None:
                total += at - up_since
                up_since, down_since = None, at
    return total
