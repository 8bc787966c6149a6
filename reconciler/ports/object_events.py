"""Kubernetes Events: what `kubectl describe` shows under a pod, its controller or a node."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEvent:
    """Something that happened to one object, or did not and why."""

    kind: str
    api_version: str = "v1"
    namespace: str = ""
    """Empty for nodes and namespaces."""
    name: str
    uid: str = ""
    """Empty when unknown: the Event then shows under any object of the name."""
    reason: str
    """One word in CamelCase, such as TriggeredScaleUp."""
    message: str
    """For people; cut to what the API takes."""
    warning: bool = False
    about: str = ""
    """What makes two Events of one object and reason different ones; empty: the message."""


class ObjectEvents(Protocol):
    """Where Events go."""

    def emit(self, event: ObjectEvent) -> None:
        """Have an Event written soon, or counted on top of an equal one.

        Returns at once and never fails: without the right to write Events only the Events are lost.
        """
        ...
