"""Options that take several values at once: `--cluster a.json b.json --aws c.json`."""

from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand

SEVERAL = frozenset({"--cluster", "--aws", "--programs"})


class SeveralFiles(TyperCommand):
    """Repeats such an option before each further value, since the parser needs one per value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the spread-out arguments."""
        return super().parse_args(ctx, spread(args))


def spread(args: Sequence[str]) -> list[str]:
    """Turn `--aws a b -o json` into `--aws a --aws b -o json`; a lone `-` is a value."""
    result: list[str] = []
    current = ""
    values = 0
    for arg in args:
        if arg.startswith("-") and arg != "-":
            name = arg.split("=", 1)[0]
            current = name if name in SEVERAL else ""
            values = 1 if current and "=" in arg else 0
        elif current:
            if values:
                result.append(current)
            values += 1
        result.append(arg)
    return result
