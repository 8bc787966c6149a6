"""Demand from the series of kube-state-metrics."""

import io
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.model.demand import PodDemand
from reconciler.model.errors import InputError
from reconciler.ports.metrics_history import Sample
from reconciler.records.demand import encode_line, read_demand
from reconciler.records.demand.prometheus import PodHistory, queries

BEGIN = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NAMES = ("created", "seen", "started", "completed", "finished", "owner", "requests", "init",
         "sidecars", "tolerations", "selectors")  # fmt: skip


def told(uid: str, number: float = 1.0, **labels: str) -> Sample:
    """A series of one pod."""
    known = {"namespace": "ci", "pod": f"pod-{uid}", "uid": uid}
    return Sample(labels={**known, **labels}, value=number)


def moment(minutes: float) -> float:
    """So long after the begin, as Prometheus has it."""
    return (BEGIN + timedelta(minutes=minutes)).timestamp()


def step(**answers: Sequence[Sample]) -> dict[str, Sequence[Sample]]:
    """The answers of one step; what is left out has no series."""
    return {name: answers.get(name, ()) for name in NAMES}


def pods(*steps: dict[str, Sequence[Sample]]) -> dict[str, PodDemand]:
    """The pods of so many hours."""
    history = PodHistory("it")
    at = BEGIN
    for answers in steps:
        history.add(answers, at)
        at += HOUR
    lines = list(history.lines(BEGIN, at))
    return {line.id: line for line in lines if isinstance(line, PodDemand)}


def test_names_of_the_answers_are_those_of_the_queries() -> None:
    """An answer that nothing asks for is a rule that no test holds."""
    assert set(queries("", HOUR)) == set(NAMES)


def test_matchers_reach_every_query() -> None:
    """A server that keeps many clusters would mix their pods."""
    for expression in queries('cluster="prod"', HOUR).values():
        assert 'cluster="prod"' in expression
        assert "[3600s" in expression


def test_labels_that_the_server_replaced_are_the_pods_own() -> None:
    """Without `honor_labels` each pod was one of kube-state-metrics' own, with one container."""
    own = {"namespace": "monitoring", "pod": "ksm", "exported_namespace": "shop"}
    found = pods(
        step(
            created=[told("a", moment(5), **own, exported_pod="web")],
            owner=[
                told("a", 1.0, **own, exported_pod="web", owner_kind="ReplicaSet", owner_name="w")
            ],
            requests=[
                told("a", amount, **own, container="ksm", exported_container=name, resource="cpu")
                for name, amount in (("x", 1), ("y", 2))
            ],
        )
    )
    assert found["a"].namespace == "shop"
    assert found["a"].spec.requests["cpu"] == 3000


def test_pod_of_a_job_ran_as_long_as_it_did() -> None:
    """A replay would hold its node without an end, or not at all."""
    found = pods(
        step(
            created=[told("a", moment(5))],
            seen=[told("a", moment(50))],
            started=[told("a", moment(6))],
            completed=[told("a", moment(36))],
            owner=[told("a", owner_kind="Job", owner_name="build")],
            requests=[
                told("a", 0.5, container="x", resource="cpu"),
                told("a", 1.5, container="y", resource="cpu"),
                told("a", 2**30, container="x", resource="memory"),
                told("a", 9, container="x", resource="hugepages_2Mi"),
            ],
            init=[told("a", 4, container="i", resource="cpu")],
        )
    )
    pod = found["a"]
    assert (pod.ran_seconds, pod.until) == (1800.0, None)
    assert pod.at == BEGIN + timedelta(minutes=5)
    assert pod.controller is not None
    assert (pod.controller.kind, pod.controller.name) == ("Job", "build")
    assert pod.spec.requests == {"cpu": 4000, "memory": 2**30, "pods": 1}


