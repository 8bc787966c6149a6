"""Churn: pods that come bound, run and go, and none of them pending."""

import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPException
from itertools import count
from typing import Any, Literal, Self, get_args

from tests.benchmarks.e2e.encoding import EncodedPod
from tests.benchmarks.e2e.etcd import Etcd, Object
from tests.benchmarks.e2e.objects import PODS_PATH, pod_body, pod_key, run, uid
from tests.benchmarks.e2e.waiting import until
from tests.benchmarks.e2e.world import World

_STEP_SECONDS = 0.1
_CHECK_STEPS = 10
_BEHIND_STEPS_MAX = 5
_LAG_SECONDS = 300.0
_LIFE_STEPS = 50
"""A pod runs for 5 s, and its finished object stays as long."""


_State = Literal["bound", "running", "finished"]


@dataclass(frozen=True, slots=True)
class _Pod:
    """A pod of the churn."""

    name: str
    uid: str
    node: str


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
        self._patterns = _patterns(world)
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
        """Wait until the API server has sent everything so far; how long that took, in seconds.

        Its watches lag behind etcd when the machine has more to do than it can.
        """
        began = time.monotonic()
        name = f"marker-{self._number}"
        with closing(self._world.etcd()) as etcd:
            etcd.put([(pod_key(name), _body(name, self._world.nodes[0], "running"))])
            self._wait_for_watchers(name)
            etcd.delete([pod_key(name)])
        return time.monotonic() - began

    def _run(self) -> None:
        with closing(self._world.etcd()) as etcd:
            running: deque[list[_Pod]] = deque()
            finished: deque[list[_Pod]] = deque()
            try:
                self._churn(etcd, running, finished)
            except (OSError, HTTPException, RuntimeError) as error:
                self._failure = f"{type(error).__name__}: {error}"
                return
            for pods in (*running, *finished):
                etcd.delete(pod_key(pod.name) for pod in pods)

    def _churn(self, etcd: Etcd, running: deque[list[_Pod]], finished: deque[list[_Pod]]) -> None:
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
                etcd.delete(pod_key(pod.name) for pod in finished.popleft())
            if step % _CHECK_STEPS == 0:
                self._wait_for_watchers(running[-_BEHIND_STEPS_MAX][0].name)

    def _wait_for_watchers(self, name: str) -> None:
        """Wait until the API server has sent a pod to its watchers."""

        def told() -> bool:
            query = {"resourceVersion": "0"}  # from the cache that feeds watches
            return self._world.api.request("GET", f"{PODS_PATH}/{name}", query=query).status == 200

        until("the API server keeps up", told, _LAG_SECONDS, 0.05)

    def _changes(self, running: deque[list[_Pod]], finished: deque[list[_Pod]]) -> Iterator[Object]:
        """New pods, the last step's that now run, and those that end."""
        made = [self._pod() for _ in range(self._step)]
        yield from self._encoded(made, "bound")
        if running:
            yield from self._encoded(running[-1], "running")
        running.append(made)
        if len(running) > _LIFE_STEPS:
            finished.append(running.popleft())
            yield from self._encoded(finished[-1], "finished")

    def _encoded(self, pods: Iterable[_Pod], state: _State) -> Iterator[Object]:
        for pod in pods:
            pattern = self._patterns[len(pod.node), state]
            yield pod_key(pod.name), pattern.copy(pod.name, pod.uid, pod.node)

    def _pod(self) -> _Pod:
        """Bound from the beginning."""
        self._number += 1
        node = self._world.nodes[self._number % len(self._world.nodes)]
        return _Pod(f"churn-{self._number:07d}", uid(), node)


def _patterns(world: World) -> dict[tuple[int, _State], EncodedPod]:
    """A pod of each state for each length of a node's name."""
    nodes = {len(node): node for node in world.nodes}
    bodies = {
        (length, state): _body(f"model-{length:04d}{number:03d}", node, state)
        for length, node in nodes.items()
        for number, state in enumerate(get_args(_State))
    }
    keys = [pod_key(body["metadata"]["name"]) for body in bodies.values()]
    with closing(world.etcd()) as etcd, world.encoder() as encoder:
        etcd.put(zip(keys, bodies.values(), strict=True))
        found = {key: encoder.stored(PODS_PATH, body) for key, body in bodies.items()}
        etcd.delete(keys)
    return found


def _body(name: str, node: str, state: _State) -> Any:
    body = pod_body(name, "10m", "16Mi")
    body["spec"]["nodeName"] = node
    if state != "bound":
        run(body, node)
    if state == "finished":
        body["status"]["phase"] = "Succeeded"
    return body
