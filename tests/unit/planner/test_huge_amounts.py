"""Amounts up to what a Kubernetes quantity holds are compared as the whole numbers they are."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reconciler.model.quantity import exact_amount, resource_amount
from reconciler.planner.explain.explain import explain
from reconciler.planner.placement.dimensions import AMOUNT_MAX
from reconciler.planner.placement.filters.resources import WHOLE, charged
from reconciler.planner.planner import plan
from tests.builders import (
    amounts,
    make_fleet_settings,
    make_node,
    make_pod,
    make_pods,
    make_settings,
    make_snapshot,
)

QUANTITY_MAX = 2**63 - 1
AMOUNTS = st.one_of(
    st.integers(0, QUANTITY_MAX),
    st.sampled_from([2**40, AMOUNT_MAX, 2**53, 10**18, 2**62, QUANTITY_MAX - 2]).flatmap(
        lambda amount: st.integers(amount - 2, amount + 2)
    ),
)
SMALL = make_fleet_settings()
FULL = make_settings(make_fleet_settings(max_capacity=0))


def is_taken(asked: int, *, node: int, running: tuple[int, ...] = ()) -> bool:
    """Whether a node with so much memory takes a pod that asks for so much, beside others."""
    large = make_node("large", SMALL, allocatable=amounts(cpu=100, memory=node, pods=50_000))
    pods = [make_pod(f"r-{n}", node="large", memory=m) for n, m in enumerate(running)]
    waiting = make_pod("waiting", memory=asked)
    made = plan(make_snapshot(large, *pods, waiting), FULL)
    return "waiting" not in {u.pod.name for u in made.unplaceable}


@settings(max_examples=80, deadline=None)
@given(asked=AMOUNTS, node=AMOUNTS)
@example(asked=2 * 10**18, node=10**18)
@example(asked=10**18 + 1, node=10**18)
@example(asked=AMOUNT_MAX + 1, node=AMOUNT_MAX)
@example(asked=AMOUNT_MAX, node=QUANTITY_MAX)
def test_node_takes_a_pod_only_when_it_offers_as_much(asked: int, node: int) -> None:
    """Both were cut to the same limit, so a pod of 2e18 bytes fitted a node of 1e18."""
    assert is_taken(asked, node=node) == (asked <= min(node, AMOUNT_MAX))


@settings(max_examples=60, deadline=None)
@given(asked=AMOUNTS, node=AMOUNTS, running=st.tuples(AMOUNTS, AMOUNTS))
def test_node_takes_a_pod_only_beside_what_runs_there(
    asked: int, node: int, running: tuple[int, int]
) -> None:
    """Pods that run on a node may have been bound to it without kube-scheduler."""
    fits = asked == 0 or sum(running) + asked <= node
    taken = is_taken(asked, node=node, running=running)
    assert taken <= fits, "never more than the node offers"
    if node <= AMOUNT_MAX:
        assert taken == fits


@pytest.mark.parametrize("count", [2**14, 2**16])
@pytest.mark.parametrize("priority", [0, -10])
def test_no_number_of_running_pods_makes_a_full_node_look_empty(count: int, priority: int) -> None:
    """2^15 pods of 256 TiB each, bound to one node by their `nodeName`, leave 64 bits."""
    small = make_pod("small", memory="1Gi")
    running = make_pods(count, node="large", memory="1Ei", priority=priority)
    large = make_node("large", SMALL, allocatable=amounts(cpu=10**6, memory="1Ei", pods=10**6))
    made = plan(make_snapshot(large, *running, small), FULL)
    assert [u.pod.name for u in made.unplaceable] == ["small"]


@given(
    asked=st.integers(1, AMOUNT_MAX), offer=st.integers(1, AMOUNT_MAX), over=st.integers(1, 100_000)
)
@example(asked=2**47, offer=AMOUNT_MAX, over=100_000)
def test_over_subscription_inflates_as_whole_numbers_do(asked: int, offer: int, over: int) -> None:
    """At the highest over-subscription large requests left 64 bits, and were not inflated."""
    requests, offers = np.array([0, asked]), np.array([[0, offer]])
    found = charged(requests, offers, np.array([over]))[0, 1]
    inflated = -(-asked * (WHOLE + over) // WHOLE)
    assert found == max(min(inflated, offer), asked)


@pytest.mark.parametrize(
    ("asked", "offered", "detail"),
    [
        ("2e18", "1e18", "requests 2000000000000000000, a new node offers 1000000000000000000"),
        ("2e18", "28Gi", "requests 2000000000000000000, a new node offers 28Gi"),
        ("7Ei", "28Gi", "requests 7Ei, a new node offers 28Gi"),
        (
            "1Pi",
            "1Ei",
            "requests 1Pi, a new node offers 1Ei, of which only 256Ti can be planned with",
        ),
        ("30064771073", "28Gi", "requests 30064771073, a new node offers 28Gi"),
    ],
)
def test_refusal_names_the_figures_that_were_stated(asked: str, offered: str, detail: str) -> None:
    """An operator would read an amount that is written nowhere, or the same amount twice."""
    fleet = make_fleet_settings(allocatable=amounts(cpu=4, memory=offered, pods=58))
    snapshot, chosen = make_snapshot(make_pod(memory=asked)), make_settings(fleet)
    made = plan(snapshot, chosen)
    ((found,),) = (pod.reasons for pod in made.unplaceable)
    assert (found.code, found.detail) == ("insufficient-memory", detail)
    assert made.actions == ()
    (told,) = explain(snapshot, chosen, made, pods=["ns/pod"]).pods
    assert told.verdict == "unplaceable"


@given(resource=st.sampled_from(["cpu", "memory", "pods", "hugepages-2Mi"]), amount=AMOUNTS)
def test_exact_amount_is_read_back_as_it_was(resource: str, amount: int) -> None:
    """`format_amount` divides as fractions, which are inexact from 2^53 on."""
    text = exact_amount(resource, amount)
    assert resource_amount(resource, text) == amount
