"""What the steps of a program do to the world; a step that has nothing to act on does nothing."""

from tests.life.happenings.faults import Faults
from tests.life.happenings.operators import Operators
from tests.life.happenings.workloads import Workloads


class Happenings(Workloads, Operators, Faults):
    """Everything that may happen: what users and operators do, and what goes wrong."""
