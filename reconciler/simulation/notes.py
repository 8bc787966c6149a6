"""What a reader of a simulation's figures must know to judge them, in sentences."""

from collections.abc import Iterator
from typing import Final

from reconciler.model.text import counted_noun
from reconciler.simulation.simulation import DAY_SECONDS, Result

SHORT_SECONDS: Final = 300.0
"""A node takes about a minute to join, so figures of a shorter time do not represent a day."""
_TYPES_MAX: Final = 5


def notes(result: Result) -> list[str]:
    """Return the notes; an empty list if there are none."""
    return list(_notes(result))


def _notes(result: Result) -> Iterator[str]:
    spans = result.days * DAY_SECONDS
    if result.options.days is None and spans < SHORT_SECONDS:
        yield (
            f"the demand spans {spans:,.0f} s only, so that its figures per day say "
            "little: record for longer, or give --days N"
        )
    if not result.history.created:
        yield "the demand asks for no pod in this time"
    if result.controllers_without_spec:
        which = counted_noun(result.controllers_without_spec, "controller")
        yield f"{which} of the demand without a pod, as no line says the spec: give it before"
    if result.faults_of_nothing:
        which = counted_noun(result.faults_of_nothing, "fault")
        yield f"{which} of the demand without effect: the config has no such fleet, type or zone"
    if result.volumes_elsewhere:
        which = counted_noun(result.volumes_elsewhere, "volume")
        yield f"{which} of the demand in a zone without a fleet: pods with such a volume wait"
    unpriced = sorted({offer.instance_type for offer in result.offers if not offer.priced})
    if unpriced:
        more = f" and {len(unpriced) - _TYPES_MAX} more" if len(unpriced) > _TYPES_MAX else ""
        named = ", ".join(unpriced[:_TYPES_MAX])
        yield f"no price known for {named}{more}: counted at a usual price"
