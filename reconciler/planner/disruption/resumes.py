"""Reports for each update that a person asked to resume whether it was resumed, and why not.

The annotation with the names is removed after one plan.
"""

from collections.abc import Iterator
from typing import Final

from reconciler.model.plan import ResumedUpdate
from reconciler.model.text import cut, nearest_name
from reconciler.planner.disruption.replacement.update_pause import rest_of
from reconciler.planner.view import ClusterView

NAMES_MAX: Final = 50
"""How many names of one annotation are answered."""
_NAME_MAX: Final = 100


def answers_to_resumes(view: ClusterView) -> Iterator[ResumedUpdate]:
    """Yield for each name whether an update of its fleets was resumed by this plan."""
    cluster = view.snapshot.cluster
    if not cluster.resumed_updates:
        return
    known = sorted({key.name for key in view.statuses})
    halted = {saved.fleet for saved in cluster.fleet_states if saved.halted_version}
    resting = {
        update.key.name
        for update in view.inventory.updates.values()
        if update.batch_max and rest_of(view, update, none_chosen=True) is not None
    }
    for name in list(filter(None, cluster.resumed_updates))[:NAMES_MAX]:
        done = name in known and name in halted | resting
        because = "its halt is lifted" if name in halted else "its rest is over"
        if name not in known:
            near = nearest_name(name, known)
            hint = f"; did you mean {near}?" if near else ""
            because = f"the config has no fleet of this name{hint}"
        elif not done:
            because = "it has no rolling update that is halted or rests"
        yield ResumedUpdate(fleet=cut(name, _NAME_MAX), done=done, because=because)
