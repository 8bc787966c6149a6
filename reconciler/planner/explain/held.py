"""Why nodes and instances are held, in words, for Events, explanations, logs and chat."""

from collections.abc import Mapping
from typing import Final

from reconciler.model.plan import Held, HeldCode

HELD: Final[Mapping[HeldCode, str]] = {
    "safety-stop": (
        "the plan would remove so many nodes at once, or so soon after the API server was out of"
        " reach, that it begins with none until a second full list of the cluster agrees"
    ),
    "unproven-cluster": "nothing proves that this cluster runs the fleets' instances",
    "clock-skew": "our clock differs too much from EC2's or the API server's to say how old it is",
    "stuck-cap": "it never became a usable node, and no more such instances may be ended for now",
    "protected": "it never became a node, and somebody protects it",
    "termination-protected": "it never became a node, and EC2 refuses to end it",
    "outage": "many nodes of its region are silent at once",
    "unlisted-node": "the list of nodes may be incomplete, and the instance may be a missing node",
}
"""By code, a clause that follows "it would go, but"."""


def held_in_words(held: Held) -> str:
    """Return why it is held as a clause, with the plan's detail in parentheses."""
    return HELD[held.code] + (f" ({held.detail})" if held.detail else "")
