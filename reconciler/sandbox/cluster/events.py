"""Events as components record them, folded when they repeat, and bounded in number."""

from collections import OrderedDict

from reconciler.sandbox.cluster.clock import format_time
from reconciler.sandbox.cluster.objects.api import Api
from reconciler.sandbox.cluster.objects.resources import EVENTS
from reconciler.sandbox.cluster.objects.status import ApiError, JsonObject
from reconciler.sandbox.cluster.objects.store import Entry, Key


class Recorder:
    """Writes core/v1 Events.

    Args:
        api: Stores the events.
        events_max: How many of its own it keeps.
    """

    def __init__(self, api: Api, events_max: int) -> None:
        self._api = api
        self._events_max = events_max
        self._known: OrderedDict[tuple[str, str, str], Key] = OrderedDict()

    def record(
        self, about: Entry, reason: str, message: str, *, component: str, warning: bool = False
    ) -> None:
        """Record that something happened to an object."""
        identity = (about.uid, reason, message)
        if identity in self._known and self._repeat(self._known[identity]):
            return
        namespace = about.key[0] or "default"
        at = format_time(self._api.now())
        body: JsonObject = {
            "metadata": {"generateName": f"{about.key[1][:50]}."},
            "involvedObject": {
                "kind": about.resource.kind,
                "apiVersion": about.resource.group_version,
                "name": about.key[1],
                "uid": about.uid,
                "resourceVersion": str(about.version),
                **({"namespace": about.key[0]} if about.key[0] else {}),
            },
            "reason": reason,
            "message": message[:1024],
            "type": "Warning" if warning else "Normal",
            "source": {"component": component},
            "reportingComponent": component,
            "reportingInstance": "",
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        }
        try:
            self._known[identity] = self._api.create(EVENTS, namespace, body).key
        except ApiError:
            return  # the namespace is being deleted, and the event with it
        self._forget()

    def _repeat(self, key: Key) -> bool:
        at = format_time(self._api.now())

        def change(body: JsonObject) -> None:
            body["count"] += 1
            body["lastTimestamp"] = at

        return self._api.mutate(EVENTS, key, change) is not None

    def _forget(self) -> None:
        while len(self._known) > self._events_max:
            _, key = self._known.popitem(last=False)
            entry = self._api.store.find(EVENTS, key)
            if entry is not None:
                self._api.delete(EVENTS, key)
