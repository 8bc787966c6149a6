"""Faults of EC2 in a simulation, from demand and by chance; they may overlap.

The world has one state at a time; this module knows which faults cause it. Each fault ends
separately: what another fault still refuses stays refused.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from reconciler.adapters.memory import MemoryWorld
from reconciler.adapters.memory.fleet_record import Pool
from reconciler.model.ids import FleetId, InstanceId

End = Callable[[], None]
"""Ends a fault; called once."""
FleetPool = tuple[FleetId, str, str]
"""What one fleet launches of an instance type in a zone."""


class Faults:
    """The faults of a world, and the only place that takes instances back.

    Args:
        world: The world.
    """

    def __init__(self, world: MemoryWorld) -> None:
        self._world = world
        self._codes: dict[tuple[Pool, bool] | FleetPool | FleetId, list[str]] = {}
        """EC2's answer for a pool (for spot instances only, or for all; or for one fleet) or a
        fleet: the code of each fault, the newest last."""
        self._not_joining: Counter[FleetPool] = Counter()
        """How many faults keep instances of it from becoming nodes."""
        self._slower: dict[FleetPool, list[float]] = {}
        self._noticed: set[InstanceId] = set()
        self.interruptions = 0
        """How many instances were given notice."""

    def refuse_pools(self, pools: Iterable[Pool], code: str, *, spot_only: bool = False) -> End:
        """Refuse launches in these pools until the returned function is called."""
        keys = [(pool, spot_only) for pool in sorted(pools)]
        for key in keys:
            self._codes.setdefault(key, []).append(code)
            self._tell_pool(*key)

        def end() -> None:
            for key in keys:
                self._codes[key].remove(code)
                self._tell_pool(*key)

        return end

    def _tell_pool(self, pool: Pool, spot_only: bool) -> None:  # noqa: FBT001 - of a key
        codes = self._codes[pool, spot_only]
        self._world.refuse_pool(*pool, codes[-1] if codes else None, spot_only=spot_only)

    def refuse_pool_of(self, pool: FleetPool, code: str) -> End:
        """Refuse one fleet's launches in a pool until the returned function is called."""
        fleet, instance_type, zone = pool
        codes = self._codes.setdefault(pool, [])
        codes.append(code)
        self._world.refuse_pool_of(fleet, (instance_type, zone), code)

        def end() -> None:
            codes.remove(code)
            left = codes[-1] if codes else None
            self._world.refuse_pool_of(fleet, (instance_type, zone), left)

        return end

    def refuse_launches(self, fleet: FleetId, code: str) -> End:
        """Refuse launches for a fleet until the returned function is called."""
        codes = self._codes.setdefault(fleet, [])
        codes.append(code)
        self._world.refuse_launches(fleet, code)

        def end() -> None:
            codes.remove(code)
            self._world.refuse_launches(fleet, codes[-1] if codes else None)

        return end

    def never_join(self, pool: FleetPool) -> End:
        """Keep instances of a pool from becoming nodes."""
        fleet, instance_type, zone = pool
        self._not_joining[pool] += 1
        self._world.never_join(fleet, (instance_type, zone))

        def end() -> None:
            self._not_joining[pool] -= 1
            self._world.never_join(fleet, (instance_type, zone), never=self._not_joining[pool] > 0)

        return end

    def slow_launches(self, pool: FleetPool, seconds: float) -> End:
        """Make a pool's launches take this much longer; of several faults the longest counts."""
        fleet, instance_type, zone = pool
        slower = self._slower.setdefault(pool, [])
        slower.append(seconds)
        self._world.slow_launches(fleet, max(slower), (instance_type, zone))

        def end() -> None:
            slower.remove(seconds)
            self._world.slow_launches(fleet, max(slower, default=0.0), (instance_type, zone))

        return end

    def can_be_interrupted(self, instance: InstanceId) -> bool:
        """Return whether it runs or is launching, and has no notice yet."""
        known = self._world.fleets.instances.get(instance)
        return known is not None and not known.gone and instance not in self._noticed

    def interrupt(self, instance: InstanceId) -> None:
        """Take an instance back, unless it is gone or has its notice already."""
        if self.can_be_interrupted(instance):
            self._noticed.add(instance)
            self.interruptions += 1
            self._world.interrupt(instance)


def together(ends: Iterable[End]) -> End:
    """Return what ends all of these."""
    every = tuple(ends)

    def end() -> None:
        for each in every:
            each()

    return end
