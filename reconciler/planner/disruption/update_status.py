"""What a plan shows of a rolling update, with what keeps its next batch from beginning."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from reconciler.model.actions import ROLLING_UPDATE, AnnotateNode
from reconciler.model.ids import NodeName
from reconciler.model.plan import FleetUpdate, Kept
from reconciler.model.text import counted_noun
from reconciler.planner.builder import PlanBuilder
from reconciler.planner.disruption.methods.drifted import POLICY
from reconciler.planner.disruption.replacement.update_pause import rest_of
from reconciler.planner.fleets.updates.update import Update

_CODES_MAX: Final = 3
"""The number of reasons named for why no batch can begin."""


def update_status(
    builder: PlanBuilder, update: Update, kept: Mapping[NodeName, Kept]
) -> FleetUpdate:
    """Return what the plan shows of the update, with what keeps its nodes if no batch can begin.

    Args:
        builder: The finished plan.
        update: The update.
        kept: Why nodes stay.
    """
    shown = update.shown
    chosen = any(
        isinstance(action, AnnotateNode)
        and action.key == ROLLING_UPDATE
        and action.node in update.old
        for action in builder.actions
    )
    if not update.batch_max or chosen:
        return shown
    rest = rest_of(builder.view, update, none_chosen=True)
    if rest is not None:
        return replace(shown, state="resting", because=rest.because)
    codes = Counter(kept[name].code for name in update.old if name in kept)
    del codes[POLICY]  # no plan examines more of them
    if not codes:
        return shown
    most = ", ".join(f"{code} {count}" for code, count in codes.most_common(_CODES_MAX))
    nodes = counted_noun(codes.total(), "node")
    return replace(shown, because=f"none of {nodes} can be emptied: {most}")
