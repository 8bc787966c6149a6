"""Churn: pods that come bound, run and go, and none of them pending."""

import threading
import time
from collections import deque
from contextlib import closing
from http.client import HTTPException
from itertools import count
from typing import Any, Self

from tests.benchmarks.e2e.etcd import Etcd, Object
from tests.benchmarks.e2e.objects import NAMESPACE, pod_body, pod_key, run
from tests.benchmarks.e2e.waiting import until
from tests.benchmarks.e2e.world import World

_STEP_SECONDS = 0.1
_CHECK_STEPS = 10
_BEHIND_STEPS_MAX = 5
_LAG_SECONDS = 300.0
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
        self._failure = ""

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End, and take away what still runs."""
        self._stopping.set()
        self._thread.join()

    @property
    def begun(self) -> int:
        """How many pods were made so far.

        Raises:
            RuntimeError: The thread has ended by a failure: no more come.
        """
        if self._failure:
            raise RuntimeError(f"churn ended: {self._failure}")
        return self._number

    def wait_seen(self) -> float:
        """Wait until the API server has told of everything so far; how long that took, in seconds.

        Its watches lag behind etcd when the machine has more to do than it can.
        """
        began = time.monotonic()
        pod = pod_body(f"marker-{self._number}", "10m", "16Mi")
        pod["spec"]["nodeName"] = self._world.nodes[0]
        with closing(self._world.etcd()) as etcd:
            etcd.put([(pod_key(pod), pod)])
            self._wait_told(pod)
            etcd.delete([pod_key(pod)])
        return time.monotonic() - began

    def _run(self) -> None:
        with closing(self._world.etcd()) as etcd:
            running: deque[list[Any]] = deque()
            finished: deque[list[Any]] = deque()
            try:
                self._churn(etcd, running, finished)
            except (OSError, HTTPException, RuntimeError) as error:
                self._failure = f"{type(error).__name__}: {error}"
                return
            for pods in (*running, *finished):
                etcd.delete(map(pod_key, pods))

    def _churn(self, etcd: Etcd, running: deque[list[Any]], finished: deque[list[Any]]) -> None:
        """Steps that are late are made up for.

        Watches that fall behind etcd would show the reconciler fewer changes than were written:
        now and then no more are made until watchers have been told of those a few steps ago.
        """
        due = time.monotonic()
        for step in count(1):
            if self._stopping.wait(max(0.0, due - time.monotonic())):
                return
            due += _STEP_SECONDS
            etcd.put(self._changes(running, finished))
            if len(finished) > _LIFE_STEPS:
                etcd.delete(pod_key(pod) for pod in finished.popleft())
            if step % _CHECK_STEPS == 0:
                self._wait_told(running[-_BEHIND_STEPS_MAX][0])

    def _wait_told(self, pod: Any) -> None:
        """Wait until the API server has told its watchers of a pod."""
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod['metadata']['name']}"

        def told() -> bool:
            query = {"resourceVersion": "0"}  # from the cache that feeds watches
            return self._world.api.request("GET", path, query=query).status == 200

        until("the API server keeps up", told, _LAG_SECONDS, 0.05)

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
