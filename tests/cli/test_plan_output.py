"""What `reconciler plan` prints: the contract's JSON, the same bytes for the same inputs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.inputs import (
    ALL_FLEETS,
    CONFIG,
    NOW,
    Desk,
    Json,
    fleet,
    fleets,
    instances,
    listing,
    node,
    pod,
)
from tests.cli.plan_schema import PLAN

DRAINING = {"key": "fleet-reconciler.io/draining", "value": "scale-in", "effect": "NoSchedule"}
IN_PRIMARY = {"nodeSelector": {"sector": "primary"}}
SINCE = {"fleet-reconciler.io/unneeded-since": "2026-01-31T10:00:00Z"}


def rich_inputs() -> tuple[list[Json], Json]:
    """A cluster in which nearly everything that a plan can say is said."""
    drains = node("drains", fleet="batch-std", annotations=SINCE)
    drains["spec"]["taints"] = [DRAINING]
    objects: list[Json] = [
        node("used", annotations=SINCE),
        node("idle", fleet="batch-std", annotations=SINCE),
        node("fresh", fleet="batch-std"),
        drains,
        pod("runs", node="used", cpu="3"),
        *(pod(f"wants-{i}", cpu="3", spec=IN_PRIMARY) for i in range(5)),
        pod("huge", memory="3000Gi"),
        pod("lost", spec={"nodeSelector": {"sector": "nowhere"}}),
        pod("gated", spec={"schedulingGates": [{"name": "g"}]}),
        pod("system", namespace="kube-system"),
        pod("broken", cpu="much"),
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}},
    ]
    aws = fleets(fleet("primary-std", 2), fleet("primary-big"), fleet("batch-std", 3)) | instances(
        ("used", "primary-std"), *((n, "batch-std") for n in ("idle", "fresh", "drains"))
    )
    return objects, aws


def test_plan_has_exactly_the_fields_of_the_contract(desk: Desk) -> None:
    """Programs that read the plan would break on a field that changed its name or type."""
    objects, aws = rich_inputs()
    made = desk.plan_of(*objects, aws=aws)
    jsonschema.validate(made, PLAN)
    said = {a["action"] for a in made["actions"]}
    assert said >= {"set-capacity", "taint-node", "annotate-node", "terminate-instance"}
    assert all(made[key] for key in ("placements", "unplaceable", "ignored", "fleets"))


@pytest.mark.parametrize("aws", [None, {}, ALL_FLEETS])
def test_plan_of_an_empty_cluster_has_the_same_shape(desk: Desk, aws: Json | None) -> None:
    """The quiet case would be the one that breaks readers."""
    jsonschema.validate(desk.plan_of(aws=aws), PLAN)


def test_keys_are_sorted_and_no_count_is_a_float(desk: Desk) -> None:
    """Diffs of plans would show noise."""
    objects, aws = rich_inputs()
    args = (
        "--cluster",
        desk.write("c.json", listing(*objects)),
        "--aws",
        desk.write("a.json", aws),
    )
    text = desk.plan(*args).out
    assert text.endswith("}\n")

    def check(pairs: list[tuple[str, Any]]) -> None:
        assert [k for k, _ in pairs] == sorted(k for k, _ in pairs)
        money = {"hourly_usd_before", "hourly_usd_after", "hourly_usd_lower_bound", "gap"}
        assert not [k for k, v in pairs if isinstance(v, float) and k not in money]

    json.loads(text, object_pairs_hook=check)


def test_same_inputs_in_any_order_give_the_same_bytes(desk: Desk) -> None:
    """Two runs over one export could not be compared."""
    objects, aws = rich_inputs()
    a = desk.write("a.json", aws)
    forwards = desk.plan("--cluster", desk.write("c.json", listing(*objects)), "--aws", a)
    backwards = desk.plan("--cluster", desk.write("d.json", listing(*objects[::-1])), "--aws", a)
    assert forwards.out == backwards.out


@pytest.mark.parametrize("seed", ["0", "12345"])
def test_program_prints_the_same_bytes_as_this_process(desk: Desk, seed: str) -> None:
    """The command as a user runs it would differ from what is tested here."""
    objects, aws = rich_inputs()
    args = (
        "--cluster",
        desk.write("c.json", listing(*objects)),
        "--aws",
        desk.write("a.json", aws),
    )
    here = desk.plan(*args)
    config = str(Path(desk.folder) / "sectors.yaml")
    done = subprocess.run(
        [sys.executable, "-m", "reconciler", "plan", "--config", config, "--now", NOW, *args],
        capture_output=True,
        text=True,
        env={"PYTHONHASHSEED": seed},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == here.out


def test_clock_is_the_given_one_in_utc(desk: Desk) -> None:
    """A plan made for another time zone's clock would state the wrong moment."""
    cluster = desk.write("c.json", listing())
    config = str(desk.folder / "sectors.yaml")
    made = desk.command(
        "plan", "--config", config, "--cluster", cluster, "--now", "2026-01-31T14:00:00+02:00"
    ).plan
    assert made["at"] == "2026-01-31T12:00:00Z"


