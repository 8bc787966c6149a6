"""Recorded lines put together: what a beginning of a recording no longer lists has ended."""

import io
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from reconciler.model.cluster import Owner
from reconciler.model.demand import (
    BudgetDemand,
    ClaimDemand,
    ControllerDemand,
    DemandLine,
    PodDemand,
    PodEnd,
)
from reconciler.model.errors import InputError
from reconciler.records.demand import (
    encode_line,
    folded,
    read_demand,
    recorded_from,
    recorded_until,
    with_bounds,
)
from tests.builders import make_spec, selecting

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SPEC = make_spec("1")
AGENT = ControllerDemand(at=AT, controller=Owner(kind="DaemonSet", name="agent"), spec=SPEC)
CLAIM = ClaimDemand(at=AT, id="data", zone="us-west-2a")
BUDGET = BudgetDemand(at=AT, id="web", selector=selecting(app="web"), min_available=1)


def pod(name: str, after: float = 0.0) -> PodDemand:
    """A pod without an end, created so many hours after noon."""
    return PodDemand(at=AT + after * HOUR, id=name, spec=SPEC)


def ends(lines: Iterable[DemandLine]) -> dict[str, tuple[datetime | None, float | None]]:
    """When each pod is deleted, and how long it runs."""
    found = folded(lines).lines
    return {p.id: (p.until, p.ran_seconds) for p in found if isinstance(p, PodDemand)}


def deleted(lines: Iterable[DemandLine]) -> list[tuple[str, datetime]]:
    """What is deleted besides pods, and when."""
    return [
        (line.controller.name if isinstance(line, ControllerDemand) else line.id, line.at)
        for line in folded(lines).lines
        if isinstance(line, BudgetDemand | ClaimDemand | ControllerDemand) and line.deleted
    ]


def test_pod_that_ended_while_nobody_recorded_ends_when_the_next_recording_begins() -> None:
    """One that ended during a change of the leader cost as much as a node for a week."""
    first: list[DemandLine] = [recorded_from(AT), pod("gone", -1), pod("stays"), pod("late", 0.5)]
    second: list[DemandLine] = [recorded_from(AT + HOUR), pod("stays"), pod("new", 0.9)]
    third: list[DemandLine] = [
        recorded_from(AT + 24 * HOUR),
        pod("stays"),
        recorded_until(AT + 30 * HOUR),
    ]
    found = ends([*first, *second, *third])
    assert found == {
        "gone": (AT + HOUR, None),
        "stays": (None, None),
        "late": (AT + HOUR, None),
        "new": (AT + 24 * HOUR, None),
    }
    assert ends([*third, *first, *second]) == found, "files are put together in any order"


def test_leader_that_leads_again_goes_on_with_its_recording() -> None:
    """Pods that were created after another one's recording began ended at their creation."""
    first: list[DemandLine] = [
        recorded_from(AT),
        pod("old"),
        pod("new", 2),
        replace(BUDGET, at=AT + 2 * HOUR),
    ]
    other: list[DemandLine] = [recorded_from(AT + HOUR), pod("old")]
    assert ends([*first, *other]) == {"old": (None, None), "new": (None, None)}
    assert deleted([*first, *other]) == []
    last: list[DemandLine] = [recorded_from(AT + 3 * HOUR), pod("old")]
    assert ends([*first, *other, *last])["new"] == (AT + 3 * HOUR, None)
    assert deleted([*first, *other, *last]) == [("web", AT + 3 * HOUR)]


def test_recorded_end_counts_before_the_beginning_that_no_longer_lists_the_pod() -> None:
    """The loop knew how long the Job ran; the beginning knows only that it is gone."""
    known: list[DemandLine] = [
        pod("job"),
        PodEnd(at=AT + HOUR / 2, id="job", ran_seconds=60.0),
        pod("deleted"),
        PodEnd(at=AT + HOUR / 2, id="deleted"),
        replace(pod("own"), ran_seconds=9.0),
    ]
    found = ends([recorded_from(AT), *known, recorded_from(AT + HOUR)])
    assert found == {"job": (None, 60.0), "deleted": (AT + HOUR / 2, None), "own": (None, 9.0)}


def test_daemon_set_budget_and_claim_that_are_listed_no_longer_are_deleted() -> None:
    """A budget of last week held every node of this week's replay."""
    first: list[DemandLine] = [recorded_from(AT), CLAIM, AGENT, BUDGET]
    second: list[DemandLine] = [
        recorded_from(AT + HOUR),
        replace(CLAIM, at=AT + HOUR),
        replace(BUDGET, at=AT + HOUR),
    ]
    third: list[DemandLine] = [recorded_from(AT + 2 * HOUR), replace(AGENT, at=AT + 2 * HOUR)]
    lines: list[DemandLine] = [*first, *second, *third, recorded_from(AT + 3 * HOUR)]
    assert deleted(lines) == [
        ("agent", AT + HOUR),
        ("data", AT + 2 * HOUR),
        ("web", AT + 2 * HOUR),
        ("agent", AT + 3 * HOUR),
    ]
    written = b"".join(map(encode_line, with_bounds(folded(lines).lines, AT, AT + 3 * HOUR)))
    assert len(read_demand(io.BytesIO(written), "merged").lines) == len(folded(lines).lines)


