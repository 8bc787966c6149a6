"""Regular expressions over names, as in RE2, matched in time bounded by their lengths.

Python's own engine tries every way in which a name could match, and `(a*)*b` has exponentially
many. Here an expression becomes states, and all reachable ones are followed together from character
to character. What this cannot match (lookahead, lookbehind, references to groups) RE2 does not
support either.
"""

import re

# The parser of `re`, which has no public name; all Pythons since 3.11 have it.
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

STATES_MAX: Final = 5000
"""A limit, as in RE2: a short expression such as `(a{1000}){1000}` has a million states."""
_UNBOUNDED: Final = int(parser.MAXREPEAT)
_CLASS_BY_NAME: Final = re.compile(r"\[:\^?[a-z]+:\]")
"""RE2 supports `[[:digit:]]`, which Python reads as a set of these characters."""
_PART: Final = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])"
    r"|(?P<flags>\(\?[a-zA-Z]*-?[a-zA-Z]*[:)])|(?P<up_to>\{,[0-9]*\})",
    re.DOTALL,
)
"""What Python may read in another way than RE2, or just does not know."""
_ALIKE: Final = re.compile(r"\(\?[ims]*-?[ims]*[:)]")
"""Flags that both have."""
_IN_SET: Final = re.compile(r"\\.|(?P<plain>[\[&~|])", re.DOTALL)
"""Characters that say nothing special in a set, of which Python warns that they may some day."""
_CATEGORIES: Final = {
    "CATEGORY_DIGIT": re.compile(r"\d"),
    "CATEGORY_NOT_DIGIT": re.compile(r"\D"),
    "CATEGORY_SPACE": re.compile(r"\s"),
    "CATEGORY_NOT_SPACE": re.compile(r"\S"),
    "CATEGORY_WORD": re.compile(r"\w"),
    "CATEGORY_NOT_WORD": re.compile(r"\W"),
}
_PLACES: Final = {
    "AT_BEGINNING": re.compile(r"^"),
    "AT_BEGINNING_STRING": re.compile(r"\A"),
    "AT_BOUNDARY": re.compile(r"\b"),
    "AT_NON_BOUNDARY": re.compile(r"\B"),
    "AT_END": re.compile(r"$"),
    "AT_END_STRING": re.compile(r"\Z"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """A state: leads to further states at once, only at certain positions, or by a character."""

    following: tuple[int, ...] = ()
    place: re.Pattern[str] | None = None
    takes: Callable[[str], bool] | None = None


_FOUND: Final = 0
"""The state at the end of the expression."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameExpression:
    """An expression to search names with; see `parse_expression`."""

    states: tuple[_State, ...]
    first: int

    def is_found_in(self, name: str) -> bool:
        """Return whether the expression matches anywhere in a name."""
        reached: set[int] = set()
        for at in range(len(name) + 1):
            reached = self._closed({*reached, self.first}, name, at)
            if _FOUND in reached:
                return True
            steps = (self.states[each] for each in reached)
            if at < len(name):
                taken = [step for step in steps if step.takes and step.takes(name[at])]
                reached = {each for step in taken for each in step.following}
        return False

    def _closed(self, states: Iterable[int], name: str, at: int) -> set[int]:
        """Return these states and all that are reached from them without a character."""
        found, ahead = set[int](), list(states)
        while ahead:
            number = ahead.pop()
            if number in found:
                continue
            state = self.states[number]
            if state.place is None or state.place.match(name, at):
                found.add(number)
                ahead += () if state.takes else state.following
        return found


def parse_expression(text: str) -> NameExpression:
    """Parse an expression of RE2, as far as Python can parse it.

    Raises:
        ValueError: It cannot be parsed, uses what one of them lacks, or repeats too much; the
            message says which.
    """
    by_name = _CLASS_BY_NAME.search(text)
    if by_name is not None:
        raise ValueError(f"{by_name[0]} is not supported")
    try:
        tree = parser.parse(_PART.sub(_as_python_writes_it, text))
        builder = _Builder()
        ignores_case = bool(tree.state.flags & re.IGNORECASE)
        first = builder.sequence(tree, _FOUND, ignores_case=ignores_case)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from error
    return NameExpression(states=tuple(builder.states), first=first)


def _as_python_writes_it(part: re.Match[str]) -> str:
    """Return a part of an expression of RE2 in Python's words.

    Raises:
        ValueError: Only Python has it, or only RE2; or each reads it in another way.
    """
    match part.lastgroup, part[0]:
        case "escape", r"\z":
            return r"\Z"
        case "escape", r"\Z":
            raise ValueError(r"\Z is not supported: the end is $ or \z")
        case "set", text:
            return "[" + _IN_SET.sub(_escaped, text[1:])
        case ("flags", text) if _ALIKE.fullmatch(text) is None:
            raise ValueError(f"{text} is not supported")
        case "up_to", text:
            raise ValueError(f"{text} is not supported: write {{0{text[1:]}")
        case _:
            return part[0]


def _escaped(part: re.Match[str]) -> str:
    return f"\\{part[0]}" if part["plain"] else part[0]


class _Builder:
    """Builds states from the parser's tree, whose node kinds are those of `re._constants`."""

    def __init__(self) -> None:
        self.states = [_State()]

    def _added(self, state: _State) -> int:
        if len(self.states) >= STATES_MAX:
            raise ValueError("it repeats too much")
        self.states.append(state)
        return len(self.states) - 1

    def sequence(self, tree: Iterable[tuple[Any, Any]], then: int, *, ignores_case: bool) -> int:
        """Return the first state of a sequence that is followed by the state `then`."""
        for kind, value in reversed(list(tree)):
            then = self._part(str(kind), value, then, ignores_case=ignores_case)
        return then

    def _part(self, kind: str, value: Any, then: int, *, ignores_case: bool) -> int:
        match kind, value:
            case "AT", place:
                return self._added(_State(following=(then,), place=_PLACES[str(place)]))
            case (("LITERAL" | "NOT_LITERAL" | "ANY" | "IN"), _):
                takes = _character(kind, value, ignores_case=ignores_case)
                return self._added(_State(following=(then,), takes=takes))
            case "BRANCH", (_, branches):
                ways = [self.sequence(b, then, ignores_case=ignores_case) for b in branches]
                return self._added(_State(following=tuple(ways)))
            case "SUBPATTERN", (_, added, removed, body):
                inside = ignores_case or bool(added & re.IGNORECASE)
                inside = inside and not removed & re.IGNORECASE
                return self.sequence(body, then, ignores_case=inside)
            case (("MAX_REPEAT" | "MIN_REPEAT"), (least, most, body)):
                return self._repeat(int(least), int(most), body, then, ignores_case=ignores_case)
            case _:
                raise ValueError(f"{kind.lower().replace('_', ' ')} is not supported")

    def _repeat(self, least: int, most: int, body: Any, then: int, *, ignores_case: bool) -> int:
        """Return the first state of a body that is repeated between `least` and `most` times."""
        entry = then
        if most == _UNBOUNDED:
            entry = self._added(_State())
            again = self.sequence(body, entry, ignores_case=ignores_case)
            self.states[entry] = _State(following=(again, then))
        else:
            for _ in range(most - least):
                once_more = self.sequence(body, entry, ignores_case=ignores_case)
                entry = self._added(_State(following=(once_more, then)))
        for _ in range(least):
            # A body without a state, as in `(){1000000}`, is the same however often it is repeated.
            before, entry = entry, self.sequence(body, entry, ignores_case=ignores_case)
            if entry == before:
                break
        return entry


def _character(kind: str, value: Any, *, ignores_case: bool) -> Callable[[str], bool]:
    """Return the test of one character."""
    members = value if kind == "IN" else [(kind, value)]
    negated = kind == "NOT_LITERAL" or any(str(each) == "NEGATE" for each, _ in members)

    def takes(character: str) -> bool:
        forms = {character, character.lower(), character.upper()} if ignores_case else {character}
        found = any(_is_member(str(each), of, form) for each, of in members for form in forms)
        return found != negated

    return takes


def _is_member(kind: str, value: Any, character: str) -> bool:
    match kind:
        case "LITERAL" | "NOT_LITERAL":
            return character == chr(int(value))
        case "RANGE":
            first, last = value
            return ord(character[0]) in range(int(first), int(last) + 1)
        case "CATEGORY":
            return _CATEGORIES[str(value)].match(character) is not None
        case "ANY":
            return character != "\n"
        case _:
            return False
