"""Node kinds: rows that no static filter can tell apart share one, with one verdict per class.

A new node of a fleet has several `variants` if EC2 chooses (zone, instance type); a pod may rely
only on what holds for all of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.model.cluster import Taint
from reconciler.model.frozen import Labels

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"
UNNAMED_HOST = "(new node)"
"""The host name of a node to come: no selector can name it, as no label has such a value."""
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ARCH = "kubernetes.io/arch"
OPERATING_SYSTEM = "kubernetes.io/os"
ZONE_KEYS = frozenset(
    {ZONE, "failure-domain.beta.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone"}
)
"""The labels that carry the zone; that of the EBS CSI driver may be missing on a node."""
OLDER_KEYS: Mapping[str, str] = {
    ARCH: "beta.kubernetes.io/arch",
    OPERATING_SYSTEM: "beta.kubernetes.io/os",
    INSTANCE_TYPE: "beta.kubernetes.io/instance-type",
    REGION: "failure-domain.beta.kubernetes.io/region",
}
"""Older labels that nodes still carry in addition to their successors, with the same value.

Source: kubernetes/pkg/controller/nodelifecycle (labelReconcileInfo) and
cloud-provider/controllers/node, read 2026-11.
"""
_ZONE_KEYS = tuple(sorted(ZONE_KEYS, reverse=True))
"""In the order of precedence."""
_GROUPINGS_MAX = 64
"""How many sets of label keys are cached: tenants decide how many are read, and each costs a
number per kind."""
_OPEN = "?"
"""Appended to the region's name for a new node whose zone in it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKind:
    """What the static filters read of a row."""

    variants: tuple[Labels, ...]
    """The label sets that a node of this kind may have, limited to keys that anything selects."""
    name: str = ""
    """Set only if a selector reads names."""
    taints: tuple[Taint, ...] = ()
    """NoSchedule and NoExecute only."""
    schedulable: bool = True
    """Ready and not cordoned."""


def open_zones(region: str) -> tuple[str, str]:
    """Return stand-ins for the zones of a region: two, so that no pod relies on a single one."""
    return f"{region}{_OPEN}1", f"{region}{_OPEN}2"


def region_of_open(zone: str) -> str:
    """Return the region of a stand-in; empty for a real zone."""
    region, mark, _ = zone.partition(_OPEN)
    return region if mark else ""


def in_zones(kind: NodeKind, zones: Iterable[str]) -> Iterator[NodeKind]:
    """Yield the kind as it may become in each of the zones, if its own one is open."""
    if len(kind.variants) < 2:
        return
    regions = {region_of_open(v.get(ZONE, "")) for v in kind.variants} - {""}
    for zone in zones:
        if any(zone.startswith(region) for region in regions):
            fixed = dict.fromkeys(ZONE_KEYS, zone)
            yield replace(kind, variants=tuple(Labels({**v, **fixed}) for v in kind.variants))


def with_zone_aliases(labels: Labels) -> Labels:
    """Return the labels with all zone keys if one of them is present."""
    missing = [key for key in _ZONE_KEYS if key not in labels]
    if len(missing) in {0, len(_ZONE_KEYS)}:
        return labels
    zone = next(labels[key] for key in _ZONE_KEYS if key in labels)
    return Labels({**dict.fromkeys(missing, zone), **labels})