def test_object_that_comes_back_after_a_beginning_without_it_was_deleted_until_then() -> None:
    """Its pods ran on every node, and its budget held them, for the hours in between."""
    back = AT + 2.5 * HOUR
    lines: list[DemandLine] = [
        *(recorded_from(AT), AGENT, BUDGET),
        recorded_from(AT + 2 * HOUR),
        *(replace(AGENT, at=back), replace(BUDGET, at=back)),
        *(recorded_from(AT + 4 * HOUR), replace(AGENT, at=AT + 4 * HOUR)),
    ]
    assert deleted(lines) == [
        ("agent", AT + 2 * HOUR),
        ("web", AT + 2 * HOUR),
        ("web", AT + 4 * HOUR),
    ]


def test_deletion_that_was_recorded_is_reported_once() -> None:
    """The recording's own line says when it was."""
    gone = AT + HOUR / 2
    own: list[DemandLine] = [
        replace(AGENT, at=gone, spec=None, deleted=True),
        replace(BUDGET, at=gone, deleted=True),
    ]
    lines: list[DemandLine] = [recorded_from(AT), AGENT, BUDGET, *own, recorded_from(AT + HOUR)]
    assert deleted(lines) == [("agent", gone), ("web", gone)]


def test_lines_before_a_recording_are_not_ended_by_it() -> None:
    """A Deployment, a pod or a budget that was added by hand would end at the recording's start."""
    web = ControllerDemand(at=AT, controller=Owner(kind="Deployment", name="w"), replicas=2)
    lines: list[DemandLine] = [pod("own"), AGENT, BUDGET, recorded_from(AT), web,
                               recorded_from(AT + HOUR)]  # fmt: skip
    assert ends(lines) == {"own": (None, None)}
    assert deleted(lines) == []


def test_pod_that_is_listed_again_counts_from_the_latest_of_its_times() -> None:
    """A new leader knows of no gate: a Job that Kueue held for hours counted from its creation."""
    lines: list[DemandLine] = [
        recorded_from(AT),
        pod("train", 5),
        recorded_from(AT + 6 * HOUR),
        pod("train", -1),
    ]
    (found,) = folded(lines).lines
    assert found.at == AT + 5 * HOUR


def test_pod_with_an_earlier_end_of_its_own_is_not_put_after_it() -> None:
    """A line that was corrected by hand would end before it begins."""
    corrected = replace(pod("job"), until=AT + HOUR)
    (found,) = folded([pod("job", 5), corrected]).lines
    assert found == corrected


@pytest.mark.parametrize("hours", [0, 12])
def test_demand_begins_when_its_recording_did(hours: int) -> None:
    """The quiet morning of a day was left out, and with it what the minimum cost."""
    lines: list[DemandLine] = [
        recorded_from(AT),
        pod("first", hours),
        recorded_until(AT + 24 * HOUR),
    ]
    found = folded(lines)
    assert (found.begin, found.end) == (AT, AT + 24 * HOUR)
    written = b"".join(map(encode_line, with_bounds(found.lines, found.recorded_from, found.end)))
    again = read_demand(io.BytesIO(written), "merged")
    assert (again.begin, again.end) == (AT, AT + 24 * HOUR)


def test_order_of_lines_in_the_file_says_nothing_about_pods_of_one_moment() -> None:
    """A file whose lines were shuffled cost 6 % more: which pod came first decided who ran where.

    A claim whose line came after its pod's was no longer in its zone.
    """
    pods = [pod("job-2"), pod("job-10"), pod("job-1", 1), pod("job-3", 1)]
    lines: list[DemandLine] = [*pods, AGENT, CLAIM]
    expected = [AGENT, CLAIM, *pods]
    assert [list(folded(each).lines) for each in (lines, [*lines[3::-1], AGENT, CLAIM])] == [
        expected, expected,
    ]  # fmt: skip


def test_one_id_in_two_namespaces_is_refused() -> None:
    """Two pods called `web` were simulated as one, and the report said nothing of it."""
    here, there = (replace(pod("web"), namespace=name) for name in ("a", "b"))
    with pytest.raises(InputError, match="in two namespaces, a and b"):
        folded([here, there])
