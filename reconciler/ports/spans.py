"""Where traces of cycles go."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias

Attributes: TypeAlias = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanEvent:
    """Something that happened during a span; it has no exact time."""

    name: str
    attributes: Attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A piece of work with its parts."""

    name: str
    start: datetime
    end: datetime
    attributes: Attributes = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    error: str = ""
    """Why it failed; empty when it did not."""
    parts: tuple["Span", ...] = ()


class Spans(Protocol):
    """Accepts spans; it never waits, and loses what it cannot send."""

    def send(self, span: Span) -> None:
        """Send a span with all of its parts."""
        ...
