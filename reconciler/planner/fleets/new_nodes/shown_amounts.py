"""What present and past nodes of a fleet show about what its instance types offer."""

from collections.abc import Mapping, Sequence

from reconciler.model.cluster import NO_RESOURCES, Resources
from reconciler.model.fleet import InstanceOption
from reconciler.model.frozen import FrozenMap
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.new_nodes.learned_resources import least_of


class ShownAmounts:
    """Amounts for options of a fleet; what is the same for all options is computed once."""

    def __init__(self, status: FleetStatus) -> None:
        """Start from the fleet's nodes; nothing is shown if there are and were none."""
        self.status = status
        least: Mapping[str, int] = status.learned
        if status.seen is not None:
            least = {name: min(n, status.learned.get(name, n)) for name, n in status.seen.items()}
        self._least = least
        every = [option.resources for option in status.settings.options] if least else []
        self._smallest = least_of(every) if every else NO_RESOURCES
        self._stated = {name for resources in every for name in resources}
        self._seen = {name: self._sizes_seen(name, amount) for name, amount in least.items()}

    def of(self, options: Sequence[InstanceOption]) -> Resources:
        """Return what these options offer, as far as the fleet's nodes show.

        The least that nodes of any option show counts for the smallest ones. Larger ones offer more
        in proportion, but no more than their own nodes show; those smaller than any seen offer less
        in proportion, and no device that they lack.
        """
        if not self._least:
            return NO_RESOURCES
        alone = len(options) == 1
        own = options[0].resources if alone else least_of([o.resources for o in options])
        types = {option.instance_type for option in options}
        by_type = self.status.seen_by_type
        shown = [offered for name, offered in by_type.items() if name in types]
        found: dict[str, int] = {}
        for name, amount in self._least.items():
            size, of_smallest = own.get(name, 0), self._smallest.get(name, 0)
            if size or name not in self._stated:
                found[name] = self._of_smaller(name, size, amount)
            if of_smallest and amount <= of_smallest < size:
                in_proportion = amount * size // of_smallest
                found[name] = min([in_proportion, *(o.get(name, amount) for o in shown)])
        return FrozenMap(found)

    def _of_smaller(self, name: str, size: int, amount: int) -> int:
        """Return how much of an amount is left on machines that have only `size` of it."""
        seen = self._seen[name]
        if not seen or size >= seen[0][0]:
            return amount
        return min(amount, *(offers * size // of for of, offers in seen))

    def _sizes_seen(self, name: str, amount: int) -> list[tuple[int, int]]:
        """Return what the seen types have and what their nodes offer, smallest first.

        For nodes of unknown type the smallest option that can show that much is used.
        """
        options, by_type = self.status.settings.options, self.status.seen_by_type
        sizes = {option.instance_type: option.resources.get(name, 0) for option in options}
        seen = [
            (sizes[each], offered[name])
            for each, offered in by_type.items()
            if sizes.get(each) and name in offered
        ]
        return sorted(seen) or [(of, amount) for of in sorted(sizes.values()) if of >= amount][:1]
