"""Pods for the benchmarks, made as the decoder makes them: equal specs are one object.

Draws come from a seeded NumPy generator, so that every run and every machine gets the same pods.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from reconciler.model.cluster import Pod, PodSpec
from reconciler.model.frozen import NO_LABELS, FrozenMap, Labels
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.selectors import (
    NodeSelector,
    NodeSelectorTerm,
    Requirement,
)
from tests.builders import HOSTNAME, ZONE, labelled, near, spread

MIB = 2**20
CPU_MILLI = (100, 250, 500, 1000, 1500)
MEMORY_MIB = (100, 256, 512, 1024, 2048, 4096)
LABEL_VALUES = "abcdefg"
REPLICAS = 100
"""Pods of one application in the mix of six."""
SELECTORS = 50
"""Different node selectors in the mix of six."""


@cache
def plain(cpu_milli: int, memory_bytes: int) -> PodSpec:
    """A spec with nothing but requests."""
    requests = {"cpu": cpu_milli, "memory": memory_bytes, "pods": 1}
    return PodSpec(requests=FrozenMap(sorted(requests.items())))


@cache
def zonal_spread(base: PodSpec, app: str) -> PodSpec:
    """Spread over zones, maxSkew 1."""
    return replace(base, topology_spread=(spread(ZONE, app=app),))


@cache
def hostname_spread(base: PodSpec, app: str) -> PodSpec:
    """Spread over nodes, maxSkew 1."""
    return replace(base, topology_spread=(spread(HOSTNAME, app=app),))


@cache
def zonal_affinity(base: PodSpec, app: str) -> PodSpec:
    """All in one zone."""
    return replace(base, pod_affinity=(near(ZONE, app=app),))


@cache
def hostname_anti_affinity(base: PodSpec, app: str) -> PodSpec:
    """A node each."""
    return replace(base, pod_anti_affinity=(near(HOSTNAME, app=app),))


@cache
def selecting_nodes(base: PodSpec, number: int, zones: tuple[str, ...]) -> PodSpec:
    """One of many node selectors: a zone, some sizes, and a label that is no obstacle."""
    expressions = (
        Requirement(key=ZONE, operator="In", values=(zones[number % len(zones)],)),
        Requirement(key="kubernetes.io/os", operator="In", values=("linux",)),
        Requirement(key=f"example.com/not-{number}", operator="DoesNotExist", values=()),
    )
    affinity = NodeSelector(terms=(NodeSelectorTerm(expressions=expressions),))
    return replace(base, node_affinity=affinity)


RULES: tuple[tuple[str, Callable[[PodSpec, str], PodSpec]], ...] = (
    ("plain", lambda base, _: base),
    ("zonal-spread", zonal_spread),
    ("hostname-spread", hostname_spread),
    ("zonal-affinity", zonal_affinity),
    ("hostname-anti-affinity", hostname_anti_affinity),
)


@cache
def app_labels(app: str) -> Labels:
    """The label that an application's rules select."""
    return labelled(app=app)


def pod(number: int, spec: PodSpec, labels: Labels = NO_LABELS, node: str | None = None) -> Pod:
    """One pod, pending unless it has a node."""
    name = f"pod-{number:06}"
    return Pod(
        key=PodKey(namespace="bench", name=name, uid=name),
        spec=spec,
        labels=labels,
        phase="Running" if node else "Pending",
        node_name=NodeName(node) if node else None,
    )


