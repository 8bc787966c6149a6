"""The in-memory world's scheduler does as kube-scheduler's documentation states, pod by pod.

What is simulated on it would prove nothing otherwise.
"""

from dataclasses import replace
from random import Random  # noqa: TID251 - cases are named by their seed

import pytest

from reconciler.adapters.memory import ClaimShape, MemoryWorld
from reconciler.model.cluster import (
    HostPort,
    Node,
    Pod,
    PodAffinityTerm,
    PodSpec,
    Taint,
    Toleration,
    TopologySpreadConstraint,
)
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.selectors import LabelSelector, Requirement
from reconciler.model.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from tests.builders import make_snapshot
from tests.properties.kube_scheduler import KubeScheduler
from tests.properties.places import Place

HOST, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"
TAINT = Taint(key="dedicated", value="web", effect="NoSchedule")
CASES = 150
STEPS = 40


class Case:
    """Some nodes, and pods that come and go.

    Args:
        seed: Of all that is drawn.
    """

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.world = MemoryWorld()
        self.faults: list[str] = []
        """What went wrong, at the moment at which it did."""
        self._specs = [self._spec() for _ in range(5)]
        self._draw_volume = Random(f"volumes of {seed}")
        """For itself, so that cases are otherwise the same with and without volumes."""
        if seed % 2:
            self._add_claims()
        for number in range(self.draw.randint(2, 6)):
            self.world.add_node(self._node(number))

    def _node(self, number: int) -> Node:
        draw, name = self.draw, f"n{number}"
        labels = {HOST: name, ZONE: draw.choice("ab"), "sector": draw.choice(["web", "web", "ci"])}
        if draw.random() < 0.7:
            labels[RACK] = draw.choice("xy")
        return Node(
            name=NodeName(name),
            uid=name,
            labels=FrozenMap(labels),
            taints=(TAINT,) if draw.random() < 0.2 else (),
            unschedulable=draw.random() < 0.1,
            allocatable=FrozenMap({"cpu": 4000, "pods": 10}),
        )

    def _add_claims(self) -> None:
        """Claims whose volumes are there already, or for one pod only; pods name others too."""
        for shape in (
            ClaimShape(namespace="default", name="c0", zone="a"),
            ClaimShape(namespace="ops", name="c0", zone="b"),
            ClaimShape(namespace="dev", name="c1", access_modes=("ReadWriteOncePod",)),
            ClaimShape(namespace="ops", name="c1", driver="efs.csi.aws.com"),
        ):
            self.world.add_claim(shape)

    def _claims(self) -> tuple[str, ...]:
        draw = self._draw_volume
        if not self.world.objects.volumes.claims or draw.random() < 0.5:
            return ()
        return tuple(draw.sample(["c0", "c1", "c2", "c3"], draw.randint(1, 2)))

    def _selector(self) -> LabelSelector | None:
        return self.draw.choice([
            None,
            LabelSelector(),
            *[LabelSelector(match_labels=FrozenMap({"app": app})) for app in "abc"],
            LabelSelector(
                match_expressions=(Requirement(key="app", operator="NotIn", values=("a",)),)
            ),
        ])  # fmt: skip

    def _term(self) -> PodAffinityTerm:
        draw = self.draw
        by_name = Requirement(
            key="kubernetes.io/metadata.name", operator="In", values=("default", "ops")
        )
        return PodAffinityTerm(
            topology_key=draw.choice([HOST, ZONE, RACK]),
            selector=self._selector(),
            namespaces=draw.choice([frozenset(), frozenset(), frozenset({"ops"})]),
            namespace_selector=draw.choice(
                [None, None, LabelSelector(), LabelSelector(match_expressions=(by_name,))]
            ),
            match_label_keys=draw.choice([(), ("revision",)]),
            mismatch_label_keys=draw.choice([(), (), ("tenant",)]),
        )

    def _rule(self) -> TopologySpreadConstraint:
        draw = self.draw
        return TopologySpreadConstraint(
            topology_key=draw.choice([HOST, ZONE, RACK]),
            max_skew=draw.randint(1, 2),
            hard=draw.random() < 0.8,
            selector=self._selector(),
            min_domains=draw.choice([1, 1, 3]),
            honor_node_affinity=draw.random() < 0.7,
            honor_node_taints=draw.random() < 0.3,
            match_label_keys=draw.choice([(), ("revision",)]),
        )

    def _spec(self) -> PodSpec:
        draw = self.draw
        spec = PodSpec(
            requests=FrozenMap({"cpu": draw.choice([100, 1000]), "pods": 1}),
            node_selector=FrozenMap({"sector": "web"} if draw.random() < 0.4 else {}),
        )
        if draw.random() < 0.3:
            spec = replace(spec, tolerations=(Toleration(key="dedicated", operator="Exists"),))
        match draw.randrange(5):
            case 0:
                spec = replace(spec, pod_anti_affinity=(self._term(),))
            case 1:
                terms = tuple(self._term() for _ in range(draw.randint(1, 2)))
                spec = replace(spec, pod_affinity=terms)
            case 2:
                rules = tuple(self._rule() for _ in range(draw.randint(1, 2)))
                spec = replace(spec, topology_spread=rules)
            case 3:
                address = draw.choice(["0.0.0.0", "10.0.0.1", "10.0.0.2"])  # noqa: S104
                port = HostPort(address=address, protocol="TCP", port=8080)
                spec = replace(spec, host_ports=(port,))
            case _:
                pass
        return spec

    def _pod(self, number: int) -> Pod:
        draw = self.draw
        labels = {"app": draw.choice("abc"), "revision": draw.choice("12")}
        if draw.random() < 0.5:
            labels["tenant"] = draw.choice("st")
        return Pod(
            key=PodKey(namespace=draw.choice(["default", "ops", "dev"]), name=f"p{number}"),
            spec=draw.choice(self._specs),
            labels=FrozenMap(labels),
            claims=self._claims(),
        )

    def play(self) -> None:
        """Pods come and go; all is looked at."""
        self.world.objects.pod_watchers.append(self._look_at_binding)
        for number in range(STEPS):
            bound = [pod for pod in self.world.pods() if pod.node_name is not None]
            if bound and self.draw.random() < 0.2:
                self.world.remove_pod(self.draw.choice(bound).key)
            elif bound and self.draw.random() < 0.1:
                self.world.stop_pod(self.draw.choice(bound).key)
                self.world.advance(self.draw.choice([0, 60]))
            else:
                self.world.add_pod(self._pod(number))
            self._look_at_waiting()

    def _look_at_binding(self, before: Pod | None, after: Pod | None) -> None:
        if before is None or before.node_name is not None or after is None:
            return
        if after.node_name is not None:
            refusal = self._refusals(after)[str(after.node_name)]
            if refusal:
                self.faults.append(f"{after.key} is bound to {after.node_name}: {refusal}")

    def _look_at_waiting(self) -> None:
        for pod in self.world.pods():
            if pod.node_name is None:
                fit = [name for name, refusal in self._refusals(pod).items() if not refusal]
                if fit:
                    self.faults.append(f"{pod.key} waits, and {fit} would do: {pod.spec}")

    def _refusals(self, pod: Pod) -> dict[str, str]:
        """Why each node does not take a pod, that pod left out of account."""
        places = [
            Place(
                name=str(node.name),
                variants=(node.labels,),
                taints=(*node.taints, *_cordon(node)),
                usable=node.ready and not node.unschedulable,
                offer=node.allocatable,
                pods=[
                    each
                    for each in self.world.pods()
                    if each.node_name == node.name and each.key != pod.key and not each.finished
                ],
            )
            for node in self.world.nodes()
        ]
        listed = list(self.world.objects.volumes.listed())
        snapshot = make_snapshot(
            *self.world.pods(),
            claims=tuple(each for each in listed if isinstance(each, PersistentVolumeClaim)),
            volumes=tuple(each for each in listed if isinstance(each, PersistentVolume)),
            storage_classes=tuple(each for each in listed if isinstance(each, StorageClass)),
        )
        scheduler = KubeScheduler(snapshot, places)
        found = {}
        for place in places:
            place.pods.append(pod)
            refusal = scheduler.static_refusal(pod, place) or scheduler.overcommitted(pod, place)
            place.pods.pop()
            refusal = refusal or scheduler.anti_affinity_refusal(pod, place)
            if not refusal and not scheduler.affinity_holds(pod, place):
                refusal = "pod-affinity"
            if not refusal and scheduler.spread_load(pod, place) is None:
                refusal = "topology-spread"
            found[place.name] = refusal
        return found


def _cordon(node: Node) -> tuple[Taint, ...]:
    """As the API server shows it."""
    if not node.unschedulable:
        return ()
    return (Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule"),)


@pytest.mark.parametrize("part", range(5))
def test_pods_are_bound_where_kube_scheduler_allows_it_and_wait_where_it_does_not(
    part: int,
) -> None:
    """Selectors, taints, room, host ports, affinity both ways, spread, namespaces, volumes."""
    faults = []
    for seed in range(part, CASES, 5):
        case = Case(seed)
        case.play()
        faults += [f"seed {seed}: {fault}" for fault in case.faults]
    assert not faults, "\n".join(faults[:10])
