"""DescribeInstances for a thousand instances: serialized parts of answers are reused.

Moto's serializer takes 2 ms for an instance, and holds up every other call for as long.
"""

from collections.abc import Mapping
from typing import Any

from moto.core.responses import ActionResult

_EMPTY = "<reservationSet/>"
_BEGIN, _END = "<reservationSet>", "</reservationSet>"
_KEPT_MAX = 20_000


class ReservationXmlCache:
    """Caches the XML of reservations, by their id, until one of their instances changes.

    Changes by time and by fleets are checked at each use; any other call that may change an
    instance clears the cache (`forget`).
    """

    def __init__(self) -> None:
        self._xml_cache: dict[str, tuple[object, str]] = {}

    def forget(self) -> None:
        """Clear the cache: something that is not checked may have changed."""
        self._xml_cache.clear()

    def get(self, reservation: Any, tags: Any) -> str | None:
        """Return the XML; None if there is none or it is no longer valid."""
        looks, xml = self._xml_cache.get(reservation.id, (None, ""))
        return xml if looks == _looks_of(reservation, tags) else None

    def put(self, reservation: Any, tags: Any, xml: str) -> None:
        """Store the XML."""
        if len(self._xml_cache) >= _KEPT_MAX:
            self._xml_cache.clear()
        self._xml_cache[reservation.id] = _looks_of(reservation, tags), xml


class InstancesResult(ActionResult):
    """An answer of DescribeInstances, each reservation serialized by moto or reused."""

    def __init__(
        self, answer: Mapping[str, Any], xml_cache: ReservationXmlCache, tags: Any
    ) -> None:
        super().__init__(answer)
        self._answer, self._xml_cache, self._tags = answer, xml_cache, tags

    def execute_result(self, context: Any) -> Any:
        """Return status, headers and body."""
        around = {**self._answer, "Reservations": []}
        status, headers, body = ActionResult(around).execute_result(context)
        text = str(body)
        if _EMPTY not in text:  # moto uses another form: let it serialize everything
            return super().execute_result(context)
        xml = "".join(
            self._xml(reservation, context) for reservation in self._answer["Reservations"]
        )
        return status, headers, text.replace(_EMPTY, f"{_BEGIN}{xml}{_END}", 1)

    def _xml(self, reservation: Any, context: Any) -> str:
        known = self._xml_cache.get(reservation, self._tags)
        if known is None:
            _, _, body = ActionResult({"Reservations": [reservation]}).execute_result(context)
            known = str(body).partition(_BEGIN)[2].rpartition(_END)[0]
            self._xml_cache.put(reservation, self._tags, known)
        return known


def _looks_of(reservation: Any, tags: Any) -> object:
    """Return everything of a reservation's instances that changes without a call about them."""
    return [
        (
            instance.id,
            instance.instance_state.name,
            instance.instance_state.code,
            instance.state_reason.code,
            instance.state_reason.message,
            dict(tags.get(instance.id, {})),
            instance.launch_time,
        )
        for instance in reservation.instances
    ]
