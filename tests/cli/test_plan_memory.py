"""`reconciler plan` honours what the Lease among the files remembers, as the live loop does."""

import json
from typing import Any

from tests.cli.inputs import Desk, Json, fleet, listing, pod

COOLING = {
    "fleets": [
        {
            "fleet": "primary-std",
            "region": "us-west-2",
            "failures": 2,
            "reason": "InsufficientInstanceCapacity",
            "unavailable_until": "2026-01-31T12:05:00Z",
        }
    ],
    "version": 1,
}
AWS = {"Fleets": [fleet("primary-std"), fleet("primary-big")]}


def state(value: Any) -> Json:
    """The Lease with a state."""
    text = value if isinstance(value, str) else json.dumps(value)
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "fleet-reconciler",
            "namespace": "ops",
            "annotations": {"fleet-reconciler.io/fleet-state": text},
        },
    }


def test_cool_off_on_the_lease_sends_demand_elsewhere(desk: Desk) -> None:
    """A plan made from files would promise what the live loop refuses."""
    made = desk.plan_of(pod("web"), aws=AWS)
    assert made["placements"][0]["fleet"] == "primary-std"
    made = desk.plan_of(pod("web"), state(COOLING), aws=AWS)
    assert made["placements"][0]["fleet"] == "primary-big"


def test_of_several_leases_only_that_of_the_install_counts(desk: Desk) -> None:
    """A tenant's Lease in the files would make fleets unavailable in the plan."""
    tenant = state(COOLING)
    tenant["metadata"]["namespace"] = "tenant"
    ours = state({"fleets": [], "version": 1})
    files = ["--cluster", desk.write("cluster.json", listing(pod("web"), tenant, ours))]
    files += ["--aws", desk.write("aws.json", AWS)]
    made = desk.plan(*files, "--lease-namespace", "ops").plan
    assert made["placements"][0]["fleet"] == "primary-std"
    assert [(i["code"], i["kind"], i["count"]) for i in made["ignored"]] == [
        ("unused-kind", "Lease", 1)
    ]
    made = desk.plan(*files, "--lease-namespace", "tenant").plan
    assert made["placements"][0]["fleet"] == "primary-big"


def test_lease_that_cannot_be_read_is_reported_and_changes_nothing(desk: Desk) -> None:
    """An annotation edited by hand would stop every plan."""
    made = desk.plan_of(pod("web"), state("{"), aws=AWS)
    assert made["placements"][0]["fleet"] == "primary-std"
    assert [(i["code"], i["kind"]) for i in made["ignored"]] == [("unreadable", "Lease")]


def test_fleet_that_ec2_leaves_short_is_unavailable_by_its_history(desk: Desk) -> None:
    """Nothing in the answers is an error, and still nothing comes."""
    short = {**fleet("primary-std"), "FulfilledCapacity": 0.0}
    short["TargetCapacitySpecification"] = {"TotalTargetCapacity": 2}
    changed = {
        "EventType": "fleetRequestChange",
        "Timestamp": "2026-01-31T11:40:00Z",
        "EventInformation": {"EventSubType": "modify_succeeded"},
    }
    history = {"FleetId": short["FleetId"], "HistoryRecords": [changed]}
    aws = {"Fleets": [short, fleet("primary-big")], **history}
    made = desk.plan_of(pod("web"), aws=aws)
    assert made["placements"][0]["fleet"] == "primary-big"
