"""Kubernetes Events: what `kubectl describe` shows under a pod, its controller or a node."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEvent:
    """Something that happened to one object, or did not happen and why."""

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
    """For people; cut to the length that the API accepts."""
    warning: bool = False
    about: str = ""
    """What distinguishes Events of one object and reason; empty: the message."""


class ObjectEvents(Protocol):
    """Writes Events."""

    def emit(self, event: ObjectEvent) -> None:
        """Write an Event soon, or count it on top of an equal one.

        Returns at once and never fails: without the right to write Events only the Events are lost.
        """
        ...