def with_older_keys(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels with the older ones that nodes still carry."""
    return {OLDER_KEYS[key]: labels[key] for key in OLDER_KEYS.keys() & labels.keys()} | dict(
        labels
    )


def label_of(labels: Labels, key: str) -> str | None:
    """Return a label's value, as after `with_zone_aliases`."""
    value = labels.get(key)
    if value is None and key in ZONE_KEYS:
        return next((labels[other] for other in _ZONE_KEYS if other in labels), None)
    return value


def hard_taints(taints: Sequence[Taint]) -> tuple[Taint, ...]:
    """Return the taints that refuse pods, in a fixed order."""
    return tuple(sorted(t for t in taints if t.effect != "PreferNoSchedule"))


class _Grouping:
    """Numbers groups of kinds that are equal in some labels, in taints and in cordons."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self._keys = keys
        self._group_of: dict[object, int] = {}
        self.groups: list[int] = []
        """By the kind's number."""

    def extend(self, kinds: Sequence[NodeKind]) -> None:
        """Number the groups of the kinds that were added since the last call."""
        for number in range(len(self.groups), len(kinds)):
            kind = kinds[number]
            alike: object = number
            if len(kind.variants) == 1:
                values = tuple(map(kind.variants[0].get, self._keys))
                alike = (kind.taints, kind.schedulable, values)
            self.groups.append(self._group_of.setdefault(alike, number))


class KindTable:
    """Interns kinds: equal kinds get one number."""

    def __init__(self, label_keys: frozenset[str], *, by_name: bool) -> None:
        self._keys = tuple(sorted(label_keys))
        self._read = label_keys
        self._zone_keys = tuple(sorted(ZONE_KEYS & label_keys))
        self._by_name = by_name
        self._index: dict[NodeKind, int] = {}
        self._seen: dict[tuple[object, ...], int] = {}
        """Kind numbers by what kinds are made from."""
        self.kinds: list[NodeKind] = []
        self._with_name: dict[str, list[int]] = {}
        self._groupings: dict[tuple[str, ...], _Grouping] = {}
        """By label keys; no more than `_GROUPINGS_MAX`."""
        self._present: set[str] = set()
        """Label keys that any kind has."""

    def number(
        self, variants: Sequence[Labels], name: str, taints: Sequence[Taint], *, schedulable: bool
    ) -> int:
        """Return the number of the kind with these properties, which is added if it is new."""
        shown = tuple([self._shown(labels) for labels in variants])
        key = (shown, name if self._by_name else "", tuple(taints), schedulable)
        known = self._seen.get(key)
        if known is None:
            known = self._seen[key] = self._find(shown, name, taints, schedulable=schedulable)
        return known

    def with_name(self, name: str) -> Sequence[int]:
        """Return the numbers of the kinds of nodes with that name."""
        return self._with_name.get(name, ())

    def alike(self, label_keys: tuple[str, ...]) -> list[int]:
        """Return a number per kind, equal for kinds that differ only in names or other labels.

        Tenants select by keys that no node has, each by another one: none of them tells kinds
        apart.
        """
        label_keys = tuple([key for key in label_keys if key in self._present])
        grouping = self._groupings.get(label_keys)
        if grouping is None:
            if len(self._groupings) == _GROUPINGS_MAX:
                del self._groupings[next(iter(self._groupings))]
            grouping = self._groupings[label_keys] = _Grouping(label_keys)
        grouping.extend(self.kinds)
        return grouping.groups

    def _shown(self, labels: Labels) -> tuple[tuple[str, str], ...]:
        """Return the labels that anything reads, by key.

        Tenants decide how many keys are read, nodes have a few dozen labels: the shorter list is
        searched.
        """
        if len(self._keys) <= len(labels):
            get = labels.get
            every = [
                (key, label_of(labels, key) if key in ZONE_KEYS else get(key)) for key in self._keys
            ]
            return tuple([(key, value) for key, value in every if value is not None])
        found = {key: value for key, value in labels.items() if key in self._read}
        for key in self._zone_keys:
            value = label_of(labels, key)
            if value is not None:
                found[key] = value
        return tuple(sorted(found.items()))

    def _find(
        self,
        shown: Sequence[tuple[tuple[str, str], ...]],
        name: str,
        taints: Sequence[Taint],
        *,
        schedulable: bool,
    ) -> int:
        distinct = set(map(Labels, shown))
        kind = NodeKind(
            variants=tuple(sorted(distinct, key=lambda labels: sorted(labels.items()))),
            name=name if self._by_name else "",
            taints=hard_taints(taints),
            schedulable=schedulable,
        )
        if kind not in self._index:
            self._index[kind] = len(self.kinds)
            self._present.update(*kind.variants)
            self._with_name.setdefault(kind.name, []).append(len(self.kinds))
            self.kinds.append(kind)
        return self._index[kind]