def karpenter_mix(count: int, seed: int = 0) -> list[Pod]:
    """A fifth each of five kinds; requests drawn per pod; self-affinity by one of seven labels."""
    draw = np.random.default_rng(seed)
    cpus = draw.choice(CPU_MILLI, count)
    memories = draw.choice(MEMORY_MIB, count)
    values = draw.choice(list(LABEL_VALUES), count)
    made = []
    for i in range(count):
        rule, build = RULES[i * len(RULES) // count]
        app = f"{rule}-{values[i]}" if rule == "zonal-affinity" else rule
        spec = build(plain(int(cpus[i]), int(memories[i]) * MIB), app)
        made.append(pod(i, spec, app_labels(app)))
    return made


def karpenter_mix_real(count: int, seed: int = 0) -> list[Pod]:
    """The same five kinds with labels as Karpenter's own benchmark draws them.

    The first three kinds carry one of seven letters; a spread constraint selects a letter drawn
    apart from the pod's own, so that kinds constrain each other. Affinity selects the own letter.
    """
    draw = np.random.default_rng(seed)
    cpus = draw.choice(CPU_MILLI, count)
    memories = draw.choice(MEMORY_MIB, count)
    own, selected = draw.choice(list(LABEL_VALUES), (2, count)).tolist()
    made = []
    for i in range(count):
        rule, build = RULES[i * len(RULES) // count]
        spread_apart = rule in {"zonal-spread", "hostname-spread"}
        app = selected[i] if spread_apart else own[i]
        if rule.endswith("affinity"):
            app = f"affinity-{own[i]}" if rule == "zonal-affinity" else "anti-affinity"
        spec = build(plain(int(cpus[i]), int(memories[i]) * MIB), app)
        made.append(pod(i, spec, app_labels(own[i] if spread_apart else app)))
    return made


def uniform(count: int, cpu_milli: int = 500, memory_mib: int = 1024) -> list[Pod]:
    """Equal pods."""
    spec = plain(cpu_milli, memory_mib * MIB)
    return [pod(i, spec) for i in range(count)]


def mix_of_six(count: int, zones: Sequence[str], seed: int = 0) -> list[Pod]:
    """Applications of 100 equal replicas, a sixth of the pods each: five rules, many selectors."""
    draw = np.random.default_rng(seed)
    kinds = len(RULES) + 1
    specs: dict[tuple[int, int], tuple[PodSpec, str]] = {}
    made = []
    for i in range(count):
        kind, member = i * kinds // count, (i % max(1, count // kinds)) // REPLICAS
        if (kind, member) not in specs:
            base = plain(int(draw.choice(CPU_MILLI)), int(draw.choice(MEMORY_MIB)) * MIB)
            if kind < len(RULES):
                rule, build = RULES[kind]
                app = f"{rule}-{member}"
                specs[kind, member] = build(base, app), app
            else:
                spec = selecting_nodes(base, member % SELECTORS, tuple(zones))
                specs[kind, member] = spec, f"selectors-{member}"
        spec, app = specs[kind, member]
        made.append(pod(i, spec, app_labels(app)))
    return made


def estimator_shapes(count: int, shapes: int = 20) -> list[Pod]:
    """Cluster Autoscaler's estimator case: shape k asks 50(k+1)m and 128(1 + 7k mod 20) MiB."""
    specs = [plain(50 * (k + 1), 128 * (1 + 7 * k % 20) * MIB) for k in range(shapes)]
    return [pod(i, specs[i % shapes]) for i in range(count)]


def of_shapes(shapes: Sequence[tuple[int, int, int]]) -> Iterator[Pod]:
    """Pods of (cpu milli, memory MiB, count) rows."""
    number = 0
    for cpu_milli, memory_mib, count in shapes:
        spec = plain(cpu_milli, memory_mib * MIB)
        for _ in range(count):
            yield pod(number, spec)
            number += 1


def different(count: int, seed: int = 0) -> Iterator[Pod]:
    """Pods that all ask for something else: up to 2 CPU and 6 GiB."""
    draw = np.random.default_rng(seed)
    cpu, memory = draw.integers(50, 1900, count).tolist(), draw.integers(64, 6000, count).tolist()
    return of_shapes([(cpu[n], memory[n], 1) for n in range(count)])


def running(
    count: int, nodes: Sequence[str], requests: Mapping[str, int], replicas: int = 50
) -> list[Pod]:
    """Pods that run, dealt round the nodes: applications of which some have rules."""
    base = plain(requests["cpu"], requests["memory"])
    made = []
    for i in range(count):
        number = i // replicas
        app = f"running-{number}"
        spec = base
        if number % 10 == 0:
            spec = zonal_spread(base, app)
        elif number % 10 == 1 and len(nodes) > replicas:
            spec = hostname_anti_affinity(base, app)
        made.append(pod(1_000_000 + i, spec, app_labels(app), nodes[i % len(nodes)]))
    return made