@pytest.mark.parametrize(
    ("kind", "finished", "ends"),
    [
        ("ReplicaSet", (0.0, 0.0), False),
        ("StatefulSet", (), False),
        ("Job", (0.0, 0.0), False),
        ("Job", (0.0, 1.0), True),
        ("Job", (), True),
        ("ReplicaSet", (1.0, 1.0), True),
    ],
)
def test_container_that_has_ended_is_not_the_end_of_its_pod(
    kind: str, finished: tuple[float, ...], ends: bool
) -> None:
    """A replica that crashed once ran for two hours of a week, and cost as much."""
    hours = [
        step(
            created=[told("a", moment(-60))],
            seen=[told("a", moment(60 * hour))],
            completed=[told("a", moment(10))] if hour == 1 else [],
            finished=[told("a", finished[hour - 1])] if finished else [],
            owner=[told("a", owner_kind=kind, owner_name="x")],
        )
        for hour in (1, 2)
    ]
    pod = pods(*hours)["a"]
    assert (pod.ran_seconds, pod.until) == (600.0 if ends else None, None)


def test_sidecars_count_beside_containers_and_beside_init_containers() -> None:
    """A mesh's proxy of each pod was counted as if it stopped before the pod ran."""
    cpu = {"resource": "cpu"}
    found = pods(
        step(
            created=[told("runs", moment(1)), told("starts", moment(1))],
            requests=[told(uid, 2, container="app", **cpu) for uid in ("runs", "starts")],
            init=[
                told("runs", 1, container="proxy", **cpu),
                told("starts", 1, container="proxy", **cpu),
                told("starts", 4, container="migrate", **cpu),
            ],
            sidecars=[told(uid, container="proxy") for uid in ("runs", "starts")],
        )
    )
    assert {uid: pod.spec.requests["cpu"] for uid, pod in found.items()} == {
        "runs": 3000,
        "starts": 5000,
    }


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        ("nvidia_com_gpu", "nvidia.com/gpu"),
        ("nvidia_com_mig_1g_5gb", "nvidia.com/mig-1g.5gb"),
        ("nvidia_com_mig_1g_10gb_me", "nvidia.com/mig-1g.10gb.me"),
        ("vpc_amazonaws_com_efa", "vpc.amazonaws.com/efa"),
        ("aws_amazon_com_neuroncore", "aws.amazon.com/neuroncore"),
        ("example_com_fpga", None),
    ],
)
def test_devices_are_asked_for_by_their_names(metric: str, name: str | None) -> None:
    """A pod for a part of a GPU was put on any node with a CPU."""
    device = told("a", 2, container="x", resource=metric)
    found = pods(step(created=[told("a", moment(1))], requests=[device]))
    assert found["a"].spec.requests == ({name: 2, "pods": 1} if name else {"pods": 1})


def test_time_that_the_server_has_forgotten_is_known() -> None:
    """Of a month, two weeks are kept: the others had its services, and none of its Jobs."""
    kept = step(created=[told("old", moment(-9_999)), told("new", moment(121))])
    ours = step(created=[told("new", moment(121)), told("newer", moment(130))])
    for steps, since in (
        ([step(), step(), kept, ours], BEGIN + 2 * HOUR),
        ([step(), step(), ours, kept], None),
        ([kept, step()], BEGIN),
        ([step()], None),
    ):
        history = PodHistory("it")
        for number, answers in enumerate(steps):
            history.add(answers, BEGIN + number * HOUR)
        assert history.forgotten_until == since


def test_pod_that_is_reported_no_more_was_deleted_and_one_that_is_runs_on() -> None:
    """Services would pile up, each version beside the one before."""
    found = pods(
        step(created=[told("gone", moment(0)), told("here", moment(1))],
             seen=[told("gone", moment(40)), told("here", moment(60))]),
        step(created=[told("here", moment(1))], seen=[told("here", moment(120))]),
    )  # fmt: skip
    assert found["gone"].until == BEGIN + timedelta(minutes=40)
    assert (found["here"].until, found["here"].ran_seconds) == (None, None)


