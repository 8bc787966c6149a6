"""A storm in the interruption queue: `python -m tests.benchmarks notices`.

15,000 messages, as many as Karpenter's own benchmark of its interruption controller sends, wait in
an SQS that answers at once (a process of its own). The real adapter receives them, real plans deal
with them, and they are deleted; 100 of them are about nodes of a cluster with 1,000, the others
about instances that are not ours.
"""

import json
import os
import resource
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from statistics import median
from time import perf_counter

import orjson

from reconciler.adapters.aws import Clients, SqsNotices
from reconciler.adapters.kubernetes.signal import ThreadedChangeSignal
from reconciler.loops.reconcile_loop import BATCH_MAX_SECONDS, BATCH_SECONDS
from reconciler.model.actions import AnnotateNode, TaintNode
from reconciler.model.cluster import Node
from reconciler.model.errors import PortError
from reconciler.model.ids import Region
from reconciler.model.notices import settled_messages
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from reconciler.ports.changes import Window
from tests.builders import (
    make_cloud,
    make_fleet,
    make_fleet_settings,
    make_instance,
    make_node,
    make_pods,
    make_settings,
    make_snapshot,
)
from tests.contract.scripted import Answer, Request, json_answer, scripted_server

NAME = "notices"
TITLE = "A storm in the interruption queue"
MESSAGES = 15_000
NODES = 1_000
PODS_EACH = 15
OURS = 100
LONGEST_SECONDS = 300.0
_KIB_PER_MIB = 1024


def scene() -> tuple[Snapshot, PlannerSettings]:
    """Nodes that are used at nine tenths: none is to go for another reason."""
    fleet = make_fleet_settings(cpu=10, memory="40Gi", pods=110)
    members = [make_node(f"node-{number:04}", fleet) for number in range(NODES)]
    live = make_fleet(fleet, NODES)
    pods = [
        pod
        for node in members
        for pod in make_pods(PODS_EACH, node.name, node=node.name, cpu="600m", ready=True)
    ]
    cloud = make_cloud(live, instances=[make_instance(node, live) for node in members])
    return make_snapshot(*members, *pods, cloud=cloud, relists=2), make_settings(fleet)


class Queue:
    """SQS, as far as the adapter uses it: messages are hidden once they were received."""

    def __init__(self, bodies: list[str]) -> None:
        self._lock = threading.Lock()
        self._waiting = deque((f"message-{number:06}", body) for number, body in enumerate(bodies))
        self.left = len(bodies)

    def answer(self, request: Request) -> Answer:
        """Answer one call; batches are known by their entries."""
        asked = orjson.loads(request.body)
        entries = asked.get("Entries")
        with self._lock:
            if entries is None:
                number = min(asked["MaxNumberOfMessages"], len(self._waiting))
                found = [self._waiting.popleft() for _ in range(number)]
                messages = [{"MessageId": m, "ReceiptHandle": m, "Body": b} for m, b in found]
                return json_answer({"Messages": messages})
            if "VisibilityTimeout" not in entries[0]:
                self.left -= len(entries)
        return json_answer({"Successful": [{"Id": entry["Id"]} for entry in entries], "Failed": []})


def bodies() -> list[str]:
    """The messages, those about nodes of ours spread over all."""
    every = MESSAGES // OURS
    return [
        json.dumps(
            {
                "source": "aws.ec2",
                "detail-type": "EC2 Spot Instance Interruption Warning",
                "time": "2026-01-31T12:00:00Z",
                "detail": {"instance-id": instance_of(n, every), "instance-action": "terminate"},
            }
        )
        for n in range(MESSAGES)
    ]


def instance_of(number: int, every: int) -> str:
    """The instance of a message: each so many-th is a node of ours."""
    ours = number % every == 0
    return f"i-node-{number // every:04}" if ours else f"i-{number:017}"


def serve() -> None:
    """Serve the queue, print where, and how many messages are left at each line of stdin."""
    queue = Queue(bodies())
    with scripted_server(queue.answer) as url:
        sys.stdout.write(url + "\n")
        sys.stdout.flush()
        for _ in sys.stdin:
            sys.stdout.write(f"{queue.left}\n")
            sys.stdout.flush()


