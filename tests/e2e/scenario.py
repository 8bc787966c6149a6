"""One random small cluster: its objects, and the dice it is made with."""

from dataclasses import dataclass, field
from random import Random  # noqa: TID251 - seeded by the test
from typing import Any

Body = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
SCENARIO = "scenario"
"""The label of its nodes."""
LEAVING = "e2e.fleet-reconciler.io/leaving"
"""Finalizer of a pod that is deleted before the pods under test come, and stays terminating."""
FINISHED = "e2e.fleet-reconciler.io/finished"
"""Annotation of a pod that succeeds before they come."""


@dataclass(slots=True)
class Scenario:
    """One small cluster."""

    number: int
    rng: Random
    nodes: list[Body] = field(default_factory=list)
    namespaces: list[Body] = field(default_factory=list)
    objects: list[tuple[str, Body]] = field(default_factory=list)
    """Volumes, classes and the like: paths to create at, and what."""
    bound: list[Body] = field(default_factory=list)
    probes: list[Body] = field(default_factory=list)
    """Pods under test."""

    @property
    def tag(self) -> str:
        """What sets it apart."""
        return f"s{self.number}"

    @property
    def rack(self) -> str:
        """A topology key that no other scenario has."""
        return f"{self.tag}.example.org/rack"

    def chance(self, percent: int) -> bool:
        """True as often as that."""
        return self.rng.randrange(100) < percent

    def topology(self) -> str:
        """A topology key."""
        return self.rng.choice((ZONE, HOSTNAME, self.rack))

    def app(self) -> str:
        """A label value."""
        return f"{self.rng.choice('xyz')}-{self.tag}"

    def namespace(self) -> str:
        """One of its namespaces."""
        return str(self.rng.choice(self.namespaces)["metadata"]["name"])
