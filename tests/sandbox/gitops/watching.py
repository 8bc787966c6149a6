"""What a test looks at while a commit goes its way: pods without a place, and early reports."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.sandbox.gitops.team import Team

CPU_REQUEST = 2
"""Of each pod here; a small node has room for one of them beside what is reserved."""


def small(name: str, size: str = "small", minimum: int = 0) -> str:
    """A sector with one fleet."""
    entry = f"{{size: {size}, min_capacity: {minimum}, max_capacity: 3}}"
    return f"  {name}:\n    kind: memory\n    fleets:\n    - {entry}\n"


def pods_of(team: Team) -> list[Any]:
    """Pods that are not being deleted."""
    found = team.world.core.list_namespaced_pod("default").items
    return [pod for pod in found if pod.metadata.deletion_timestamp is None]


def fleet_of(team: Team, name: str) -> str:
    """The fleet of the node on which a Deployment's pod runs; empty while none does."""
    fleets = {node.metadata.name: node.metadata.labels["fleet"] for node in team.world.nodes()}
    running = [
        pod
        for pod in pods_of(team)
        if pod.metadata.labels["app"] == name and pod.status.phase == "Running"
    ]
    return next((fleets.get(pod.spec.node_name, "") for pod in running), "")


@dataclass
class Watch:
    """Looks at pods, targets and progress each time that the test waits for something."""

    team: Team
    without_place: list[str] = field(default_factory=list)
    """Pods that waited while no node had room for them."""
    early: list[str] = field(default_factory=list)
    """What was reported live before its fleet had its target."""
    expects_new: bool = False
    """Whether the head of main has the new sector."""

    def until(self, look: Callable[[], object], what: str) -> None:
        """Wait for something to be seen, and look at the rest meanwhile."""

        def both() -> object:
            self._look_at_pods()
            self._look_at_progress()
            return look()

        self.team.until(both, what)

    def removal_of(self, name: str) -> str:
        """What `reconciler status` says of the removal of a fleet."""
        plan = self.team.status()["plan"] or {"fleets": [], "unplaceable": []}
        assert plan["unplaceable"] == []
        found = [fleet.get("removal", "") for fleet in plan["fleets"] if fleet["fleet"] == name]
        return str(found[0]) if found else ""

    def _look_at_pods(self) -> None:
        """A pod that waits has to have a node to go to: kube-scheduler binds it next."""
        waiting = [pod for pod in pods_of(self.team) if not pod.spec.node_name]
        rooms = self._rooms() if waiting else []
        still = {pod.metadata.uid for pod in pods_of(self.team) if not pod.spec.node_name}
        for pod in waiting:
            wanted = (pod.spec.node_selector or {}).items()
            places = [labels for labels in rooms if wanted <= labels.items()]
            if pod.metadata.uid in still and not places:
                self.without_place.append(pod.metadata.name)

    def _rooms(self) -> list[dict[str, str]]:
        """Labels of the Ready nodes that take pods and have room for one more."""
        on_node = Counter(pod.spec.node_name for pod in pods_of(self.team))
        found = []
        for node in self.team.world.nodes():
            ready = [c.status for c in node.status.conditions or [] if c.type == "Ready"]
            free = float(node.status.allocatable["cpu"].removesuffix("m"))
            free = free / 1000 if node.status.allocatable["cpu"].endswith("m") else free
            if (
                ready == ["True"]
                and not node.spec.unschedulable
                and not [t for t in node.spec.taints or [] if t.effect != "PreferNoSchedule"]
                and free - CPU_REQUEST * on_node[node.metadata.name] >= CPU_REQUEST
            ):
                found.append(dict(node.metadata.labels))
        return found

    def _look_at_progress(self) -> None:
        for each in self.team.status()["progress"]:
            fleet = self.team.fleets().get("new-small")
            target = fleet["TargetCapacitySpecification"]["TotalTargetCapacity"] if fleet else 0
            if each["stage"] == "live" and self.expects_new and target < 1:
                self.early.append(str(each))
