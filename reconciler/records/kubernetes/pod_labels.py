"""Decodes the labels of pods: equal ones are one object, and too many of them are cut."""

from dataclasses import replace
from typing import NamedTuple

from msgspec import Raw
from msgspec.json import Decoder

from reconciler.model.cluster import PodSpec
from reconciler.model.frozen import NO_LABELS, FrozenMap, Labels
from reconciler.model.interning import InternTable
from reconciler.records.kubernetes.limits import LABELS_MAX, beyond

_LABELS = Decoder(dict[str, str] | None)

SHARED_BYTES_MAX = 64 * 1024
"""JSON of labels that is kept to share them; `LABELS_MAX` of the longest ones have less."""


class PodLabels(NamedTuple):
    """Labels of a pod."""

    kept: Labels
    """The first `LABELS_MAX` by key."""
    excess: str = ""
    """A text that says how many more there are; empty if there are none."""

    def marked(self, spec: PodSpec) -> PodSpec:
        """Return the spec of the pod, marked as too complex if there are too many labels."""
        if not self.excess or spec.too_complex:
            return spec
        return replace(spec, too_complex=self.excess)


_NONE = PodLabels(NO_LABELS)


class LabelDecoder:
    """Decodes labels; use one decoder as long as equal ones are to be one object."""

    def __init__(self, entries_max: int, usual_bytes: int) -> None:
        """Keep up to `entries_max` entries; one longer than `usual_bytes` counts as several."""
        self._known: InternTable[bytes, PodLabels] = InternTable(entries_max)
        self._usual_bytes = usual_bytes

    def decode(self, raw: Raw) -> PodLabels:
        """Decode labels; raise ValueError if they are not a map of strings."""
        key = bytes(raw)
        if key == b"null":
            return _NONE
        if len(key) > SHARED_BYTES_MAX:
            return _decoded(key)
        weight = 1 + len(key) // self._usual_bytes
        return self._known.get_or_build(key, lambda: _decoded(key), weight=weight)


def _decoded(raw: bytes) -> PodLabels:
    found = _LABELS.decode(raw) or {}
    if len(found) <= LABELS_MAX:
        return PodLabels(FrozenMap(found))
    first = FrozenMap(sorted(found.items())[:LABELS_MAX])
    return PodLabels(first, beyond(len(found), LABELS_MAX, "labels"))
