"""Reads the Dockerfile as far as its tests need it."""

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(slots=True)
class Stage:
    """One FROM and what follows it."""

    image: str
    name: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def of(self, word: str) -> list[str]:
        """The arguments of every instruction of a kind."""
        return [arguments for found, arguments in self.instructions if found == word]


def stages(text: str) -> list[Stage]:
    """The stages in order; continued lines are joined, defaults of arguments are filled in."""
    lines = (line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    found: list[Stage] = []
    defaults: dict[str, str] = {}
    for line in joined.splitlines():
        word, _, arguments = line.strip().partition(" ")
        if word == "ARG" and not found:
            name, _, default = arguments.partition("=")
            defaults[name.strip()] = default.strip()
        elif word == "FROM":
            image, _, name = arguments.partition(" AS ")
            image = re.sub(r"\$\{(\w+)\}", lambda match: defaults[match[1]], image)
            found.append(Stage(image.strip(), name.strip()))
        else:
            found[-1].instructions.append((word, arguments.strip()))
    return found


def ours() -> list[Stage]:
    """The stages of this project's Dockerfile."""
    return stages((ROOT / "Dockerfile").read_text())
