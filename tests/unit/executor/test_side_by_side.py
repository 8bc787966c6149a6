"""What runs at once and what does not: stages, subjects, notes that give way to new pods."""

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from reconciler.adapters.memory import MemoryCluster, MemoryWorld
from reconciler.executor.executor import LiveExecutor
from reconciler.executor.ports import Ports
from reconciler.executor.rate_limiter import RateLimiter
from reconciler.executor.runners import PARALLEL_MAX, in_parallel
from reconciler.model.actions import (
    DRAIN_STARTED,
    DRAINING_TAINT,
    UNNEEDED_SINCE,
    AnnotateNode,
    AnyAction,
    EvictPod,
    TaintNode,
    UntaintNode,
)
from reconciler.model.cluster import Taint
from reconciler.model.errors import InvariantViolated, Throttled
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.outcome import Outcome
from reconciler.model.throttling import TokenBucket
from tests.unit.executor.scene import Scene

LONG_SECONDS = 60.0
NOTES = 500


def note(node: str, key: str = UNNEEDED_SINCE, value: str | None = "now") -> AnnotateNode:
    """One annotation."""
    return AnnotateNode(
        node=NodeName(node), key=key, value=value, policy="scale-in", because="test"
    )


def taint(node: str) -> TaintNode:
    """The beginning of a drain."""
    wanted = Taint(key=DRAINING_TAINT, value="scale-in", effect="NoSchedule")
    return TaintNode(node=NodeName(node), taint=wanted, policy="scale-in", because="test")


def evict(node: str) -> EvictPod:
    """Its second step."""
    pod = PodKey(namespace="web", name=f"pod-{node}")
    return EvictPod(
        pod=pod, node=NodeName(node), grace_seconds=30, policy="scale-in", because="test"
    )


class Counting(MemoryCluster):
    """Counts calls, and how many were under way together."""

    def __init__(self, together: int = 1) -> None:
        super().__init__(MemoryWorld())
        self.calls: list[str] = []
        self.of_node: defaultdict[str, list[str]] = defaultdict(list)
        self._lock = threading.Lock()
        self._meet = threading.Barrier(together)

    def _count(self, what: str, node: str) -> None:
        with self._lock:
            self.calls.append(f"{what} {node}")
            self.of_node[node].append(what)
        self._meet.wait(LONG_SECONDS)

    def annotate_node(self, node: NodeName, annotations: Mapping[str, str | None]) -> None:
        """Nothing but a call."""
        self._count(f"annotate {', '.join(annotations)}", node)

    def taint_node(self, node: NodeName, taint: Taint) -> bool:
        """Nothing but a call."""
        self._count("taint", node)
        return True

    def evict_pod(self, pod: PodKey, grace_seconds: int) -> bool:
        """Nothing but a call."""
        self._count("evict", pod.name.removeprefix("pod-"))
        return True


def execute(
    cluster: MemoryCluster, actions: Sequence[AnyAction], **options: bool
) -> tuple[tuple[Outcome, ...], list[Outcome]]:
    """What came of the actions, side by side; and what was reported, in which order."""
    reported: list[Outcome] = []
    executor = LiveExecutor(
        Ports(cluster=cluster, clouds={}), monotonic_seconds=lambda: 0.0, runner=in_parallel
    )
    waits = options.get("demand_waits", False)
    return executor.execute(actions, reported.append, lambda: waits), reported


def test_notes_on_500_nodes_are_that_many_calls_and_many_at_once() -> None:
    """One after the other they took ten seconds, while new pods waited for the next plan."""
    whole = NOTES - NOTES % PARALLEL_MAX
    cluster = Counting(together=PARALLEL_MAX)  # a call ends when as many have begun, else never
    actions = [note(f"n{number:03}") for number in range(whole)]
    outcomes, reported = execute(cluster, actions)
    assert [outcome.kind for outcome in outcomes] == ["applied"] * whole
    assert len(cluster.calls) == whole
    assert [outcome.action for outcome in reported] == actions, (
        "reports come in the order of the plan"
    )


def test_notes_of_one_node_are_one_call() -> None:
    """A node that is given back has three of them."""
    cluster = Counting()
    keys = ("a", "b", "c")
    outcomes, _ = execute(cluster, [note("n", key) for key in keys])
    assert cluster.calls == ["annotate a, b, c n"]
    assert len(outcomes) == 3


def test_steps_on_one_node_keep_their_order_beside_others() -> None:
    """A pod that is evicted before its node's taint may be put back there."""
    cluster = Counting(together=PARALLEL_MAX)
    nodes = [f"n{number:02}" for number in range(PARALLEL_MAX)]
    actions: list[AnyAction] = [
        action for n in nodes for action in (taint(n), note(n, DRAIN_STARTED), evict(n))
    ]
    execute(cluster, actions)
    expected = ["taint", f"annotate {DRAIN_STARTED}", "evict"]
    assert dict(cluster.of_node) == dict.fromkeys(nodes, expected)
    first_eviction = min(i for i, call in enumerate(cluster.calls) if call.startswith("evict"))
    assert first_eviction == 2 * PARALLEL_MAX, "all nodes are tainted before any pod moves"


