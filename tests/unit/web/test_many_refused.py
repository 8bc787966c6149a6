"""What thousands of pods that none of a hundred fleets can take cost whoever shows the plan."""

import json
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import orjson
import pytest

from reconciler.loops.reporters.log_reporter import LogReporter
from reconciler.loops.workloads import pending_by_workload
from reconciler.model.cluster import Owner
from reconciler.model.ids import Region
from reconciler.model.plan import Plan
from reconciler.model.snapshot import ClusterState, Snapshot
from reconciler.model.unplaceable import Reason, Unplaceable
from reconciler.records.plan import encode_plan, encoded_parts, plan_to_json
from reconciler.web.encoded_plan import KEPT_BYTES_MAX, EncodedPlan
from reconciler.web.status import LISTED_MAX, plan_summary, unplaceable_by_code
from tests.builders import HOME, NOW, make_pod
from tests.unit.web.scene import COST, Scene

MIB = 1 << 20
PODS, FLEETS = 2_000, 99
"""Pod by pod these are 24 MiB of JSON, and 100 MiB of values."""
REASONS = tuple(
    Reason(
        fleet=f"fleet-{number}",
        region=HOME if number else Region("eu-central-1"),
        code="insufficient-cpu" if number % 2 else "node-selector",
        detail=f"no node of fleet-{number} has what the pod asks for",
    )
    for number in range(FLEETS)
)


def refused(pods: int) -> tuple[Snapshot, Plan]:
    """As many pods of one shape, each with a controller of its own."""
    made = [make_pod(f"p{n}", owner=Owner(kind="ReplicaSet", name=f"of-{n}")) for n in range(pods)]
    unplaceable = tuple([Unplaceable(pod=pod.key, reasons=REASONS) for pod in made])
    plan = Plan(at=NOW, cluster="c", home_region=HOME, cost=COST, unplaceable=unplaceable)
    return Snapshot(at=NOW, cluster=ClusterState(pods=tuple(made))), plan


@dataclass(slots=True)
class Memory:
    """How many bytes a block took: at most, and for good."""

    most: int = 0
    kept: int = 0


@contextmanager
def measured() -> Iterator[Memory]:
    """Measure a block."""
    found = Memory()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield found
        kept, most = tracemalloc.get_traced_memory()
        found.most, found.kept = most - before, kept - before
    finally:
        tracemalloc.stop()


def test_plan_in_parts_is_the_same_json() -> None:
    """Whoever reads `/api/plan` or `reconciler plan --output json` has one contract."""
    _, plan = refused(20)
    options = orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    assert encode_plan(plan) == orjson.dumps(plan_to_json(plan), option=options)
    assert json.loads(encode_plan(plan)) == json.loads(encode_plan(plan, indent=True))


@pytest.mark.parametrize(
    ("show", "mib"),
    [
        pytest.param(lambda _, plan: plan_summary(plan), 1, id="status"),
        pytest.param(lambda _, plan: plan_to_json(plan), 2, id="plan"),
        pytest.param(lambda _, plan: sum(map(len, encoded_parts(plan))), 2, id="parts"),
        pytest.param(lambda _, plan: EncodedPlan().whole(plan), 12, id="served"),
        pytest.param(pending_by_workload, 4, id="workloads"),
        pytest.param(
            lambda snapshot, plan: LogReporter(float, float).plan_made(snapshot, plan), 2, id="log"
        ),
    ],
)
def test_what_pods_share_is_built_once(show: Callable[[Snapshot, Plan], object], mib: int) -> None:
    """40,000 pods of one tenant took 2 GiB to show the first 200 of them, until the OOM kill."""
    snapshot, plan = refused(PODS)
    with measured() as memory:
        made = show(snapshot, plan)
    assert memory.most < mib * MIB, (memory.most / MIB, type(made))


def test_reasons_of_every_pod_are_counted() -> None:
    """They are looked at once for all pods that share them, and yet count for each."""
    _, plan = refused(PODS)
    assert unplaceable_by_code(plan) == {"insufficient-cpu": PODS, "node-selector": PODS}
    found = plan_summary(plan)
    assert (len(found["unplaceable"]), found["pods_unplaceable"]) == (LISTED_MAX, PODS)


def test_long_plan_is_served_in_full_and_not_kept() -> None:
    """The whole plan of a large cluster is hundreds of MiB: it goes out as it is encoded."""
    _, plan = refused(PODS)
    with measured() as memory:
        body = EncodedPlan().whole(plan)
    assert len(body) > KEPT_BYTES_MAX
    assert memory.kept < MIB
    with Scene() as scene:
        scene.cycle(unplaceable=plan.unplaceable)
        status, headers, text = scene.ask("/api/plan")
        assert (status, int(headers["Content-Length"])) == (200, len(text.encode()))
        assert len(json.loads(text)["unplaceable"]) == PODS
        status, _, _ = scene.ask("/api/plan", If_None_Match=headers["ETag"])
        assert status == 304
