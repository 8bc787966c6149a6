"""How selectors and places are written in refusals."""

from collections.abc import Container, Iterable, Sequence
from functools import lru_cache
from operator import itemgetter

from reconciler.model.frozen import Labels
from reconciler.model.quantity import format_amount
from reconciler.model.selectors import NodeSelector, NodeSelectorTerm, Requirement
from reconciler.model.text import cut
from reconciler.model.unplaceable import DETAIL_MAX
from reconciler.planner.fleets.new_nodes.daemons_that_fit import Daemon
from reconciler.planner.placement.dimensions import OTHER_PORTS, PORTS_MAX
from reconciler.planner.placement.kinds import ZONE, ZONE_KEYS, region_of_open
from reconciler.planner.placement.simulation import RowSpec
from reconciler.planner.placement.volume_needs import VolumeNeeds


def shown_line(requirement: Requirement) -> str:
    """Return an expression of a selector, such as `disk In (ssd)`, limited in length."""
    values = f" ({', '.join(requirement.values)})" if requirement.values else ""
    return cut(f"{requirement.key} {requirement.operator}{values}", DETAIL_MAX)


def shown_values(values: Iterable[str]) -> str:
    """Return what new nodes have under one key; an open zone is shown as one of its region's."""
    return _shown(frozenset(values))


@lru_cache(maxsize=256)
def _shown(values: frozenset[str]) -> str:
    """Return values in words; cached, as every pending pod gets the same."""
    known = {f"a zone of {region_of_open(v)}" if region_of_open(v) else v for v in values}
    return ", ".join(sorted(known - {""})) or "no such label"


def any_of_zones(row: RowSpec) -> str:
    """Return in words where a new node may start."""
    zones = {variant.get(ZONE, "") for variant in row.variants}
    regions = sorted({region_of_open(zone) for zone in zones} - {""})
    return f"the zones of {regions[0]}" if regions else ", ".join(sorted(zones))


def failing_lines(term: NodeSelectorTerm, variants: Iterable[Labels]) -> list[Requirement]:
    """Return the expressions on labels that do not hold for every node that may come."""
    known = list(variants)
    return [e for e in term.expressions if not all(e.matches(v) for v in known)]


def nearest_term(selector: NodeSelector, variants: Sequence[Labels]) -> NodeSelectorTerm:
    """Return the term of which the fewest expressions fail.

    A node name, which no new node has, counts most.
    """
    written = [t for t in selector.terms if t.expressions or t.fields]
    return min(written, key=lambda t: (bool(t.fields), len(failing_lines(t, variants))))


def affinity_detail(selector: NodeSelector, variants: Sequence[Labels]) -> str:
    """Return the failing expression of the required node affinity, and what new nodes have."""
    if not any(term.expressions or term.fields for term in selector.terms):
        return "the required node affinity has no terms: it matches no node at all"
    term = nearest_term(selector, variants)
    failing = failing_lines(term, variants)
    if not failing:
        names = ", ".join(map(shown_line, term.fields))
        return f"requires {names}, which no new node is" if names else _ALL
    line = failing[0]
    offered = shown_values(variant.get(line.key, "") for variant in variants)
    return f"requires {shown_line(line)}, a new node has {offered}"


def takers_of(daemons: Sequence[Daemon], name: str, lacking: int) -> str:
    """Return in words which DaemonSets use so much of a resource that a pod does not fit.

    Empty if the pod would not fit without them either.
    """
    taken = [(d.spec.requests.get(name, 0), d) for d in daemons if d.spec.requests.get(name)]
    total = sum(amount for amount, _ in taken)
    if lacking > total or not taken:
        return ""
    most, taker = max(taken, key=itemgetter(0))
    share, whole = format_amount(name, most), format_amount(name, total)
    if len(taken) == 1:
        return f": DaemonSet {taker.seen.key} takes {share} there"
    return f": {len(taken)} DaemonSets take {whole} there, {taker.seen.key} {share} of it"


def port_detail(daemons: Iterable[Daemon], port: str) -> str:
    """Return in words which DaemonSet uses a host port, `TCP/443` or `TCP/443@10.0.0.1`."""
    if port == OTHER_PORTS:
        return f"its namespace's pods use over {PORTS_MAX} host ports, and no more are counted"
    wanted, taker = port.partition("@")[0], "a DaemonSet"
    for daemon in daemons:
        if any(
            f"{host_port.protocol}/{host_port.port}" == wanted
            for host_port in daemon.spec.host_ports
        ):
            taker = f"DaemonSet {daemon.seen.key}"
            break
    return f"wants host port {port}, which {taker} takes on every new node"


_ALL = "the required node affinity does not hold for every node it may bring"


def volume_detail(needs: VolumeNeeds, variants: Sequence[Labels]) -> str:
    """Return where the volume is that a new node does not reach, and where a new node is."""
    if needs.detail:
        return needs.detail
    for selector in needs.selectors:
        if all(selector.matches(variant, "") for variant in variants):
            continue
        lines = [line for term in selector.terms for line in term.expressions if line.values]
        zones = sorted({v for line in lines if line.key in ZONE_KEYS for v in line.values})
        if zones:
            there = sorted({v[key] for v in variants for key in ZONE_KEYS if key in v})
            known = [zone for zone in there if not region_of_open(zone)]
            where = f"in {' or '.join(known)}" if known else "in any zone of its region"
            return f"a volume of the pod is in {' or '.join(zones)}, a new node starts {where}"
        shown = " or ".join(shown_line(line) for line in lines)
        return f"a volume of the pod is reached only where {shown}"
    return "a volume of the pod is not reachable from there"


def missing_label(topology_keys: Iterable[str], labels: Container[str]) -> str:
    """Return which label of a rule between pods new nodes lack; empty if they have all."""
    for key in topology_keys:
        if key not in labels:
            return f"its topologyKey is {key}, a new node has no such label"
    return ""
