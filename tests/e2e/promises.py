"""What plans promised of pods, compared with what kube-scheduler did with them."""

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.model.cluster import Pod
from reconciler.model.ids import PodKey
from reconciler.model.snapshot import ClusterState

_LOOK_SECONDS = 0.2
"""Plans come at least half a second apart: none is missed."""
_LIMITS = frozenset({"max-capacity", "max-cost"})
"""Reasons that are about how many nodes there may be, not about what a node takes."""
PodName = tuple[str, str]


@dataclass(slots=True)
class Tally:
    """How the promises of all scenes were kept."""

    same_node: int = 0
    """Bound to the very node, or to a node of the fleet that was bought for it."""
    other_node: int = 0
    """Bound to another node that it fits as well: kube-scheduler scores, the plan only counts."""
    larger_node: int = 0
    """Bound though no more nodes were allowed: EC2 chose a larger type than the least option."""
    preempted: int = 0
    """Bound where kube-scheduler had made room by preemption, which no plan counts on."""
    broken: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """One line about all of them."""
        return (
            f"placements promised by plans: {self.same_node} on that node or fleet,"
            f" {self.other_node} on another node that fits, {self.larger_node} on a node that came"
            f" larger than the least option, {self.preempted} by preemption,"
            f" {len(self.broken)} broken"
        )


@dataclass(slots=True)
class _Word:
    """The last word of the plans about a pod that was pending."""

    placement: Mapping[str, Any] | None
    codes: frozenset[str] = frozenset()
    """Why it was unplaceable."""


class Promises:
    """Reads every plan of a running reconciler until it is stopped.

    Args:
        get: Fetches a path of its HTTP server; status and body.
        namespace: Whose pods count.
    """

    def __init__(self, get: Callable[[str], tuple[int, str]], namespace: str) -> None:
        self._get = get
        self._namespace = namespace
        self._words: dict[PodName, _Word] = {}
        self._last = ""
        self._moments: set[str] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True, name="promises")

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End, with the plan that is the last one now: the test may have waited for that one."""
        self._stopping.set()
        self._thread.join()
        self._look()

    @property
    def moments(self) -> int:
        """Of how many different moments plans were read."""
        return len(self._moments)

    def compare(
        self,
        state: ClusterState,
        seen: Mapping[PodKey, Pod],
        fleets: Mapping[str, str],
        tally: Tally,
    ) -> None:
        """Add what became of each promise to the tally.

        Args:
            state: The cluster at the end.
            seen: Every pod of the scene as it was seen last, with its node, by key.
            fleets: The fleet of every node of the scene.
            tally: Grows.
        """
        bound = {(p.key.namespace, p.key.name): p for p in seen.values() if p.node_name}
        alive = {(p.key.namespace, p.key.name) for p in state.pods if not p.deleting}
        for name, word in sorted(self._words.items()):
            pod = bound.get(name)
            if pod is not None:
                self._judge(name, word, pod, fleets, tally)
            elif word.placement is not None and name in alive:
                tally.broken.append(f"{name[1]}: promised {word.placement} and never bound")

    def _judge(
        self,
        name: PodName,
        word: _Word,
        pod: Pod,
        fleets: Mapping[str, str],
        tally: Tally,
    ) -> None:
        node = str(pod.node_name)
        if word.placement is None:
            if pod.nominated_node_name == node:
                tally.preempted += 1
            elif word.codes <= _LIMITS:
                tally.larger_node += 1
            else:
                tally.broken.append(
                    f"{name[1]}: bound to {node} though unplaceable for {sorted(word.codes)}"
                )
        elif node in {word.placement.get("node"), *_nodes_of(word.placement.get("fleet"), fleets)}:
            tally.same_node += 1
        else:
            tally.other_node += 1

    def _read(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        try:
            status, body = self._get("/api/plan")
        except OSError:
            return
        if status == 200 and body != self._last:
            self._last = body
            self._hear(json.loads(body))

    def _hear(self, plan: Mapping[str, Any]) -> None:
        self._moments.add(plan["at"])
        for each in self._own(plan["placements"]):
            if "from" not in each:
                self._words[_name(each)] = _Word(each)
        for each in self._own(plan["unplaceable"]):
            self._words[_name(each)] = _Word(None, frozenset(r["code"] for r in each["reasons"]))

    def _own(self, entries: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
        return (entry for entry in entries if entry["namespace"] == self._namespace)


def _name(entry: Mapping[str, Any]) -> PodName:
    return str(entry["namespace"]), str(entry["pod"])


def _nodes_of(fleet: str | None, fleets: Mapping[str, str]) -> set[str]:
    return {node for node, name in fleets.items() if fleet and name == fleet}
