"""Churn: pods that come bound, run and go, and none of them pending."""

import threading
import time
from collections import deque
from typing import Any

from tests.benchmarks.e2e.etcd import Object
from tests.benchmarks.e2e.objects import NAMESPACE, pod_body, pod_key, run
from tests.benchmarks.e2e.waiting import until
from tests.benchmarks.e2e.world import World

_STEP_SECONDS = 0.1
_LIFE_STEPS = 50
"""A pod runs for 5 s, and its finished object stays as long."""


class Churn:
    """A thread that writes so many pods a second, in steps of a tenth of one.

    They go straight into etcd: through the API server and KWOK the load of making them would
    weigh more on this machine than what is measured. Watchers see the same four events.

    Args:
        world: Where.
        per_second: How many pods begin, and end, in a second.
    """

    def __init__(self, world: World, per_second: int) -> None:
        self._world = world
        self._step = max(1, round(per_second * _STEP_SECONDS))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="churn")
        self._number = 0
        self._began = 0.0
        self._ended = 0.0

    def start(self) -> None:
        """Begin."""
        self._began = time.monotonic()
        self._thread.start()

    def stop(self) -> float:
        """End; the rate that was reached, in pods a second."""
        self._stopping.set()
        self._thread.join()
        return self._number / (self._ended - self._began)

    def wait_seen(self) -> float:
        """Wait until the API server has told of everything so far; how long that took, in seconds.

        Its watches lag behind etcd when the machine has more to do than it can.
        """
        began = time.monotonic()
        pod = pod_body(f"marker-{self._number}", "10m", "16Mi")
        pod["spec"]["nodeName"] = self._world.nodes[0]
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}"
        etcd = self._world.etcd()
        etcd.put([(pod_key(pod), pod)])

        def seen() -> bool:
            query = {"resourceVersion": "0"}  # from the cache that feeds watches
            return self._world.api.request("GET", path, query=query).status == 200

        until("the API server has caught up", seen, 300, 0.05)
        etcd.delete([pod_key(pod)])
        etcd.close()
        return time.monotonic() - began

    def _run(self) -> None:
        etcd = self._world.etcd()
        running: deque[list[Any]] = deque()
        finished: deque[list[Any]] = deque()
        due = time.monotonic()
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            due += _STEP_SECONDS
            etcd.put(self._changes(running, finished))
            if len(finished) > _LIFE_STEPS:
                etcd.delete(pod_key(pod) for pod in finished.popleft())
        self._ended = time.monotonic()
        for pods in (*running, *finished):
            etcd.delete(map(pod_key, pods))
        etcd.close()

    def _changes(self, running: deque[list[Any]], finished: deque[list[Any]]) -> list[Object]:
        """New pods, the last step's that now run, and those that end."""
        made = [self._pod() for _ in range(self._step)]
        changed: list[Any] = list(made)
        if running:
            changed += [_started(pod) for pod in running[-1]]
        running.append(made)
        if len(running) > _LIFE_STEPS:
            finished.append([_finished(pod) for pod in running.popleft()])
            changed += finished[-1]
        return [(pod_key(pod), pod) for pod in changed]

    def _pod(self) -> Any:
        """Bound from the beginning."""
        self._number += 1
        pod = pod_body(f"churn-{self._number:07d}", "10m", "16Mi")
        pod["spec"]["nodeName"] = self._world.nodes[self._number % len(self._world.nodes)]
        return pod


def _started(pod: Any) -> Any:
    run(pod, pod["spec"]["nodeName"])
    return pod


def _finished(pod: Any) -> Any:
    pod["status"]["phase"] = "Succeeded"
    return pod
