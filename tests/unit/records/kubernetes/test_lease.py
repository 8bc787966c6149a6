"""Our Lease: what survives a restart, read back."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconciler.model.cluster import Taint
from reconciler.model.frozen import FrozenMap
from reconciler.model.ids import FleetId, InstanceId, Region
from reconciler.model.saved_state import (
    InterruptedPool,
    LostFleet,
    ProtectedInstance,
    SavedDemandState,
    SavedFleetState,
    SavedRaise,
)
from reconciler.model.snapshot import ClusterState
from reconciler.records.kubernetes import decode_cluster, encode_fleet_state, split_documents
from tests.unit.records.kubernetes.kube import decode, object_json

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)


def lease(**annotations: str) -> dict[str, Any]:
    """Our Lease."""
    found = {key.replace("_", "-"): value for key, value in annotations.items()}
    return object_json(
        "Lease",
        "fleet-reconciler",
        api="coordination.k8s.io/v1",
        metadata={
            "namespace": "ops",
            "annotations": {f"fleet-reconciler.io/{key}": value for key, value in found.items()},
        },
    )


def test_lease_gives_back_what_was_remembered() -> None:
    """A restart would forget which fleets have no capacity, and ask them again."""
    fleet_states = (
        SavedFleetState(
            fleet="primary-small",
            region=Region("us-west-2"),
            unavailable_until=AT,
            failures=2,
            last_error_at=AT,
            stuck_in_a_row=1,
            stuck_because="node a was never Ready",
            learned=FrozenMap({"cpu": 3920, "memory": 28 * 1024**3, "pods": 58}),
            learned_version="fedcba9876543210",
            unseen_since=AT,
            node_labels=FrozenMap({"team": "ml"}),
            node_taints=(Taint(key="dedicated", value="ml", effect="NoSchedule"),),
            node_template="0123456789abcdef",
            nodes_gone_since=AT,
        ),
    )
    state = decode(
        lease(
            last_drain="2026-01-31T12:00:00Z",
            last_descheduled="2026-01-31T12:00:00Z",
            fleet_state=encode_fleet_state(fleet_states),
        )
    )
    assert (state.last_drain_at, state.last_descheduled_at) == (AT, AT)
    assert state.fleet_states == fleet_states


def test_any_amount_that_a_node_may_state_is_remembered() -> None:
    """One node of 8 PiB made the whole state unreadable: every fleet would be asked again."""
    huge = SavedFleetState(
        fleet="primary-small",
        region=Region("us-west-2"),
        learned=FrozenMap({"memory": 2**53, "nvidia.com/gpu": 2**63 - 1}),
    )
    state = decode(lease(fleet_state=encode_fleet_state([huge])))
    assert state.fleet_states == (huge,)


DEMAND = SavedDemandState(
    demand="0123456789abcdef",
    fleet="primary-small",
    region=Region("us-west-2"),
    bought_at=AT,
    version="fedcba9876543210",
    strikes=2,
    judged_at=AT,
    gone_at=AT,
)
LOST = LostFleet(id=FleetId("fleet-1"), region=Region("us-west-2"), since=AT)


def test_lease_gives_back_demand_and_lost_fleets() -> None:
    """A restart would begin a runaway afresh, or the wait for orphans."""
    saved = SavedFleetState(
        fleet="primary-small",
        region=Region("us-west-2"),
        reason="InsufficientInstanceCapacity",
        failure="denied",
        below_target_since=AT,
        silent_since=AT,
        last_stuck_launched_at=AT,
    )
    state = decode(lease(fleet_state=encode_fleet_state([saved], [DEMAND], [LOST])))
    assert state.fleet_states == (saved,)
    assert state.demands == (DEMAND,)
    assert state.lost_fleets == (LOST,)


def test_lease_gives_back_which_version_is_watched() -> None:
    """After each restart a proven version would be on trial again, and be halted by any restart."""
    saved = SavedFleetState(
        fleet="a",
        region=Region("us-west-2"),
        canary_version="17",
        canary_since=AT,
        canary_seen_at=AT,
        canary_proven=True,
    )
    text = encode_fleet_state([saved])
    assert decode(lease(fleet_state=text)).fleet_states == (saved,)
    newer = text.replace('"canary_version"', '"canary_of_later":{"x":[1]},"canary_version"')
    assert decode(lease(fleet_state=newer)).fleet_states == (saved,), "of a newer version"
    begun = replace(saved, canary_since=None, canary_seen_at=None, canary_proven=False)
    assert decode(lease(fleet_state=encode_fleet_state([begun]))).fleet_states == (begun,)


def test_lease_gives_back_how_far_targets_were_raised() -> None:
    """The next leader would raise them as far again within the same hour."""
    raised = SavedRaise(
        at=AT, nodes=7, nano_usd_per_hour=7 * 10**8, nodes_before=3, nano_usd_before=3 * 10**8
    )
    assert decode(lease(fleet_state=encode_fleet_state([], raises=[raised]))).raises == (raised,)


POOL = InterruptedPool(instance_type="r5.xlarge", zone="us-west-2a", at=AT)


def test_lease_gives_back_where_spot_instances_were_taken_back() -> None:
    """The next leader would buy from the pool that EC2 has just emptied."""
    text = encode_fleet_state([], interrupted_pools=[POOL])
    assert decode(lease(fleet_state=text)).interrupted_pools == (POOL,)
    assert "interrupted_pools" not in encode_fleet_state([])


def test_of_many_interrupted_pools_the_latest_are_kept() -> None:
    """The Lease would grow with every type and zone that a storm touches."""
    pools = [
        replace(POOL, instance_type=f"m{n}.large", at=AT + timedelta(seconds=n))
        for n in range(1000)
    ]
    text = encode_fleet_state([], interrupted_pools=pools)
    kept = decode(lease(fleet_state=text)).interrupted_pools
    assert set(kept) == set(pools[-200:])


PROTECTED = ProtectedInstance(instance=InstanceId("i-1"), at=AT)


def test_lease_gives_back_which_instances_ec2_refused_to_end() -> None:
    """The next leader would ask for each of them once more."""
    text = encode_fleet_state([], protected_instances=[PROTECTED])
    assert decode(lease(fleet_state=text)).protected_instances == (PROTECTED,)
    assert "protected_instances" not in encode_fleet_state([])


def test_of_many_protected_instances_the_latest_are_kept() -> None:
    """A launch template that protects every instance would fill the Lease."""
    known = [
        replace(PROTECTED, instance=InstanceId(f"i-{n:05}"), at=AT + timedelta(seconds=n))
        for n in range(1000)
    ]
    kept = decode(lease(fleet_state=encode_fleet_state([], protected_instances=known)))
    assert kept.protected_instances == tuple(known[-200:])


@pytest.mark.parametrize(
    "decided",
    [
        {"halted_version": "17", "halted_because": "pod web/api-1 was restarted 3 times"},
        {"resumed_version": "17"},
        {"spot_return_at": AT},
    ],
    ids=lambda decided: next(iter(decided)),
)
def test_of_many_fleets_those_are_kept_whose_updates_were_decided_upon(
    decided: dict[str, Any],
) -> None:
    """The next leader would go on with a rolling update that broke pods."""
    west = Region("us-west-2")
    short = [
        SavedFleetState(fleet=f"group-{n:03}", region=west, unavailable_until=AT)
        for n in range(499)
    ]
    told = SavedFleetState(fleet="apps-small", region=west, **decided)
    kept = decode(lease(fleet_state=encode_fleet_state([*short, told]))).fleet_states
    assert told in kept
    assert len(kept) == 300


def test_state_is_written_the_same_whatever_its_order() -> None:
    """The Lease would be written with every cycle."""
    other = replace(DEMAND, demand="a")
    assert encode_fleet_state([], [DEMAND, other]) == encode_fleet_state([], [other, DEMAND])


def test_state_of_a_large_cluster_fits_into_an_annotation() -> None:
    """The API server refuses the whole object over 256 KiB, and nothing would be kept at all."""
    region = Region("ap-southeast-2")
    fleets = [
        SavedFleetState(
            fleet=f"a-sector-with-a-long-name-{n:05}-xlarge",
            region=region,
            reason="allLaunchSpecsTemporarilyBlacklisted",
            failures=3,
            unavailable_until=AT + timedelta(seconds=n),
            last_error_at=AT,
            below_target_since=AT,
            silent_since=AT,
            last_stuck_launched_at=AT,
            learned=FrozenMap(dict.fromkeys(("cpu", "ephemeral-storage", "memory", "pods"), 2**40)),
            learned_version=f"{n:016x}",
            unseen_since=AT,
            node_labels=FrozenMap(
                {f"example.com/a-label-of-nodes-{k}": "x" * 63 for k in range(9)}
            ),
            node_taints=(Taint(key="dedicated", value=f"{n}", effect="NoSchedule"),),
            node_template=f"{n:016x}",
            nodes_gone_since=AT,
        )
        for n in range(5000)
    ]
    demands = [replace(DEMAND, demand=f"{n:016x}", strikes=n % 3) for n in range(5000)]
    lost = [replace(LOST, id=FleetId(f"fleet-{n:036x}")) for n in range(5000)]
    text = encode_fleet_state(fleets, demands, lost)
    assert len(text) < 212 * 1024
    state = decode(lease(fleet_state=text))
    assert max(f.fleet for f in state.fleet_states) == fleets[-1].fleet
    assert 0 < sum(bool(f.node_labels) for f in state.fleet_states) < len(state.fleet_states)
    assert {d.strikes for d in state.demands} == {2}


def test_labels_of_nodes_that_are_gone_are_kept_before_those_that_nodes_show() -> None:
    """After a restart a group without nodes would be taken for one without labels and taints."""
    shown = SavedFleetState(
        fleet="z",
        region=Region("us-west-2"),
        node_labels=FrozenMap({f"example.com/label-{k}": "x" * 63 for k in range(9)}),
    )
    gone = replace(shown, fleet="a", nodes_gone_since=AT)
    several = [replace(shown, fleet=f"z-{n}") for n in range(100)]
    state = decode(lease(fleet_state=encode_fleet_state([gone, *several])))
    kept = [fleet_state.fleet for fleet_state in state.fleet_states if fleet_state.node_labels]
    assert 1 < len(kept) < 100
    assert kept[0] == "a"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"fleets":[{"fleet":1}]}',
        '{"fleets":5}',
        '{"fleets":[],"version":2}',
        '{"fleets":[],"version":"1"}',
        '{"demands":[{"demand":"a"}]}',
        '{"fleets":[{"fleet":"a","region":"b","failures":-1}]}',
        '{"interrupted_pools":[{"instance_type":"a","zone":"b","at":"soon"}]}',
        '{"interrupted_pools":[{"instance_type":"","zone":"b","at":"2026-01-31T12:00:00Z"}]}',
        '{"interrupted_pools":{"a":"b"}}',
        '{"protected_instances":[{"instance":"i-1","at":"soon"}]}',
        '{"protected_instances":[{"at":"2026-01-31T12:00:00Z"}]}',
        "[" * 100_000,
        " " * 300_000 + "{}",
    ],
)
def test_lease_annotation_edited_by_hand_is_reported_and_forgotten(text: str) -> None:
    """A typing error in an annotation must not stand in the way of every cycle."""
    state = decode(lease(last_drain="soon", last_descheduled="never", fleet_state=text))
    assert (state.last_drain_at, state.fleet_states, state.demands) == (None, (), ())
    assert state.last_descheduled_at is None
    assert [each.kind for each in state.ignored] == ["Lease"]


def fleet_that_fails(number: int) -> SavedFleetState:
    """A fleet whose new launch template cannot be launched, with texts as long as they get."""
    why = "You are not authorized to use launch template".ljust(160, ".")
    return SavedFleetState(
        fleet=f"analytics-{number:03}-xlarge-us-west-2a",
        region=Region("us-west-2"),
        failures=3,
        failure="launch-fails",
        reason=why,
        unavailable_until=AT + timedelta(seconds=number),
        last_error_at=AT,
        below_target_since=AT,
        stuck_in_a_row=3,
        stuck_because=why,
        last_stuck_launched_at=AT,
        learned=FrozenMap({"cpu": 7910, "ephemeral-storage": 10**10, "memory": 2**35, "pods": 58}),
        learned_version=f"{number:016x}",
        canary_version="17",
        canary_seen_at=AT,
        halted_version="17",
        halted_because=why,
    )


def test_state_of_hundreds_of_fleets_that_all_fail_fits_on_the_lease() -> None:
    """The API server takes 256 KiB of annotations; of more, nothing was saved at all."""
    text = encode_fleet_state(map(fleet_that_fails, range(300)))
    assert len(text) <= 161 * 1024
    found = decode(lease(fleet_state=text)).fleet_states
    assert len(found) > 250
    assert found[-1].fleet.startswith("analytics-299"), "the latest cool-offs are kept"
    assert encode_fleet_state(found) == text, "it would be written again in each cycle"


def test_state_of_before_versions_is_read() -> None:
    """An upgrade would forget every cool-off at once."""
    text = '{"fleets":[{"fleet":"a","region":"us-west-2","failures":2}]}'
    (saved,) = decode(lease(fleet_state=text)).fleet_states
    assert (saved.fleet, saved.failures) == ("a", 2)


def test_leases_of_others_are_nothing_to_us() -> None:
    """Every node renews one."""
    other = object_json("Lease", "ip-10-0-0-7", api="coordination.k8s.io/v1")
    assert decode(other).ignored == ()


def lease_in(namespace: str, failures: int) -> dict[str, Any]:
    """A Lease with a state, in a namespace."""
    saved = SavedFleetState(fleet="a", region=Region("r"), failures=failures)
    found = lease(fleet_state=encode_fleet_state([saved]))
    found["metadata"]["namespace"] = namespace
    return found


def decoded(*leases: dict[str, Any], namespace: str) -> ClusterState:
    """A cluster's files with these Leases, planned for an install in `namespace`."""
    body = json.dumps({"kind": "List", "apiVersion": "v1", "items": list(leases)}).encode()
    return decode_cluster(split_documents(body, "f"), lease_namespace=namespace)


def test_one_lease_in_files_counts_wherever_it_is() -> None:
    """Files of an install elsewhere are planned without naming its namespace."""
    state = decoded(lease_in("old", 3), namespace="ops")
    assert [fleet_state.failures for fleet_state in state.fleet_states] == [3]
    assert state.ignored == ()


@pytest.mark.parametrize("order", [("old", "ops"), ("ops", "old")])
def test_of_several_leases_only_that_of_the_install_counts(order: tuple[str, str]) -> None:
    """Anybody may make one in a namespace of his own, and say that no fleet is available."""
    leases = [lease_in(each, 1 if each == "ops" else 9) for each in order]
    state = decoded(*leases, namespace="ops")
    assert [fleet_state.failures for fleet_state in state.fleet_states] == [1]
    assert [(each.code, each.kind, each.count) for each in state.ignored] == [
        ("unused-kind", "Lease", 1)
    ]


def test_of_several_leases_none_counts_when_none_is_of_the_install() -> None:
    """Which of them is meant cannot be known."""
    state = decoded(lease_in("one", 1), lease_in("two", 2), namespace="ops")
    assert state.fleet_states == ()
    assert [each.count for each in state.ignored] == [2]