@pytest.mark.parametrize("kind", ["DaemonSet", "Node"])
def test_pods_that_come_with_nodes_are_no_demand(kind: str) -> None:
    """Each node would ask for another node."""
    owner = told("d", owner_kind=kind, owner_name="x")
    assert pods(step(created=[told("d", moment(1))], owner=[owner])) == {}


def test_node_selectors_and_tolerations_are_kept() -> None:
    """Pods would be planned for another sector's fleets."""
    found = pods(
        step(
            created=[told("a", moment(1))],
            selectors=[
                told("a", nodeselector_sector="batch",
                     nodeselector_topology_kubernetes_io_zone="us-east-1a"),
            ],
            tolerations=[
                told("a", key="team", operator="Equal", value="ml", effect="NoSchedule"),
                told("a", key="spot", operator="Exists"),
            ],
        )
    )  # fmt: skip
    spec = found["a"].spec
    assert spec.node_selector == {"sector": "batch", "topology.kubernetes.io/zone": "us-east-1a"}
    assert [(t.key, t.operator, t.value) for t in spec.tolerations] == [
        ("spot", "Exists", ""),
        ("team", "Equal", "ml"),
    ]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 1e300])
def test_nonsense_is_passed_over(value: float) -> None:
    """One broken series would end a recording of days."""
    more: Any = [] if value == 1e300 else [told("a", value, container="x", resource="cpu")]
    found = pods(
        step(
            created=[told("a", moment(1)), told("b", value)],
            started=[told("a", value)],
            completed=[told("a", value)],
            requests=more,
        )
    )
    assert list(found) == ["a"]
    assert found["a"].spec.requests == {"pods": 1}


def test_more_pods_than_are_read_are_refused_with_a_way_out() -> None:
    """A server with years of a fleet of clusters would fill the memory."""
    history = PodHistory("http://prometheus", pods_max=1)
    with pytest.raises(InputError, match="record fewer days"):
        history.add(step(created=[told("a", moment(1)), told("b", moment(1))]), BEGIN)


def test_pods_from_before_the_begin_count_from_it_on() -> None:
    """One pod that is a year old would make a week's recording a year long."""
    found = pods(
        step(
            created=[
                told("service", moment(-500_000)),
                told("job", moment(-90)),
                told("ended", moment(-90)),
            ],
            seen=[told(uid, moment(60)) for uid in ("service", "job", "ended")],
            started=[told("job", moment(-80)), told("ended", moment(-80))],
            completed=[told("job", moment(30)), told("ended", moment(-1))],
        )
    )
    assert {uid: (pod.at, pod.ran_seconds) for uid, pod in found.items()} == {
        "service": (BEGIN, None),
        "job": (BEGIN, 1800.0),
    }


def test_what_a_tenant_can_write_never_makes_a_recording_unreadable() -> None:
    """One pod would spoil the days of all others."""
    history = PodHistory("it")
    history.add(
        step(
            created=[told(uid, moment(1)) for uid in ("sum", "owner", "rules", "web")]
            + [told("future", moment(5_000_000))],
            started=[told("owner", 1.0)],
            completed=[told("owner", moment(2))],
            owner=[told("owner", owner_kind="Job" * 1_000, owner_name="x" * 1_000)],
            requests=[
                told("sum", 1e300, container="x", resource="cpu"),
                told("sum", 2**63, container="x", resource="memory"),
                told("sum", 2**63, container="y", resource="memory"),
            ],
            tolerations=[told("rules", key=f"k{n}", operator="Exists") for n in range(200)],
        ),
        BEGIN,
    )
    body = b"".join(map(encode_line, history.lines(BEGIN, BEGIN + HOUR)))
    read = read_demand(io.BytesIO(body), "it")
    assert {line.id for line in read.lines if isinstance(line, PodDemand)} == {
        "sum", "owner", "web",
    }  # fmt: skip


def test_last_step_of_less_than_a_second_asks_for_a_second() -> None:
    """Prometheus refuses a range of nothing."""
    assert "[1s]" in queries("", timedelta(milliseconds=120))["created"]
