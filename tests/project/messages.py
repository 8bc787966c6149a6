"""The messages of the errors that the program raises, as their fixed words, from its source."""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from reconciler.model import errors

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "reconciler"
DOCS = ROOT / "docs"
OURS = "reconciler"
HOLE = "…"
"""Stands for what a message says of this one case: a name, a number, the words of others."""
IN_TESTS_ALONE = ("adapters/memory",)
"""The world in memory: what it refuses is met by tests and simulations only."""
LETTERS_ALONE = 4
"""Of the only word of a message that can be looked up, at least."""
DEEPEST = 4
ALTERNATIVES_MAX = 3
"""Of a part of a message; beyond, it is a hole."""
OF_OBJECTS = ("records/", "model/quantity", "node_watch/announcements")
"""Where a ValueError says why an object, a line or an answer cannot be read."""
WHY_UNREADABLE = {"ValueError", "MalformedError"}
CLASSES = {
    name
    for name, each in inspect.getmembers(errors, inspect.isclass)
    if issubclass(each, errors.ReconcilerError) and each is not errors.ConfigError
}


@dataclass(frozen=True)
class Raised:
    """An error that is made somewhere in the source."""

    place: str
    messages: frozenset[str]


class Reading:
    """Reads the texts that an expression of one module can be."""

    def __init__(self, tree: ast.Module) -> None:
        self._constants = _assigned(tree.body)
        self._functions = {
            each.name: each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef)
        }
        self._imported = {
            each.asname or each.name: (statement.module, each.name)
            for statement in tree.body
            if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith(OURS)
            for each in statement.names
        }

    def texts(  # noqa: C901, PLR0911, PLR0912 - one case for each form of an expression
        self, node: ast.AST | None, scope: Mapping[str, list[ast.AST]], depth: int = 0
    ) -> set[str]:
        """Every text that the expression may be, with holes for what is not fixed."""
        if depth > DEEPEST:
            return {HOLE}
        match node:
            case ast.Constant(value=str(text)):
                return {text}
            case ast.JoinedStr(values=parts):
                return self._joined(parts, scope, depth)
            case ast.FormattedValue(value=ast.Name() as name, conversion=-1, format_spec=None):
                found = self.texts(name, scope, depth + 1)
                return found if len(found) <= ALTERNATIVES_MAX else {HOLE}
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return self._joined([left, right], scope, depth)
            case ast.IfExp(body=one, orelse=other):
                return self.texts(one, scope, depth) | self.texts(other, scope, depth)
            case ast.BoolOp(values=values):
                return {text for each in values for text in self.texts(each, scope, depth)}
            case ast.Subscript(value=value, slice=ast.Slice()):
                return self.texts(value, scope, depth)
            case ast.Name(id=name) if name in self._imported:
                module, original = self._imported[name]
                return _reading(module).texts(ast.Name(original), {}, depth + 1)
            case ast.Name(id=name):
                known = scope.get(name) or self._constants.get(name)
                if not known:
                    return {HOLE}
                return {text for each in known for text in self.texts(each, scope, depth + 1)}
            case ast.Call(func=ast.Name(id=name)) if name in self._imported:
                module, original = self._imported[name]
                called = ast.Call(func=ast.Name(original), args=[], keywords=[])
                return _reading(module).texts(called, {}, depth + 1)
            case ast.Call(func=ast.Name(id=name)) if name in self._functions:
                return self._returned(self._functions[name], depth)
        return {HOLE}

    def _joined(
        self, parts: list[ast.expr], scope: Mapping[str, list[ast.AST]], depth: int
    ) -> set[str]:
        made = {""}
        for part in parts:
            made = {before + text for before in made for text in self.texts(part, scope, depth)}
        return made

    def _returned(self, function: ast.FunctionDef, depth: int) -> set[str]:
        """What a function of the same module may return."""
        scope = _assigned(function.body)
        return {
            text
            for each in ast.walk(function)
            if isinstance(each, ast.Return) and each.value is not None
            for text in self.texts(each.value, scope, depth + 1)
        }


@cache
def _reading(module: str | None) -> Reading:
    """Another module of the program."""
    path = PACKAGE.parent / Path(*str(module).split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return Reading(ast.parse(file.read_text(encoding="utf-8")))


@cache
def raised() -> tuple[Raised, ...]:
    """Every error that the program makes."""
    found: list[Raised] = []
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE).as_posix()
        if not place.startswith(IN_TESTS_ALONE):
            found += _raised_in(place, ast.parse(file.read_text(encoding="utf-8")))
    return tuple(found)


def is_own(message: str) -> bool:
    """Whether a message has words to look it up by; one without is another program's."""
    words = re.findall(r"[A-Za-z]{2,}", message)
    return len(words) > 1 or any(len(word) >= LETTERS_ALONE for word in words)


def plain(message: str) -> str:
    """On one line, with one hole where several meet."""
    return re.sub(rf"(?:{HOLE}\s*)*{HOLE}", HOLE, " ".join(message.split()))


def written(under: str = "") -> set[str]:
    """Every text in the source below a folder, as a message would have it."""
    reading = Reading(ast.Module(body=[], type_ignores=[]))
    return {
        plain(text)
        for file in (PACKAGE / under).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant | ast.JoinedStr)
        for text in reading.texts(node, {})
    }


def _raised_in(place: str, tree: ast.Module) -> Iterator[Raised]:
    reading = Reading(tree)
    inside = {node: outer for outer in _outermost(tree) for node in ast.walk(outer)}
    for call in (each for each in ast.walk(tree) if isinstance(each, ast.Call)):
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        what = 1 if name in CLASSES else 0
        if len(call.args) <= what or not (what or _is_why_unreadable(name, place)):
            continue
        outer = inside.get(call)
        texts = reading.texts(call.args[what], {} if outer is None else _assigned(outer.body))
        yield Raised(f"{place}:{call.lineno}", frozenset(map(plain, texts)))


def _is_why_unreadable(name: str, place: str) -> bool:
    return name in WHY_UNREADABLE and place.startswith(OF_OBJECTS)


def _outermost(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """The functions and methods of a module, not those inside of others."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.FunctionDef):
            yield child
        elif not isinstance(child, ast.AsyncFunctionDef):
            yield from _outermost(child)


def _assigned(body: list[ast.stmt]) -> dict[str, list[ast.AST]]:
    """What the names of a body are set to."""
    found: dict[str, list[ast.AST]] = {}
    for each in (node for statement in body for node in ast.walk(statement)):
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found.setdefault(name, []).append(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                found.setdefault(name, []).append(value)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                found.setdefault(name, []).append(value)
            case _:
                pass
    return found
