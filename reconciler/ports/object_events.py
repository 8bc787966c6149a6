"""Kubernetes Events: what `kubectl describe` shows under a pod, its controller or a node."""

from dataclasses import dataclass
from typing import Protocol

from reconciler.model.ids import PodKey


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


def pod_event(
    pod: PodKey, reason: str, message: str, *, warning: bool = False, about: str = ""
) -> ObjectEvent:
    """Return an Event on a pod; arguments as `ObjectEvent` has them."""
    return ObjectEvent(
        kind="Pod",
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        reason=reason,
        message=message,
        warning=warning,
        about=about,
    )


class ObjectEvents(Protocol):
    """Writes Events."""

    def emit(self, event: ObjectEvent) -> None:
        """Write an Event soon, or count it on top of an equal one.

        Returns at once and never fails: without the right to write Events only the Events are lost.
        """
        ...
