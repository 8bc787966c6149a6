"""The second full list is taken beside the watch, which goes on and has the last word."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from reconciler.adapters.kubernetes import KubernetesCluster
from reconciler.model.snapshot import ClusterState
from tests.contract.kubernetes_api import LONG_SECONDS, ApiScript, event, pod_json, until, watching
from tests.contract.scripted import Answer, Request, json_answer

SOON_SECONDS = 0.01
"""The second list is asked for so soon after the first."""


Pods = tuple[dict[str, Any], ...]


class HeldLists:
    """Lists of pods: the first is answered at once, each further one when it is let go.

    Args:
        answers: What successive lists say; the last one is said again and again.
    """

    def __init__(self, *answers: Pods) -> None:
        self._answers = answers
        self._lists = itertools.count(1)
        self._asked: Queue[int] = Queue()
        self._gates = {number: threading.Event() for number in range(2, 10)}
        self._told: Queue[bytes | None] = Queue()
        self._others = ApiScript()

    def __call__(self, request: Request) -> Answer:
        """Answer one request."""
        if not request.path.startswith("/api/v1/pods"):
            return self._others(request)
        if "watch=1" in request.path:
            return Answer(lines=iter(self._told.get, None))
        number = next(self._lists)
        self._asked.put(number)
        if number in self._gates:
            self._gates[number].wait(LONG_SECONDS)
        items = self._answers[min(number, len(self._answers)) - 1]
        return json_answer({"metadata": {"resourceVersion": "7"}, "items": items})

    def wait_asked(self, number: int) -> None:
        """Wait until that list was asked for."""
        while self._asked.get(timeout=LONG_SECONDS) != number:
            pass

    def let_go(self, number: int) -> None:
        """Have that list answered."""
        self._gates[number].set()

    def tell(self, kind: str, found: dict[str, Any]) -> None:
        """Have the watch say something."""
        self._told.put(event(kind, found))

    def close(self) -> None:
        """Let everything come to its end."""
        for gate in self._gates.values():
            gate.set()
        self._others.hold.set()
        self._told.put(None)


@contextmanager
def followed(folder: Path, script: HeldLists) -> Iterator[KubernetesCluster]:
    """A cluster whose second list of pods is under way, and held."""
    with watching(folder, script, confirm_seconds=SOON_SECONDS) as cluster:
        try:
            script.wait_asked(2)
            yield cluster
        finally:
            script.close()


def named(name: str, version: str = "1", **labels: str) -> dict[str, Any]:
    """A pod of that name."""
    pod = pod_json(version)
    pod["metadata"] |= {"name": name, "uid": f"uid-{name}", "labels": labels}
    return pod


def names(state: ClusterState) -> list[str]:
    """Of the pods, sorted."""
    return [pod.key.name for pod in state.pods]


def ages(state: ClusterState) -> dict[str, str]:
    """What the pods are labelled with, by name."""
    return {pod.key.name: pod.labels["age"] for pod in state.pods}


def confirmed(state: ClusterState) -> bool:
    """Whether a second list of pods and of nodes has agreed."""
    return state.relists >= 2


def test_change_is_seen_while_the_second_list_is_under_way(tmp_path: Path) -> None:
    """A list of 30,000 pods takes 3 s: a pod that comes meanwhile would wait for all of it."""
    script = HeldLists(())
    with followed(tmp_path, script) as cluster:
        script.tell("ADDED", named("p", "8"))
        assert not confirmed(until(cluster, lambda state: names(state) == ["p"]))
        script.let_go(2)
        assert names(until(cluster, confirmed)) == ["p"]


def test_deletion_during_the_second_list_is_not_undone(tmp_path: Path) -> None:
    """A pod that came back from an old list would hold its node for good."""
    script = HeldLists((named("p"),))
    with followed(tmp_path, script) as cluster:
        script.tell("DELETED", named("p", "8"))
        until(cluster, lambda state: not state.pods)
        script.let_go(2)
        assert names(until(cluster, confirmed)) == []


def test_older_object_of_the_second_list_overwrites_nothing(tmp_path: Path) -> None:
    """A pod that is bound by now would be demand again."""
    script = HeldLists((named("p", age="old"),))
    with followed(tmp_path, script) as cluster:
        script.tell("MODIFIED", named("p", "8", age="new"))
        until(cluster, lambda state: ages(state) == {"p": "new"})
        script.let_go(2)
        assert ages(until(cluster, confirmed)) == {"p": "new"}


def test_second_list_that_disagrees_is_believed(tmp_path: Path) -> None:
    """What a watch failed to tell of would stay wrong for as long as the program runs."""
    first = named("gone"), named("stale", age="old"), named("same", age="old")
    second = named("came", age="new"), named("stale", "5", age="new"), named("same", age="ignored")
    script = HeldLists(first, second)
    with followed(tmp_path, script) as cluster:
        script.let_go(2)
        state = until(cluster, confirmed)
    assert ages(state) == {"came": "new", "stale": "new", "same": "old"}


def test_second_list_that_shrank_is_confirmed_by_a_third(tmp_path: Path) -> None:
    """Nodes would be ended by the word of a single list that came out empty."""
    script = HeldLists(tuple(named(f"p{number}") for number in range(10)), ())
    with followed(tmp_path, script) as cluster:
        script.let_go(2)
        script.wait_asked(3)
        assert not confirmed(until(cluster, lambda state: not state.pods))
        script.let_go(3)
        assert not until(cluster, confirmed).pods


def test_list_after_a_gap_in_the_watch_makes_the_second_one_void(tmp_path: Path) -> None:
    """An answer that is older than the newer list would bring back what is gone."""
    script = HeldLists((named("p"),), (named("p"),), ())
    with followed(tmp_path, script) as cluster:
        [second] = [each for each in threading.enumerate() if each.name == "confirm-Pod"]
        script.let_go(3)
        expired = {"kind": "Status", "code": 410, "message": "too old resource version"}
        script.tell("ERROR", expired)
        until(cluster, lambda state: not state.pods)
        script.let_go(2)
        second.join(LONG_SECONDS)
        assert names(until(cluster, confirmed)) == []


@pytest.mark.parametrize("answer", [json_answer({"message": "busy"}, 503), None])
def test_second_list_that_fails_is_asked_for_again(tmp_path: Path, answer: Answer | None) -> None:
    """Nothing would ever be confirmed, and the safety stop hold for good."""
    script = HeldLists((named("p"),))
    asked = itertools.count(1)

    def failing(request: Request) -> Answer | None:
        lists = request.path.startswith("/api/v1/pods") and "watch=1" not in request.path
        return answer if lists and next(asked) == 2 else script(request)

    with watching(tmp_path, failing, confirm_seconds=SOON_SECONDS) as cluster:
        try:
            script.let_go(2)
            assert names(until(cluster, confirmed)) == ["p"]
        finally:
            script.close()


def test_second_list_that_expired_between_its_pages_begins_anew(tmp_path: Path) -> None:
    """An object that was on its first page only would not be missed when it is gone."""
    script = HeldLists((named("p"), named("gone")))
    asked = itertools.count(1)

    def expiring(request: Request) -> Answer | None:
        lists = request.path.startswith("/api/v1/pods") and "watch=1" not in request.path
        if not lists or (number := next(asked)) == 1:
            return script(request)
        if "continue=" in request.path:
            return json_answer({"kind": "Status", "code": 410}, 410)
        more = {"continue": "more"} if number == 2 else {}
        items = [named("gone")] if number == 2 else [named("p")]
        return json_answer({"metadata": {"resourceVersion": "7", **more}, "items": items})

    with watching(tmp_path, expiring, confirm_seconds=SOON_SECONDS) as cluster:
        try:
            assert names(until(cluster, confirmed)) == ["p"]
        finally:
            script.close()
