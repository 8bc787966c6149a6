"""What a plan is made from, and how it is shown when a law is broken."""

from dataclasses import fields, is_dataclass
from typing import Any

from reconciler.model.snapshot import Snapshot
from reconciler.planner.settings import PlannerSettings


class Case:
    """What a plan is made from; shown without the fields that have their defaults."""

    def __init__(self, snapshot: Snapshot, settings: PlannerSettings) -> None:
        self.snapshot = snapshot
        self.settings = settings

    def __repr__(self) -> str:
        return f"Case(\n{_shown(self.settings)}\n{_shown(self.snapshot)})"


def _shown(value: Any, indent: int = 0) -> str:
    """A value of the model in few lines."""
    if isinstance(value, tuple) and value and is_dataclass(value[0]):
        pad = "\n" + "  " * (indent + 1)
        return pad + pad.join(_shown(each, indent + 1) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return repr(value).removeprefix("FrozenMap")
    kept = [
        f"{f.name}={_shown(getattr(value, f.name), indent)}"
        for f in fields(value)
        if getattr(value, f.name) != f.default and getattr(value, f.name) not in ((), None)
    ]
    return f"{type(value).__name__}({', '.join(kept)})"
