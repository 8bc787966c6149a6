"""The verdict on cluster and fleets, as JSON and as the first line for people."""

from typing import Any

from reconciler.model.binding import Binding

Json = dict[str, Any]

_WORDS = {
    "proven": "this cluster runs the fleets' instances",
    "previously-proven": "this cluster ran the fleets' instances before",
    "pending": "not proven yet that this cluster runs the fleets' instances",
    "unproven": "NOT PROVEN that this cluster runs the fleets' instances",
}
_HELD = "; no instance is ended, no node is drained or deleted"


def binding_to_json(binding: Binding) -> Json:
    """Return the verdict with its reason and its consequences."""
    return {
        "verdict": binding.verdict,
        "because": binding.because,
        "cluster_uid": binding.cluster_uid or None,
        "removals_allowed": binding.may_remove,
    }


def verdict_line(binding: Json) -> str:
    """Return one line for people, from what `binding_to_json` made."""
    verdict = str(binding["verdict"])
    held = "" if binding["removals_allowed"] else _HELD
    return f"{verdict}: {_WORDS[verdict]} ({binding['because']}){held}"
