"""The plan for everybody else where planning fails on the pods of some namespaces.

That planning fails is a bug. Pods that lead to it may be any tenant's, and one tenant must not stop
the plan for all: pending pods of a namespace on which it fails are left out, and the plan says so.
"""

from collections.abc import Mapping, Sequence
from traceback import walk_tb

from reconciler.model.errors import ReconcilerError
from reconciler.model.plan import Plan
from reconciler.model.snapshot import Snapshot
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings

TRIES_MAX = 40
"""Plans that are tried in search of the namespaces; with more at fault some innocent ones wait."""
CODE = "planning-failed"
_MESSAGE_MAX = 120
_PACKAGE = "reconciler"


def plan_for_all(snapshot: Snapshot, settings: PlannerSettings) -> Plan:
    """Return the plan, without the pending pods of namespaces on which planning fails.

    Those are unplaceable with code `planning-failed`. The errors that are raised on purpose are
    raised here too, and so is every other one that no pending pod leads to.
    """
    try:
        return plan(snapshot, settings)
    except ReconcilerError:
        raise
    except Exception as error:  # noqa: BLE001 - one tenant's pods must not stop the plan for all
        return _Search(snapshot, settings).run(error)


def left_out_of(made: Plan) -> Mapping[str, str]:
    """The namespaces that a plan leaves out, and why."""
    return {
        pod.pod.namespace: pod.reasons[0].detail
        for pod in made.unplaceable
        if pod.reasons and pod.reasons[0].code == CODE
    }


class _Search:
    """Finds the fewest namespaces to leave out, by halves."""

    def __init__(self, snapshot: Snapshot, settings: PlannerSettings) -> None:
        self._snapshot = snapshot
        self._settings = settings
        self._out: dict[str, str] = {}
        """Namespaces that are left out as yet, and why."""
        self._tries = 0
        self._made: Plan | None = None

    def run(self, error: Exception) -> Plan:
        """The plan with as many namespaces as possible; the error where none helps."""
        names = sorted({pod.key.namespace for pod in self._snapshot.cluster.pods})
        self._out = dict.fromkeys(names, _why(error))
        if self._fails(()) is not None or self._made is None:
            raise error
        self._add_half_by_half(names)
        return self._made

    def _add_half_by_half(self, names: Sequence[str]) -> None:
        """Put those back with which planning does not fail; together they are known to fail."""
        if len(names) < 2:
            return
        middle = len(names) // 2
        for half in (names[:middle], names[middle:]):
            error = self._fails(half)
            if error is not None:
                self._out |= dict.fromkeys(half, _why(error))
                self._add_half_by_half(half)

    def _fails(self, names: Sequence[str]) -> Exception | None:
        """The error of planning with these namespaces too; without one they stay in the plan."""
        if self._tries >= TRIES_MAX:
            return RuntimeError("it fails on pods of many namespaces")
        self._tries += 1
        out = {name: why for name, why in self._out.items() if name not in names}
        try:
            self._made = plan(self._snapshot, self._settings, out)
        except Exception as error:  # noqa: BLE001 - as above
            return error
        self._out = out
        return None


def _why(error: Exception) -> str:
    """What failed, where, and what to do."""
    frames = ((f.f_code.co_filename.split("/"), line) for f, line in walk_tb(error.__traceback__))
    ours = [(parts, line) for parts, line in frames if _PACKAGE in parts]
    said = " ".join(str(error).split())[:_MESSAGE_MAX]
    text = f"is of a namespace on whose pods planning fails: {type(error).__name__}"
    text += f": {said}" if said else ""
    if ours:
        parts, line = ours[-1]
        text += f", at {'/'.join(parts[-2:])}:{line}"
    return f"{text} (please report it with a snapshot)"