def test_placements_in_another_region_name_it(desk: Desk) -> None:
    """Somebody would look for the new node in the wrong region."""
    failed = {
        "FleetId": "fleet-primary-big",
        "HistoryRecords": [
            {
                "EventType": "error",
                "Timestamp": "2026-01-31T11:59:00Z",
                "EventInformation": {"EventSubType": "InsufficientInstanceCapacity"},
            }
        ],
    }
    home = desk.write("home.json", fleets(fleet("primary-big")))
    history = desk.write("history.json", failed)
    away = desk.write("away.json", fleets(fleet("primary-big"), region="us-east-1"))
    cluster = desk.write("c.json", listing(pod("a", cpu="10")))
    made = desk.plan("--cluster", cluster, "--aws", home, history, away).plan
    jsonschema.validate(made, PLAN)
    assert made["placements"] == [
        {
            "namespace": "ns",
            "pod": "a",
            "fleet": "primary-big",
            "new_node": 0,
            "region": "us-east-1",
        }
    ]


def test_exit_code_is_0_with_unplaceable_pods(desk: Desk) -> None:
    """A pipeline would fail because one pod is too large."""
    made = desk.plan_of(pod("huge", memory="3000Gi"))
    assert [u["pod"] for u in made["unplaceable"]] == ["huge"]


def test_table_names_actions_and_what_waits(desk: Desk) -> None:
    """A person at a terminal would see JSON or nothing."""
    cluster = desk.write("c.json", listing(pod("a"), pod("huge", memory="3000Gi")))
    answer = desk.plan("--cluster", cluster, "--output", "table")
    assert answer.code == 0
    assert "primary-std (us-west-2) 0 -> 1" in answer.out
    assert "huge" in answer.out
    assert not answer.out.lstrip().startswith("{")


def test_table_counts_pods_that_name_no_sector(desk: Desk) -> None:
    """Of pods that name no sector "0 unplaceable" alone does not say that they stay pending."""
    desk.write("sectors.yaml", CONFIG.replace("default_sector: primary\n", ""))
    cluster = desk.write("c.json", listing(pod("a")))
    text = desk.plan("--cluster", cluster, "--output", "table").out
    assert "1 pod names no sector and is left alone: the config has no default_sector" in text


def test_table_says_where_pods_will_run_place_by_place(desk: Desk) -> None:
    """A count of pods on new nodes does not say which fleet grows for which pods."""
    objects = [node("used"), pod("fits", spec=IN_PRIMARY)]
    objects += [
        pod(f"batch-{i}", cpu="3", spec={"nodeSelector": {"sector": "batch"}}) for i in "ab"
    ]
    aws = fleets(fleet("primary-std", 1), fleet("batch-std")) | instances(("used", "primary-std"))
    cluster, answers = desk.write("c.json", listing(*objects)), desk.write("a.json", aws)
    text = desk.plan("--cluster", cluster, "--aws", answers, "--output", "table").out
    rows = [line.split() for line in text.partition("RUNS ON")[2].partition("\n\n")[0].splitlines()]
    assert rows[1:] == [
        ["new", "node", "0", "batch-std", "us-west-2", "1", "ns/batch-a"],
        ["new", "node", "1", "batch-std", "us-west-2", "1", "ns/batch-b"],
        ["used", "1", "ns/fits"],
    ]


def test_long_list_of_places_is_cut_and_says_so(desk: Desk) -> None:
    """A thousand nodes would push the plan itself off the screen."""
    in_batch = {"nodeSelector": {"sector": "batch"}}
    pods = (pod(f"alone-{i:02}", cpu="3", spec=in_batch) for i in range(25))
    aws = fleets(fleet("batch-std"))
    cluster, answers = desk.write("c.json", listing(*pods)), desk.write("a.json", aws)
    text = desk.plan("--cluster", cluster, "--aws", answers, "--output", "table").out
    listed = text.partition("RUNS ON")[2].partition("\n\n")[0].splitlines()
    assert len(listed) == 22
    assert listed[-1] == "and 5 more; -o json has all"