def test_pods_of_one_node_are_evicted_at_once() -> None:
    """A webhook that takes ten seconds to refuse one would cost each other pod as many."""
    cluster = Counting(together=8)  # a call ends when 8 have begun, else never
    pods = [replace(evict("n"), pod=PodKey(namespace="web", name=f"p{n}")) for n in range(8)]
    outcomes, reported = execute(cluster, pods)
    assert [outcome.kind for outcome in outcomes] == ["applied"] * 8
    assert [outcome.action for outcome in reported] == pods


@pytest.mark.parametrize(("waits", "asked"), [(True, 2), (False, 5)])
def test_new_pods_do_not_wait_for_evictions_that_nobody_answers(*, waits: bool, asked: int) -> None:
    """A webhook that hangs costs ten seconds a pod: a plan for new pods came minutes later."""
    seconds = [0.0]

    class Hanging(MemoryCluster):
        """Answers no eviction for six seconds."""

        def evict_pod(self, pod: PodKey, grace_seconds: int) -> bool:
            """Nothing but time."""
            del grace_seconds
            seconds[0] += 6.0
            calls.append(pod)
            return True

    calls: list[PodKey] = []
    executor = LiveExecutor(
        Ports(cluster=Hanging(MemoryWorld()), clouds={}), monotonic_seconds=lambda: seconds[0]
    )
    outcomes = executor.execute([evict(f"n{n}") for n in range(5)], lambda _: None, lambda: waits)
    assert len(calls) == asked
    assert [outcome.kind for outcome in outcomes] == ["applied"] * asked + ["refused"] * (5 - asked)


def test_new_pods_do_not_wait_for_notes() -> None:
    """Hundreds of timers held up the plan for pods that had come meanwhile."""
    cluster = Counting()
    actions: list[AnyAction] = [taint("t"), *(note(f"n{number:03}") for number in range(NOTES))]
    outcomes, reported = execute(cluster, actions, demand_waits=True)
    assert len(cluster.calls) == 1 + PARALLEL_MAX, "some are written in any case"
    assert list(outcomes) == reported
    assert len(reported) == 1 + PARALLEL_MAX, "the rest is the next plan's, and no failure"


def test_purchase_ends_before_anything_else_begins(scene: Scene) -> None:
    """Pods wait for it; a slow eviction before it would cost them seconds."""
    first, second = (node.name for node in scene.nodes[:2])
    back = UntaintNode(node=first, key=DRAINING_TAINT, policy="scale-up", because="test")
    scene.run(note(second), scene.tainted(0), back, scene.ended(2), scene.raised(5))
    assert [name for name, _ in scene.changes()] == [
        "set_target_capacity",
        "taint_node",
        "untaint_node",
        "set_target_capacity",
        "terminate_instances",
        "annotate_node",
    ]


def test_bug_in_one_call_ends_the_others_that_have_not_begun() -> None:
    """A broken invariant must end the process, not act on."""

    class Broken(Counting):
        def annotate_node(self, node: NodeName, annotations: Mapping[str, str | None]) -> None:
            raise InvariantViolated(node, f"{annotations}")

    with pytest.raises(InvariantViolated):
        execute(Broken(), [note(f"n{number}") for number in range(100)])


def test_bucket_lets_no_more_calls_through_from_many_threads() -> None:
    """Each thread would take the last token."""
    limiter = RateLimiter(lambda: 0.0, {"nodes": TokenBucket(capacity=100, per_second=1.0)})
    begin, passed = threading.Barrier(8), []

    def call() -> None:
        begin.wait(LONG_SECONDS)
        for _ in range(50):
            try:
                limiter.enter("nodes", "cluster")
            except Throttled:
                continue
            passed.append(1)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_SECONDS)
    assert len(passed) == 100


def test_calls_that_are_refused_together_are_one_refusal() -> None:
    """Sixteen calls under way would close the bucket for a minute at the first hiccup."""
    seconds = [0.0]
    limiter = RateLimiter(lambda: seconds[0])
    for _ in range(PARALLEL_MAX):
        limiter.refused("nodes", "cluster", Throttled("x", "y"))
    seconds[0] = 1.01
    limiter.enter("nodes", "cluster")


def test_eviction_without_time_in_one_plan_is_among_the_first_of_the_next() -> None:
    """Pods whose webhook hangs took all the time of every plan, until the node was gone."""
    seconds, asked = [0.0], list[str]()

    class Hanging(MemoryCluster):
        """Each eviction takes all the time that a plan has."""

        def evict_pod(self, pod: PodKey, grace_seconds: int) -> bool:
            """Note the pod; nothing but time."""
            del grace_seconds
            asked.append(pod.name)
            seconds[0] += 10.0
            return True

    executor = LiveExecutor(
        Ports(cluster=Hanging(MemoryWorld()), clouds={}), monotonic_seconds=lambda: seconds[0]
    )
    names = ["a", "b", "c"]
    for _ in names:
        executor.execute([evict(name) for name in names], lambda _: None, lambda: True)
    assert sorted(asked) == [f"pod-{name}" for name in names]
