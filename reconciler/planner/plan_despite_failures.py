"""Plans without the pods or removals on which planning fails with a bug.

A failure of planning is a bug. Pods that lead to it may be any tenant's, and one tenant must not
stop the plan for all; nor may savings keep pods from their nodes. So the plan is made with as
little left out as possible, and says what that is.
"""

from collections.abc import Sequence

from reconciler.model.bugs import bug_in_words
from reconciler.model.errors import ReconcilerError
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.planner import plan
from reconciler.planner.planning_failure import LeftOut
from reconciler.planner.settings import PlannerSettings

TRIES_MAX = 40
"""How many plans are tried to find the namespaces; after that unaffected ones may be left out
too."""
_REPORT_IT = "(please report it with a snapshot)"


def plan_for_all(snapshot: Snapshot, settings: PlannerSettings) -> Plan:
    """Return the plan, without what makes planning fail (code `planning-failed`).

    Tried in this order: all pods, but nothing is drained, ended or moved; everything but the
    pending pods of the fewest namespaces; both. Errors that are raised on purpose are raised here
    too, and so is one that none of this avoids.
    """
    try:
        return plan(snapshot, settings)
    except ReconcilerError:
        raise
    except Exception as error:  # noqa: BLE001 - one tenant's pods must not stop the plan for all
        return _Search(snapshot, settings, error).run()


class _Search:
    """Finds what has to be left out; namespaces by bisection."""

    def __init__(self, snapshot: Snapshot, settings: PlannerSettings, error: Exception) -> None:
        self._snapshot = snapshot
        self._settings = settings
        self._error = error
        self._names = sorted({pod.key.namespace for pod in snapshot.cluster.pods})
        self._out: dict[str, str] = {}
        """Namespaces that are left out so far, and why."""
        self._removals = ""
        self._tries = 0

    def run(self) -> Plan:
        """Return the plan; raise the error if nothing helps."""
        because = f"planning what may go fails: {bug_in_words(self._error)} {_REPORT_IT}"
        self._removals = because
        served = self._tried({})
        if isinstance(served, Plan):
            return served
        for removals in ("", because):
            self._removals = removals
            self._out = dict.fromkeys(self._names, _why(self._error))
            made = self._tried(self._out)
            if isinstance(made, Plan):
                return self._with_most(self._names, made)
        raise self._error

    def _with_most(self, names: Sequence[str], made: Plan) -> Plan:
        """Put back namespaces with which planning works; it is known to fail with all of them."""
        if len(names) < 2:
            return made
        middle = len(names) // 2
        for half in (names[:middle], names[middle:]):
            out = {name: why for name, why in self._out.items() if name not in half}
            found = self._tried(out)
            if isinstance(found, Plan):
                self._out, made = out, found
            else:
                self._out |= dict.fromkeys(half, _why(found))
                made = self._with_most(half, made)
        return made

    def _tried(self, out: dict[str, str]) -> Plan | Exception:
        """Return the plan without these namespaces, or how it fails."""
        if self._tries >= TRIES_MAX:
            return self._error
        self._tries += 1
        left_out = LeftOut(namespaces=out, removals=self._removals)
        try:
            return plan(self._snapshot, self._settings, left_out)
        except Exception as error:  # noqa: BLE001 - as above
            return error


def _why(error: Exception) -> str:
    return f"is of a namespace on whose pods planning fails: {bug_in_words(error)} {_REPORT_IT}"
