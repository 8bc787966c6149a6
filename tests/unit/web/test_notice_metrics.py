"""Metrics of interruptions."""

from prometheus_client import CollectorRegistry, generate_latest

from reconciler.model.ids import InstanceId, NodeName
from reconciler.model.notices import MessageId, Notice, NoticeOutcome, NoticeResult
from reconciler.model.plan import InterruptedNode
from reconciler.telemetry import metrics as names
from reconciler.web.notice_metrics import NoticeMetrics


def outcome(message: str, result: NoticeResult) -> NoticeOutcome:
    """What became of a notice of a spot interruption."""
    notice = Notice(
        message=MessageId(message), kind="spot-interruption", instance=InstanceId("i-1")
    )
    return NoticeOutcome(notice=notice, result=result)


def node(name: str, *, empty: bool, seconds: float) -> InterruptedNode:
    """An interrupted node."""
    return InterruptedNode(node=NodeName(name), empty=empty, seconds=seconds)


def test_notices_count_when_their_message_is_done() -> None:
    """Counted while it waits, a notice would be counted with every plan."""
    registry = CollectorRegistry()
    metrics = NoticeMetrics(registry)
    metrics.count([outcome("m-1", "waiting"), outcome("m-2", "acted"), outcome("m-3", "expired")])
    metrics.count([outcome("m-1", "acted")])
    text = generate_latest(registry).decode()
    assert f'{names.NOTICES}{{kind="spot-interruption",result="acted"}} 2.0' in text
    assert f'{names.NOTICES}{{kind="spot-interruption",result="expired"}} 1.0' in text


def test_interrupted_node_is_measured_once_when_it_is_empty() -> None:
    """It stays for a minute or more, empty, and every plan sees it."""
    registry = CollectorRegistry()
    metrics = NoticeMetrics(registry)
    for seconds, empty in ((0, False), (5, False), (8, True), (60, True)):
        metrics.note_interrupted([node("a", empty=empty, seconds=seconds)])
    metrics.note_interrupted([])
    metrics.note_interrupted([node("a", empty=True, seconds=3)])
    text = generate_latest(registry).decode()
    assert f"{names.INTERRUPTION_SECONDS}_count 2.0" in text
    assert f"{names.INTERRUPTION_SECONDS}_sum 11.0" in text
