"""What a new node of a fleet will be: labels, taints, resources, price (docs/scale-up.md)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, cycle, product

from reconciler.model.cluster import DaemonSet, Namespace, Pod, PodSpec, Resources, Taint
from reconciler.model.fleet import InstanceOption
from reconciler.model.frozen import FrozenMap, Labels
from reconciler.model.ids import FleetKey, PodKey, Region
from reconciler.model.interning import InternTable, References, released_with
from reconciler.model.snapshot import Ignored
from reconciler.planner.fleets.inventory import FleetStatus
from reconciler.planner.fleets.new_nodes.admitted_requests import (
    as_admitted,
    requested_by_pods,
    runs,
)
from reconciler.planner.fleets.new_nodes.daemons_that_fit import Daemon, Daemons, without_system
from reconciler.planner.fleets.new_nodes.learned_resources import least_of
from reconciler.planner.fleets.new_nodes.shown_amounts import ShownAmounts
from reconciler.planner.money import NANO
from reconciler.planner.placement.filters import taints
from reconciler.planner.placement.kinds import (
    ARCH,
    HOSTNAME,
    INSTANCE_TYPE,
    OPERATING_SYSTEM,
    REGION,
    UNNAMED_HOST,
    ZONE,
    ZONE_KEYS,
    open_zones,
    with_older_keys,
)
from reconciler.planner.placement.simulation import RowSpec
from reconciler.planner.pod_groups import PodGroup
from reconciler.planner.system_reserve import NodeReserve

LANDINGS_MAX = 65_536
"""For how many DaemonSets times fleets landings are cached, twice over."""
_SUITING: InternTable[tuple[int, int], tuple[References, Sequence[Labels], Sequence[int]]]
_SUITING = InternTable(LANDINGS_MAX)
"""By the `id` of spec and variants, which plans share; variants are kept alive."""
FLEETS_MAX = 8_192
"""For how many fleets variants are cached: with fewer than a config has, none would be found
again."""
_USUAL_USD_PER_CPU = 0.035
_USUAL_USD_PER_GIB = 0.0045
"""Roughly what m5, c5 and r5 cost on demand in us-east-1 (2026-07), for unknown prices."""
FREE_SHARE = 1_000_000
"""A free node is compared as if it cost the usual price of its size divided by this: far less than
any node with a price, but enough that neither more nor larger ones are bought than are needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNode:
    """A node that a fleet would launch, and its price."""

    key: FleetKey
    row: RowSpec
    daemons: tuple[Daemon, ...]
    """The DaemonSets' pods on any of its variants."""
    nano_usd_per_hour: int
    """The price in nano-USD per hour, so that sums are exact; 0 for a free node."""
    priced: bool

    @property
    def usual_nano_usd(self) -> int:
        """Return the usual price of a node of this size, in nano-USD per hour."""
        return max(1, round(usual_usd_per_hour(self.row.allocatable) * NANO))

    @property
    def compared_nano_usd(self) -> int:
        """Return the price by which nodes are compared, never 0; see `FREE_SHARE`."""
        return self.nano_usd_per_hour or -(-self.usual_nano_usd // FREE_SHARE)


_Found = dict[tuple[str, str], tuple[PodSpec, Labels]]
"""Per namespace and name, what pods of a DaemonSet are like."""


def daemons_of(
    daemon_sets: Sequence[DaemonSet],
    groups: Iterable[PodGroup],
    ignored: Iterable[Ignored] = (),
    namespaces: Iterable[Namespace] = (),
) -> Daemons:
    """Return one daemon per DaemonSet that makes pods.

    Pods stand for a DaemonSet only if it cannot be read, or if none at all was given: anybody may
    write a pod that names one as its owner. The least that all of its own pods request counts.

    Args:
        daemon_sets: The DaemonSets.
        groups: The pods.
        ignored: What could not be read.
        namespaces: For anti-affinity that selects namespaces by label.
    """
    groups = list(groups)
    requested = requested_by_pods(groups)
    found: _Found = {
        (d.namespace, d.name): (as_admitted(d, requested), d.labels) for d in daemon_sets
    }
    unreadable = {(i.namespace, i.name) for i in ignored if i.kind == "DaemonSet"}
    if unreadable or not found:
        for name, shown in _shown_by_pods(groups).items():
            if name in unreadable or not daemon_sets:
                found.setdefault(name, shown)
    for daemon_set in daemon_sets:
        if daemon_set.makes_no_pods:
            del found[daemon_set.namespace, daemon_set.name]
    by_priority = sorted(found.items(), key=lambda item: (-item[1][0].priority, item[0]))
    every = [
        Daemon(spec=spec, seen=_seen(PodKey(namespace=namespace, name=name, uid=""), spec, labels))
        for (namespace, name), (spec, labels) in by_priority
    ]
    return Daemons(every, namespaces)


def _shown_by_pods(groups: Iterable[PodGroup]) -> _Found:
    """Return what running pods show about the DaemonSets that they name as their owners.

    A daemon pod names its own node in its affinity; that part is left out.
    """
    shown = [g.pods for g in groups if g.traits.daemon and runs(g.traits)]
    found: _Found = {}
    for pod in sorted(chain.from_iterable(shown), key=lambda p: p.key):
        if pod.owner is not None:
            found.setdefault((pod.key.namespace, pod.owner.name), (pod.spec, pod.labels))
    return found


def _seen(key: PodKey, spec: PodSpec, labels: Labels) -> Pod:
    apart = PodSpec(requests=FrozenMap(), pod_anti_affinity=spec.pod_anti_affinity)
    return Pod(key=key, spec=apart, labels=labels)


def _landings(
    daemons: Sequence[PodSpec], variants: Sequence[Labels], tainted: Sequence[Taint]
) -> list[tuple[int, ...]]:
    """Return for each variant the numbers of the daemons that may run on it, whatever its name."""
    found: list[list[int]] = [[] for _ in variants]
    for number, spec in enumerate(daemons):
        if taints.untolerated(tainted, spec.tolerations) is None:
            for place in _suiting_remembered(spec, variants):
                found[place].append(number)
    return [tuple(landing) for landing in found]


def _fitting(
    shown: ShownAmounts, daemons: Daemons, landings: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Return for each variant those of its daemons that find room on such a node."""
    options = shown.status.settings.options
    known: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = {}
    found = []
    # The variants of each zone are in the order of the options.
    for place in zip(cycle(range(len(options))), landings, strict=False):
        option, landing = place
        if landing and place not in known:
            known[place] = daemons.that_fit(landing, _room(shown, options[option]))
        found.append(known.get(place, ()))
    return found


def _suiting_remembered(spec: PodSpec, variants: Sequence[Labels]) -> Sequence[int]:
    """Return the cached result of `_selected_places`.

    A thousand DaemonSets with hundreds of expressions each are the same in every plan.
    """
    key = id(spec), id(variants)
    known = _SUITING.get(key)
    if known is None:
        held = released_with(_SUITING, key, spec)
        known = _SUITING.put(key, (held, variants, _selected_places(spec, variants)))
    return known[2]


def _selected_places(spec: PodSpec, variants: Sequence[Labels]) -> Sequence[int]:
    """Return the places of the variants that a daemon selects; its node's name is not known."""
    places: Sequence[int] = range(len(variants))
    # Hundreds of fleets have dozens of variants each: one key after the other is fastest.
    for key, value in spec.node_selector.items():
        places = [place for place in places if variants[place].get(key) == value]
    if spec.node_affinity is None:
        return places
    terms = [term for term in spec.node_affinity.terms if term.expressions or term.fields]
    return [
        place
        for place in places
        if any(all(r.matches(variants[place]) for r in term.expressions) for term in terms)
    ]


def _minus(offered: Resources, taken: Mapping[str, int]) -> Resources:
    return FrozenMap(
        (name, max(0, amount - taken.get(name, 0))) for name, amount in offered.items()
    )


def _total(specs: Iterable[PodSpec]) -> dict[str, int]:
    total: dict[str, int] = {}
    for spec in specs:
        for name, amount in spec.requests.items():
            total[name] = total.get(name, 0) + amount
    return total


def _zones(status: FleetStatus) -> tuple[str, ...]:
    """Return the zones in which a new node may be; stand-ins if nothing says."""
    fleet = status.settings
    if fleet.zone:
        return (fleet.zone,)
    zones = status.live.zones if status.live is not None else ()
    own = tuple(z for z in zones or fleet.zones if z.startswith(status.key.region))
    return own or open_zones(status.key.region)


def variants_of(status: FleetStatus) -> tuple[Labels, ...]:
    """Return every label set that a new node of the fleet may have."""
    fleet = status.settings
    machines = tuple([(option.arch, option.instance_type) for option in fleet.options])
    return _variants(status.labels, status.key.region, _zones(status), machines)


@lru_cache(maxsize=FLEETS_MAX)
def _variants(
    labels: Labels, region: Region, zones: tuple[str, ...], machines: tuple[tuple[str, str], ...]
) -> tuple[Labels, ...]:
    """Return the variants; cached, as fleets may have dozens, the same in every plan."""
    found = []
    for zone, (arch, instance_type) in product(zones, machines):
        known = {
            OPERATING_SYSTEM: "linux",
            ARCH: arch,
            INSTANCE_TYPE: instance_type,
            REGION: region,
            HOSTNAME: UNNAMED_HOST,
        }
        zoned = dict.fromkeys(ZONE_KEYS, zone)
        found.append(Labels({**zoned, **with_older_keys(known), **labels, **known, ZONE: zone}))
    return tuple(found)


def _offered(
    shown: ShownAmounts,
    reserve: NodeReserve,
    daemons: Sequence[PodSpec],
    landings: Sequence[tuple[int, ...]],
) -> Resources:
    """Return what a node offers: as the config states, else as its nodes show, else estimated.

    Each daemon is subtracted from the machines on which it runs; the least of what is left counts.
    """
    fleet = shown.status.settings
    if fleet.allocatable is not None:
        return fleet.allocatable
    machines: dict[tuple[int, ...], list[InstanceOption]] = {}
    # The variants of each zone are in the order of the options.
    for option, landing in zip(cycle(fleet.options), landings, strict=False):
        machines.setdefault(landing, []).append(option)
    left = [
        _least_left(shown, reserve, _total(daemons[number] for number in landing), options)
        for landing, options in machines.items()
    ]
    return left[0] if len(left) == 1 else least_of(left)


def _least_left(
    amounts: ShownAmounts,
    reserve: NodeReserve,
    taken: Mapping[str, int],
    options: Sequence[InstanceOption],
) -> Resources:
    """Return the least that these options of the fleet leave next to the same daemons."""
    shown, status = amounts.of(options), amounts.status
    if status.seen is not None:
        return _minus(shown, taken)
    guess, reserved = _machine(status, options), reserve.amounts
    larger = {name: max(reserved.get(name, 0), taken.get(name, 0)) for name in {*reserved, *taken}}
    known = dict(least_of([option.allocatable for option in options]))
    if reserve.as_eks:
        estimated = least_of([_without_system(status, option) for option in options])
        known |= {name: estimated[name] for name in reserve.as_eks}
    for name, amount in {**known, **shown}.items():
        guess[name], larger[name] = amount, taken.get(name, 0)
    return _minus(FrozenMap(guess), larger)


def _room(amounts: ShownAmounts, option: InstanceOption) -> Resources:
    """Return the most that a node of this option offers to daemons and pods together."""
    shown, status = amounts.of((option,)), amounts.status
    if status.seen is not None:
        return shown
    return FrozenMap({**_without_system(status, option), **shown})


def _without_system(status: FleetStatus, option: InstanceOption) -> Resources:
    """Return what a machine offers to daemons and pods: as tags state, else what EKS leaves."""
    left = without_system(_machine(status, (option,)))
    return FrozenMap({**left, **option.allocatable}) if option.allocatable else left


def _machine(status: FleetStatus, options: Sequence[InstanceOption]) -> dict[str, int]:
    """Return the least that these bare machines have."""
    found = dict(least_of([option.resources for option in options]))
    if status.settings.ephemeral_storage_bytes:
        found["ephemeral-storage"] = status.settings.ephemeral_storage_bytes
    return found


def _nano_usd_per_hour(shown: ShownAmounts) -> tuple[int, bool]:
    """Return the price of one node, and whether it is known.

    Of unknown types the fleet's nodes show the size: a price of 0 would make their nodes free.
    """
    fleet = shown.status.settings
    if fleet.usd_per_hour is not None:
        return int(fleet.usd_per_hour * NANO), True
    stated = least_of([option.resources for option in fleet.options])
    # Tags of a group may state devices alone.
    resources = stated if stated.get("cpu") else shown.of(fleet.options)
    return round(usual_usd_per_hour(resources) * NANO), False


def usual_usd_per_hour(resources: Resources) -> float:
    """Return the usual price of a machine of this size, for unknown prices."""
    return (
        resources.get("cpu", 0) / 1000 * _USUAL_USD_PER_CPU
        + resources.get("memory", 0) / 2**30 * _USUAL_USD_PER_GIB
    )


def new_node(
    status: FleetStatus,
    reserve: NodeReserve,
    daemons: Daemons,
    volume_limits: Mapping[str, int | None],
) -> NewNode:
    """Return the node that the fleet would launch next.

    Args:
        status: The fleet.
        reserve: What is reserved of it.
        daemons: The DaemonSets.
        volume_limits: How many volumes a node attaches, by driver.
    """
    variants = variants_of(status)
    shown = ShownAmounts(status)
    landings = _fitting(shown, daemons, _landings(daemons.specs, variants, status.taints))
    landing = tuple(daemons.every[number] for number in sorted(set(chain.from_iterable(landings))))
    certain = set(landings[0]).intersection(*landings) if landings else ()
    price, priced = _nano_usd_per_hour(shown)
    return NewNode(
        key=status.key,
        row=RowSpec(
            name=f"{status.key.name}@{status.key.region}",
            variants=variants,
            taints=status.taints,
            schedulable=True,
            allocatable=_offered(shown, reserve, daemons.specs, landings),
            volume_limits=volume_limits,
            taken_ports=tuple(port for daemon in landing for port in daemon.spec.host_ports),
            daemons=tuple(daemons.every[number].seen for number in sorted(certain)),
            imagined=True,
        ),
        daemons=landing,
        nano_usd_per_hour=price,
        priced=priced,
    )
