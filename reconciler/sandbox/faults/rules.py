"""Faults of one kind that are in force, in order; the first that shows wins."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from threading import Lock
from typing import Any, Generic, TypeVar

from reconciler.sandbox.faults.base import When
from reconciler.sandbox.faults.script import to_document
from reconciler.sandbox.faults.trigger import Trigger, make_trigger

RuleT = TypeVar("RuleT", bound=When)


class Rules(Generic[RuleT]):
    """Faults with the state of their triggers; safe to use from several threads.

    Args:
        place: What the draws of these faults depend on beside the seed: their key in a script.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._lock = Lock()
        self._rules: list[tuple[RuleT, Trigger]] = []
        self._made = 0

    def put(self, rules: Iterable[RuleT], now: datetime, seed: int) -> None:
        """Put faults in force, after those that are already."""
        with self._lock:
            for rule in rules:
                trigger = make_trigger(rule, now, seed, f"{self._place}[{self._made}]")
                self._rules.append((rule, trigger))
                self._made += 1

    def clear(self) -> None:
        """Take all of them away."""
        with self._lock:
            self._rules.clear()
            self._made = 0

    def first(self, is_about: Callable[[RuleT], bool], now: datetime) -> RuleT | None:
        """Return the first fault that is about this occasion and shows, which is counted."""
        for rule, trigger in self:
            if is_about(rule):
                with self._lock:
                    if trigger.fires(now):
                        return rule
        return None

    def shown(self) -> list[Mapping[str, Any]]:
        """Return the faults with a script's keys, each with how often it occurred (`shown`)."""
        return [{**to_document(rule), "shown": trigger.shown} for rule, trigger in self]

    def __iter__(self) -> Iterator[tuple[RuleT, Trigger]]:
        """Return the faults in force now with their triggers."""
        with self._lock:
            return iter(list(self._rules))
