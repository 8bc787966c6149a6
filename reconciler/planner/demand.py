"""Which pods ask for capacity, which do not, and which sectors serve each (docs/scale-up.md)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from reconciler.model.cluster import FARGATE_SCHEDULER, PodSpec, PodTraits
from reconciler.model.ids import PodKey
from reconciler.model.snapshot import Ignored
from reconciler.planner.pod_groups import PodGroup
from reconciler.planner.settings import PlannerSettings

SECTOR = "sector"
FLEET = "fleet"
SIZE = "size"
_SYSTEM = "kube-system"


@dataclass(slots=True, eq=False)
class UnschedulablePods:
    """Pods that want to run, and the sectors whose fleets may serve them."""

    group: PodGroup
    sectors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """All pods of a snapshot, classified."""

    unschedulable: tuple[UnschedulablePods, ...]
    unknown_sector: tuple[tuple[PodKey, str], ...]
    """Pods that name a sector or a fleet which the config does not have, and what they name."""
    too_complex: tuple[tuple[PodKey, str], ...]
    """Pods of ours that have more constraints than are planned for, and which."""
    ignored: tuple[Ignored, ...]
    deferred: tuple[tuple[PodKey, str], ...] = ()
    """Pods of ours beyond the work that a plan does for their namespace, and why."""
    left_out: tuple[tuple[PodKey, str], ...] = ()
    """Pods of ours in namespaces that are left out of the plan, and why."""
    demanding: frozenset[str] = frozenset()
    """Namespaces whose pods take long to plan while others use the cluster."""


def wanted_values(spec: PodSpec, key: str) -> tuple[str, ...]:
    """Return the values of a label that the spec requires; empty if it leaves the label open."""
    if key in spec.node_selector:
        return (spec.node_selector[key],)
    if spec.node_affinity is None or not spec.node_affinity.terms:
        return ()
    found: dict[str, None] = {}  # in the order of the spec, of which a tenant may name thousands
    for term in spec.node_affinity.terms:
        values = [
            v for r in term.expressions if r.key == key and r.operator == "In" for v in r.values
        ]
        if not values:
            return ()
        found.update(dict.fromkeys(values))
    return tuple(found)


def names_ours(spec: PodSpec) -> bool:
    """Return whether the spec names a sector, a fleet or a size."""
    return any(wanted_values(spec, key) for key in (SECTOR, FLEET, SIZE))


class SectorFinder:
    """Finds the sectors of a pod spec; cached, as many pods share a spec."""

    def __init__(self, settings: PlannerSettings) -> None:
        self._names = tuple(sector.name for sector in settings.sectors)
        self._known = set(self._names)
        self._of_fleet: Mapping[str, str] = {f.name: f.sector for f in settings.fleets()}
        self._default = settings.default_sector
        self._anonymous = self._known == {""}
        self._answers: dict[int, tuple[PodSpec, tuple[str, ...] | None, tuple[str, ...]]] = {}

    def sectors_of(self, spec: PodSpec) -> tuple[str, ...] | None:
        """Return sector names, possibly unknown ones; None if the pod is not ours."""
        return self._answer(spec)[1]

    def served_by(self, spec: PodSpec) -> tuple[str, ...]:
        """Return those of its sectors that the config has, in the order of the config."""
        return self._answer(spec)[2]

    def _answer(self, spec: PodSpec) -> tuple[PodSpec, tuple[str, ...] | None, tuple[str, ...]]:
        known = self._answers.get(id(spec))
        if known is None:
            sectors = self._find(spec)
            known = (spec, sectors, self.known(sorted(set(sectors or ()))))
            self._answers[id(spec)] = known
        return known

    def _find(self, spec: PodSpec) -> tuple[str, ...] | None:
        if self._anonymous:
            return ("",)
        named = wanted_values(spec, SECTOR)
        if named:
            return named
        fleets = wanted_values(spec, FLEET)
        if fleets:
            return tuple(sorted({self._of_fleet.get(name, name) for name in fleets}))
        return (self._default,) if self._default is not None else None

    def named_by(self, spec: PodSpec) -> str:
        """Return the sectors that a spec of an unknown sector names, or the fleets, in words."""
        sectors = wanted_values(spec, SECTOR)
        if sectors:
            return (
                f"sector {', '.join(sectors)}; the config has: {', '.join(self._names) or 'none'}"
            )
        fleets = [name for name in wanted_values(spec, FLEET) if name not in self._of_fleet]
        return f"fleet {', '.join(fleets)}; the config has no such fleet"

    def known(self, sectors: Iterable[str]) -> tuple[str, ...]:
        """Return those of the sectors that the config has."""
        return tuple(s for s in sectors if s in self._known)


def _why_never_demand(pod: PodTraits) -> str:
    """Return why a pod never asks for capacity, whatever it selects; else an empty string."""
    if pod.daemon:
        return "daemonset"
    if pod.mirror:
        return "mirror"
    if pod.finished:
        return "finished"
    if pod.deleting:
        return "deleting"
    return "gated" if pod.gated and not pod.bound else ""


def find_demand(groups: Iterable[PodGroup], settings: PlannerSettings) -> Demand:
    """Classify pods into demand, pods of unknown sectors and ignored pods."""
    finder = SectorFinder(settings)
    unschedulable: list[UnschedulablePods] = []
    unknown_sector: list[tuple[PodKey, str]] = []
    too_complex: list[tuple[PodKey, str]] = []
    ignored: list[Ignored] = []
    for group in groups:
        code = _why_never_demand(group.traits)
        if not code and not _is_demand(group.traits, settings):
            continue
        code = code or _unserved(group.traits, finder)
        spec = group.traits.spec
        if code:
            ignored += _ignored(group, code)
        elif spec.too_complex:
            too_complex += [(pod.key, spec.too_complex) for pod in group.pods]
        elif known := finder.served_by(spec):
            unschedulable.append(UnschedulablePods(group, known))
        else:
            named = finder.named_by(spec)
            unknown_sector += [(pod.key, named) for pod in group.pods]
    return Demand(
        unschedulable=tuple(unschedulable),
        unknown_sector=tuple(sorted(unknown_sector)),
        too_complex=tuple(sorted(too_complex)),
        ignored=tuple(sorted(ignored)),
    )


def without_namespaces(demand: Demand, left_out: Mapping[str, str]) -> Demand:
    """Return the demand without the pods of some namespaces.

    Args:
        demand: The whole demand.
        left_out: The namespaces, and why each of them is left out.
    """
    if not left_out:
        return demand
    out = [u for u in demand.unschedulable if u.group.traits.namespace in left_out]
    pods = [(pod.key, left_out[pod.key.namespace]) for u in out for pod in u.group.pods]
    kept = [u for u in demand.unschedulable if u.group.traits.namespace not in left_out]
    return replace(demand, unschedulable=tuple(kept), left_out=tuple(sorted(pods)))


def _ignored(group: PodGroup, code: str) -> Iterable[Ignored]:
    for pod in group.pods:
        yield Ignored(code=code, namespace=pod.key.namespace, pod=pod.key.name)


def _unserved(pod: PodTraits, finder: SectorFinder) -> str:
    """Return why a pending pod is none of ours; else an empty string."""
    if pod.left_to_scheduler or pod.spec.scheduler_name == FARGATE_SCHEDULER:
        return "other-scheduler"
    if pod.namespace == _SYSTEM and not names_ours(pod.spec):
        return "kube-system"
    return "no-sector" if finder.sectors_of(pod.spec) is None else ""


def _is_demand(pod: PodTraits, settings: PlannerSettings) -> bool:
    """Return whether it is pending, unbound, readable, and in the namespace that counts."""
    return (
        not pod.bound
        and pod.phase == "Pending"
        and not pod.unreadable
        and settings.pod_namespace in {None, pod.namespace}
    )
