"""What a snapshot shows of each notice of the interruption queue: done, or still to be done.

A message is deleted only when a snapshot that was taken after it came shows that it was dealt
with. Until then it is held, and if this process dies it comes again.
"""

from datetime import datetime
from typing import Final

from reconciler.model.cluster import Node
from reconciler.model.fleet import Instance
from reconciler.model.notices import Notice, NoticeOutcome, NoticeResult
from reconciler.model.snapshot import CloudState, Snapshot
from reconciler.planner.fleets.interruptions import OVER_AFTER, read_notice
from reconciler.planner.fleets.inventory import drain_reasons

STAYING: Final = frozenset({"pending", "running"})
"""States of an instance after which nothing is to be done."""


def notice_outcomes(snapshot: Snapshot) -> tuple[NoticeOutcome, ...]:
    """Return what became of each notice of the snapshot, in its order."""
    if not snapshot.notices:
        return ()
    cloud = snapshot.cloud
    instances = {each.id: each for each in cloud.instances} if cloud is not None else {}
    nodes = {each.instance_id: each for each in snapshot.cluster.nodes}
    known = _knows_all_instances(cloud)
    outcomes: list[NoticeOutcome] = []
    for notice in snapshot.notices:
        if notice.at is None:
            result: NoticeResult = "unreadable"
        elif notice.instance not in instances:
            late = snapshot.at - notice.at > OVER_AFTER
            result = "not-ours" if known else "expired" if late else "waiting"
        else:
            result = _of_ours(notice, snapshot.at, instances[notice.instance])
        if result == "waiting" and _is_acted_on(notice, nodes.get(notice.instance)):
            result = "acted"
        outcomes.append(NoticeOutcome(notice=notice, result=result))
    return tuple(outcomes)


def _of_ours(notice: Notice, at: datetime, instance: Instance) -> NoticeResult:
    assert notice.at is not None, "unreadable notices name no instance"
    if instance.gone:
        return "instance-gone"
    if notice.kind == "state-change" and notice.action in STAYING:
        return "no-change"
    if notice.kind in {"rebalance", "scheduled-change", "lifecycle-action"}:
        return "ignored"
    return "expired" if at - notice.at > OVER_AFTER else "waiting"


def _knows_all_instances(cloud: CloudState | None) -> bool:
    """Whether an instance that is not shown is none of ours."""
    return cloud is not None and cloud.instances_known and not cloud.silent


def _is_acted_on(notice: Notice, node: Node | None) -> bool:
    """Whether the node says of itself what the message says, or that it goes earlier."""
    if node is None or notice.at is None or notice.kind != "spot-interruption":
        return False
    known = read_notice(node)
    marked = "interruption" in drain_reasons(node)
    return known is not None and known.deadline <= notice.at and marked
