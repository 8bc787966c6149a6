"""Plans are made in groups of pods: what that must never change."""

from dataclasses import replace

from reconciler.model.cluster import PodSpec
from reconciler.model.frozen import FrozenMap
from reconciler.model.placements import Destination, Dispatch, Placements
from reconciler.model.plan import Placement
from reconciler.planner.planner import plan
from reconciler.records.plan import encode_plan
from tests.builders import make_fleet_settings, make_pods, make_settings, make_snapshot

SETTINGS = make_settings(make_fleet_settings())


def copied(spec: PodSpec) -> PodSpec:
    """An equal spec that is another object down to its requests."""
    return replace(spec, requests=FrozenMap(dict(spec.requests)))


def test_equal_pods_that_share_no_objects_give_the_same_plan() -> None:
    """Pods listed before and after a restart of the cache would be planned differently."""
    shared = make_pods(30)
    apart = tuple(replace(pod, spec=copied(pod.spec)) for pod in shared)
    first, second = plan(make_snapshot(*shared), SETTINGS), plan(make_snapshot(*apart), SETTINGS)
    assert encode_plan(first) == encode_plan(second)


def test_pods_listed_backwards_give_the_same_plan() -> None:
    """A watch delivers pods in any order; plans would flap with it."""
    pods = (*make_pods(12, "a"), *make_pods(12, "b", cpu="1"))
    forth, back = plan(make_snapshot(*pods), SETTINGS), plan(make_snapshot(*pods[::-1]), SETTINGS)
    assert encode_plan(forth) == encode_plan(back)


def test_pod_that_changes_is_grouped_anew() -> None:
    """A pod that has finished or was gated would be served as if it still waited."""
    (pod,) = make_pods(1)
    for changed in (replace(pod, phase="Succeeded"), replace(pod, gated=True)):
        assert changed.traits is not pod.traits
        assert not plan(make_snapshot(changed), SETTINGS).placements


def test_placements_read_like_a_tuple_in_name_order() -> None:
    """Whoever reads a plan would see other pods than its record says."""
    pods = make_pods(3)
    made = Placements(
        [
            Dispatch(
                pods=pods[1:],
                destinations=[Destination(fleet="f", new_node=0)],
                amounts=[2],
            )
        ],
        [Placement(pod=pods[0].key, fleet="f", new_node=1)],
    )
    expected = tuple(
        Placement(pod=pod.key, fleet="f", new_node=number)
        for pod, number in zip(pods, (1, 0, 0), strict=True)
    )
    assert (len(made), tuple(made), made[0], made[1:]) == (3, expected, expected[0], expected[1:])
    assert (hash(made), repr(made)) == (hash(expected), repr(expected))
    assert [made] == [expected]
    assert made == Placements((), expected)
    assert made != Placements((), expected[1:])
    assert Placements() == ()
