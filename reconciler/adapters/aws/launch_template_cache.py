"""Caches the launch templates whose version fleets and groups name by a word, such as `$Latest`.

EC2 refuses the answer about all when it does not know one of them.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from reconciler.adapters.aws.paging import chunks
from reconciler.model.errors import (
    NotFound,
    OutcomeUnknown,
    PortError,
    Throttled,
    Unavailable,
    name_and_text,
)
from reconciler.model.ids import Region
from reconciler.model.text import counted_noun
from reconciler.records.aws import ANSWERED_AT, UNKNOWN_TEMPLATES, Answer

TEMPLATE_NAMES: Final = ("LaunchTemplateId", "LaunchTemplateName")
"""What a fleet may call its launch template by."""
AT_ONCE: Final = 200
"""Templates of one call. Source: EC2 API reference, DescribeLaunchTemplates, `MaxResults`."""
COUNTS_SECONDS: Final = 600.0
"""How long an answer is used while there is no newer one, since nodes that are launched later may
have a newer version. It is dropped earlier when an instance shows a newer version; for this each
answer states when EC2 gave it (`LaunchTemplates.forget_outdated`)."""
UNKNOWN_SECONDS: Final = 60.0
"""How long a template that EC2 did not find is not requested again."""
AGAIN_SECONDS: Final = 2.0
"""The pause after a throttled or unanswered call; it doubles with each one in a row."""
REFUSED_SECONDS: Final = 60.0
"""The pause after a refusal, such as for a missing permission, and the maximum of the above."""

Template = tuple[str, str]
"""One of `TEMPLATE_NAMES`, and the template's name by it."""
Ask = Callable[[str, Sequence[str]], Iterable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class _CachedTemplate:
    at: float
    entry: Mapping[str, Any] | None
    """With `ANSWERED_AT`; None: it does not exist in EC2."""


@dataclass(frozen=True, slots=True)
class _Failure:
    error: PortError
    in_a_row: int
    until: float


class CachedTemplates:
    """Keeps EC2's answers about launch templates, per region; thread-safe.

    Args:
        now: The wall clock.
        monotonic: A clock that never jumps.
    """

    def __init__(
        self, now: Callable[[], datetime], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._now = now
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._known: dict[tuple[Region, Template], _CachedTemplate] = {}
        self._failures: dict[Region, _Failure] = {}

    def read(
        self, region: Region, templates: Iterable[Template], ask: Ask, fresh_seconds: float = 0.0
    ) -> list[Answer]:
        """Return the last answers about the templates, and why there is none about others.

        Args:
            region: The region.
            templates: The templates.
            ask: Reads templates, by one of `TEMPLATE_NAMES`; raises PortErrors.
            fresh_seconds: How old answers may be before EC2 is asked again, for each call that
                this takes.
        """
        wanted = sorted(set(templates))
        calls = [
            (by, some)
            for by in TEMPLATE_NAMES
            for some in chunks([name for each, name in wanted if each == by], AT_ONCE)
        ]
        for by, some in calls:
            asked = self._to_ask(region, by, some, fresh_seconds * len(calls))
            if not asked:
                continue
            try:
                self._ask(region, by, asked, ask)
            except PortError as error:
                self._fail(region, error)
            else:
                with self._lock:
                    self._failures.pop(region, None)
        return [self._answer(region, wanted)] if wanted else []

    def _to_ask(
        self, region: Region, by: str, names: Sequence[str], fresh_seconds: float
    ) -> list[str]:
        """Return the names to ask for in one call: none while all answers are fresh."""
        now = self._monotonic()
        with self._lock:
            failure = self._failures.get(region)
            if failure is not None and now < failure.until:
                return []
            known = {name: self._known.get((region, (by, name))) for name in names}
        left = {
            name: cached_template
            for name, cached_template in known.items()
            if cached_template is None
            or cached_template.entry is not None
            or now - cached_template.at >= UNKNOWN_SECONDS
        }
        due = any(
            cached_template is None or now - cached_template.at >= fresh_seconds
            for cached_template in left.values()
        )
        return list(left) if due else []

    def _ask(self, region: Region, by: str, names: Sequence[str], ask: Ask) -> None:
        """Ask for all at once; when EC2 does not know one of them, for each half by itself."""
        answered_at = self._now()
        try:
            found = {
                str(each.get(by)): {**each, ANSWERED_AT: answered_at} for each in ask(by, names)
            }
        except NotFound:
            if len(names) > 1:
                half = len(names) // 2
                self._ask(region, by, names[:half], ask)
                self._ask(region, by, names[half:], ask)
                return
            found = {}
        now = self._monotonic()
        with self._lock:
            self._known.update(
                {(region, (by, name)): _CachedTemplate(now, found.get(name)) for name in names}
            )

    def _fail(self, region: Region, error: PortError) -> None:
        with self._lock:
            before = self._failures.get(region)
            in_a_row = 0 if before is None else before.in_a_row + 1
            rests = min(AGAIN_SECONDS * 2.0 ** min(in_a_row, 10), REFUSED_SECONDS)
            if not isinstance(error, Throttled | Unavailable | OutcomeUnknown):
                rests = REFUSED_SECONDS
            self._failures[region] = _Failure(error, in_a_row, self._monotonic() + rests)

    def _answer(self, region: Region, wanted: Sequence[Template]) -> Answer:
        now = self._monotonic()
        with self._lock:
            failure = self._failures.get(region)
            old = [
                key
                for key, cached_template in self._known.items()
                if now - cached_template.at > COUNTS_SECONDS
            ]
            for key in old:
                del self._known[key]
            known = [(each, self._known.get((region, each))) for each in wanted]
        entries = [
            cached_template.entry
            for _, cached_template in known
            if cached_template is not None and cached_template.entry is not None
        ]
        gone = [
            name
            for (_, name), cached_template in known
            if cached_template is not None and cached_template.entry is None
        ]
        unknown = [{"Name": name, "Why": "EC2 does not know it"} for name in gone]
        if failure is not None:
            others = f", nor of {counted_noun(len(wanted) - 1, 'other')}" if wanted[1:] else ""
            why = f"its version is unknown{others}: {name_and_text(failure.error)}"
            unknown.append({"Name": wanted[0][1], "Why": why})
        answer: dict[str, Any] = {"LaunchTemplates": entries}
        return {**answer, UNKNOWN_TEMPLATES: unknown} if unknown else answer