@contextmanager
def served() -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The queue in a process of its own: its URL, and the process."""
    argv = [sys.executable, "-m", "tests.benchmarks.notices", "--serve"]
    child = subprocess.Popen(argv, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        yield child.stdout.readline().strip(), child
    finally:
        child.kill()
        child.wait()


def left(child: "subprocess.Popen[str]") -> int:
    """How many messages nobody has deleted."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write("\n")
    child.stdin.flush()
    return int(child.stdout.readline())


def carried_out(snapshot: Snapshot, made: Plan) -> Snapshot:
    """The cluster once the plan's marks are on the nodes."""
    nodes: dict[str, Node] = {each.name: each for each in snapshot.cluster.nodes}
    for action in made.actions:
        if isinstance(action, AnnotateNode) and action.value is not None:
            node = nodes[action.node]
            noted = {**node.annotations, action.key: action.value}
            nodes[action.node] = replace(node, annotations=type(node.annotations)(noted))
        elif isinstance(action, TaintNode):
            node = nodes[action.node]
            nodes[action.node] = replace(node, taints=(*node.taints, action.taint))
    return replace(snapshot, cluster=replace(snapshot.cluster, nodes=tuple(nodes.values())))


def peak_mib() -> float:
    """The largest resident size of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MIB


def measure() -> dict[str, float]:
    """Run the storm once; times in seconds."""
    snapshot, settings = scene()
    plan(snapshot, settings)
    before, plans, held_most = peak_mib(), [], 0
    signal = ThreadedChangeSignal()
    troubles: list[PortError | None] = []
    with served() as (url, child):
        endpoint = {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
        os.environ.update(endpoint)  # noqa: TID251 - the SDK's own
        clients = Clients()
        queue = SqsNotices(
            lambda: f"{url}/queue",
            clients,
            home=Region("us-west-2"),
            may_receive=lambda: True,
            arrived=lambda _: signal.notify("interruption-queue"),
            troubled=troubles.append,
        )
        began = perf_counter()
        queue.settle([])
        while left(child) and perf_counter() - began < LONGEST_SECONDS:
            signal.wait(BATCH_MAX_SECONDS)
            signal.gather(Window(BATCH_SECONDS, BATCH_MAX_SECONDS, BATCH_SECONDS))
            signal.clear()
            notices = queue.held()
            held_most = max(held_most, len(notices))
            if not notices:
                continue
            started = perf_counter()
            made = plan(replace(snapshot, notices=notices), settings)
            plans.append(perf_counter() - started)
            snapshot = carried_out(snapshot, made)
            queue.settle(settled_messages(made.notices), ())
        seconds, rest = perf_counter() - began, left(child)
        queue.close()
        clients.close()
    if rest or troubles:
        raise RuntimeError(f"{rest} messages are left after {seconds:.0f} s: {troubles}")
    marked = sum(bool(node.annotations) for node in snapshot.cluster.nodes)
    return {
        "seconds": seconds,
        "plans": len(plans),
        "plan p50": median(plans),
        "longest": max(plans),
        "held": held_most,
        "marked": marked,
        "before": before,
        "peak": peak_mib(),
    }


def run() -> str:
    """Measure once in a process of its own; its Markdown."""
    argv = [sys.executable, "-m", "tests.benchmarks.notices"]
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, timeout=2 * LONGEST_SECONDS)
    found = json.loads(done.stdout)
    line = (
        f"| {MESSAGES:,} | {found['seconds']:.1f} s | {MESSAGES / found['seconds']:,.0f} |"
        f" {found['plans']:.0f} | {1000 * found['plan p50']:.0f} / {1000 * found['longest']:.0f} ms"
        f" | {found['held']:,.0f} | {found['peak']:.0f} ({found['before']:.0f} before) |"
    )
    sys.stdout.write(f"  {line}\n")
    words = (
        f"{MESSAGES:,} spot interruptions wait in an SQS that answers at once, in a process of its"
        f" own; {OURS} are about nodes of a cluster of {NODES:,} with {PODS_EACH} pods each."
        " The adapter receives them, plans deal with them, and the messages are deleted."
    )
    columns = (
        "messages", "until all are deleted", "per second", "plans", "plan p50 / longest",
        "most held", "peak MiB",
    )  # fmt: skip
    head = f"| {' | '.join(columns)} |"
    rule = f"|{' --- |' * len(columns)}"
    return "\n".join([f"### {TITLE} (`{NAME}`)\n", f"{words}\n", head, rule, line])


if __name__ == "__main__":
    if "--serve" in sys.argv:
        serve()
    else:
        sys.stdout.write(json.dumps(measure()) + "\n")
