"""Every error the program raises on purpose; the class decides the next step, texts never do.

ReconcilerError
├── UsageError                 wrong command line (exit 2)
├── ConfigError(problems)      invalid sector config (exit 2)
├── InputError                 a file or answer that cannot be read (exit 1)
├── ObservationError           an observation is missing or too old to act on
├── ToolError                  a program that is missing or failed (git, terraform)
├── PortError                  the other side of a port refused
│   ├── Throttled              nothing was changed; retry after a pause
│   ├── Conflict               the object moved on since it was read; observe again
│   ├── NotFound               the object is gone
│   ├── Forbidden              not allowed, by identity or by policy
│   ├── Refused                a well-formed request that the server will not do now (a budget, say)
│   │   └── TerminationProtected   instances that nobody may end; the others of the call were ended
│   ├── InsufficientCapacity   the provider has none of what was asked
│   ├── Unavailable            could not be reached or answered with a server error; not applied
│   └── OutcomeUnknown         sent, but the reply was lost; observe before deciding again
└── InvariantViolated          our bug: the process ends with a non-zero code
"""

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.model.ids import InstanceId

_CAUSES_MAX = 32
"""How many causes of a failed connection are examined."""


class ReconcilerError(Exception):
    """Base of all errors raised on purpose.

    Args:
        where: The place: a file with line and column, an object, a command.
        what: What is wrong there, in one clause.
        hint: What to do about it; empty when nothing sensible can be suggested.
    """

    exit_code = 1

    def __init__(self, where: str, what: str, hint: str = "") -> None:
        super().__init__(where, what, hint)
        self.where = where
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        """Return one line: `WHERE: WHAT (HINT)`."""
        text = f"{self.where}: {self.what}" + (f" ({self.hint})" if self.hint else "")
        return " ".join(text.split())


def why_unreadable(error: Exception) -> str:
    """Return in one clause why a file could not be read; every message uses the same words."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, IsADirectoryError):
        return "is a directory"
    if isinstance(error, PermissionError):
        return "this user may not read it"
    text = error.strerror if isinstance(error, OSError) else str(error)
    return f"cannot be read: {text or type(error).__name__}"


def why_not_reached(error: BaseException) -> str:
    """Return in one clause why a server gave no answer, in the system's words if there are any."""
    chain: list[object] = [error]
    for each in chain:
        if isinstance(each, OSError) and each.strerror:
            return each.strerror.lower()
        if isinstance(each, BaseException) and len(chain) < _CAUSES_MAX:
            chain += [each.__cause__, getattr(each, "reason", None), *each.args]
    return type(error).__name__


class UsageError(ReconcilerError):
    """The command line names something that does not exist, or contradicts itself."""

    exit_code = 2


class InputError(ReconcilerError):
    """A file or an answer that cannot be read at all."""


class ObservationError(ReconcilerError):
    """An observation is missing or too old to act on."""


class ToolError(ReconcilerError):
    """A program that this one calls is missing or failed."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Problem:
    """One fault of a sector config."""

    line: int
    """Counted from 1; 0 when the fault has no place in the file."""
    column: int
    """Counted from 1, of the key or list item."""
    path: str
    """Dotted path, list items as `[0]`."""
    code: str
    """Stable code of the interface contract, such as `config/unknown-key`."""
    message: str
    severity: str = "error"
    """`error`, or `warning` for what is valid and probably a mistake."""


class ConfigError(ReconcilerError):
    """A sector config with at least one fault; `problems` has all of them, in file order."""

    exit_code = 2
    hint_unreadable = "name the sector config with --config"
    hint_on_first = "reconciler validate lists every fault"
    hint_on_each = "reconciler validate checks the corrected file"

    def __init__(self, file: str, problems: tuple[Problem, ...]) -> None:
        first = problems[0]
        others = len(problems) - 1
        more = f"; {others} more fault{'s' if others > 1 else ''}" if others else ""
        if first.line:
            where, what = f"{file}:{first.line}:{first.column}", f"{first.code}: {first.message}"
            hint = self.hint_on_first
        else:  # the fault is about the file as a whole, so it has no line
            where, what, hint = file, first.message, self.hint_unreadable
        super().__init__(where, what + more, hint)
        self.file = file
        self.problems = problems


class MixError(ConfigError):
    """A mix for `simulate` with at least one fault; the file is read like a sector config."""

    hint_unreadable = hint_on_first = hint_on_each = "docs/simulate.md says what a mix may hold"


class PortError(ReconcilerError):
    """The other side of a port refused or failed."""


def error_name(error: PortError) -> str:
    """Return the name of the error's class among those of the ports, whatever an adapter made it.

    Adapters have classes of their own below these; no other part of the program knows them.
    """
    return next(each.__name__ for each in type(error).__mro__ if each.__module__ == __name__)


def name_and_text(error: PortError) -> str:
    """Return the error's class and text, for where only text is kept."""
    return f"{error_name(error)}: {error}"


class Throttled(PortError):
    """Nothing was changed; try again after a pause."""

    def __init__(self, where: str, what: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(where, what)
        self.retry_after_seconds = retry_after_seconds


class Conflict(PortError):
    """The object changed since it was read; observe again."""


class NotFound(PortError):
    """The object is gone."""


class Forbidden(PortError):
    """Not allowed, by identity or by policy."""


class Refused(PortError):
    """A well-formed request that the server refuses for now."""

    def __init__(self, where: str, what: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(where, what)
        self.retry_after_seconds = retry_after_seconds


class TerminationProtected(Refused):
    """Instances that EC2 does not end: somebody has protected them; all others were ended.

    Args:
        where: The call and its object.
        what: What EC2 said about the first of them.
        instances: The protected ones.
        target: What the fleet's target was lowered to before, theirs included; None when it was not
            lowered.
    """

    def __init__(
        self,
        where: str,
        what: str,
        instances: Iterable[InstanceId],
        target: int | None = None,
    ) -> None:
        super().__init__(where, what)
        self.instances = frozenset(instances)
        self.target = target


class InsufficientCapacity(PortError):
    """The provider has none of what was asked."""


class Unavailable(PortError):
    """Not reached, or a server error; nothing was changed."""


class OutcomeUnknown(PortError):
    """The request was sent and may have been applied; observe before deciding again."""


class InvariantViolated(ReconcilerError):
    """A bug of this program; the process must end rather than continue."""
