"""Carrying a plan out: `python -m tests.benchmarks act`.

500 annotations through the real executor and adapter to an API server that takes 20 ms for each
call, and as many calls at once as it is asked: what one after the other would take 10 s.
"""

import json
import sys
import tempfile
import threading
from pathlib import Path
from time import perf_counter, process_time

from reconciler.adapters.kubernetes import LeaseHome, connect
from reconciler.adapters.kubernetes.verbs import Verbs
from reconciler.executor.executor import LiveExecutor
from reconciler.executor.handlers import annotate
from reconciler.executor.ports import Ports
from reconciler.executor.rate_limited_ports import RateLimitedPorts
from reconciler.executor.rate_limiter import RateLimiter
from reconciler.executor.runners import in_parallel
from reconciler.model.actions import UNNEEDED_SINCE, AnnotateNode
from reconciler.model.ids import NodeName
from reconciler.model.outcome import Outcome
from tests.contract.kubernetes_api import kubeconfig
from tests.contract.scripted import Answer, Request, json_answer, scripted_server

NAME = "act"
TITLE = "Carrying a plan out"
WHY = (
    "500 annotations on as many nodes, through the real executor and adapter over HTTP, against an "
    "API server that takes 20 ms for each call. Beside it the same calls one after the other."
)
NOTES = 500
CALL_SECONDS = 0.02
"""What the server takes for each call."""
IN_TURN = 50
"""Calls that are made one after the other, for comparison."""


def run() -> str:
    """Measure; its Markdown, while a line appears on stdout."""
    with (
        tempfile.TemporaryDirectory() as folder,
        scripted_server(_slow_answer) as url,
    ):
        transport = connect(kubeconfig(Path(folder), url))
        cluster = Verbs(transport, LeaseHome(namespace="bench"), lambda _: "1")
        ports = Ports(cluster=cluster, clouds={})  # type: ignore[arg-type] # only what is called
        seconds, cpu, applied = _side_by_side(ports)
        each = _one_by_one(ports)
        transport.close()
    cells = {
        "annotations": f"{applied}",
        "wall": f"{seconds:.2f} s",
        "CPU (server included)": f"{cpu:.2f} s",
        "one after the other": f"{each * NOTES:.1f} s",
        "times as fast": f"{each * NOTES / seconds:.1f}",
    }
    sys.stdout.write("  " + "; ".join(f"{head} {cell}" for head, cell in cells.items()) + "\n")
    table = [
        "| " + " | ".join(cells) + " |",
        "|" + " --- |" * len(cells),
        "| " + " | ".join(cells.values()) + " |",
    ]
    return "\n".join([f"### {TITLE} (`{NAME}`)", "", WHY, "", *table]) + "\n"


def _slow_answer(request: Request) -> Answer:
    threading.Event().wait(CALL_SECONDS)
    metadata = json.loads(request.body)["metadata"] if request.body else {}
    return json_answer({"metadata": {"uid": "u", "resourceVersion": "2", **metadata}})


def _notes(count: int) -> list[AnnotateNode]:
    return [
        AnnotateNode(
            node=NodeName(f"node-{number:03}"),
            key=UNNEEDED_SINCE,
            value="2026-01-31T12:00:00Z",
            policy="scale-in",
            because="empty",
        )
        for number in range(count)
    ]


def _side_by_side(ports: Ports) -> tuple[float, float, int]:
    """Wall and CPU seconds of the whole phase, and how many were applied."""
    reported: list[Outcome] = []
    executor = LiveExecutor(ports, perf_counter, runner=in_parallel)
    began, cpu_began = perf_counter(), process_time()
    executor.execute(_notes(NOTES), reported.append)
    seconds, cpu = perf_counter() - began, process_time() - cpu_began
    return seconds, cpu, sum(outcome.kind == "applied" for outcome in reported)


def _one_by_one(ports: Ports) -> float:
    """Seconds of one call, when they are made one after the other."""
    paced = RateLimitedPorts(ports, RateLimiter(perf_counter))
    began = perf_counter()
    for note in _notes(IN_TURN):
        annotate([note], paced)
    return (perf_counter() - began) / IN_TURN


if __name__ == "__main__":
    sys.stdout.write(run())
