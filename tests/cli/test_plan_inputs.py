"""Every form in which the inputs of `reconciler plan` may come."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.inputs import ALL_FLEETS, Desk, Json, fleet, fleets, instances, listing, node, pod

OBJECTS = (node("n1"), pod("a"), pod("b", node="n1"), pod("c", cpu="3500m"))
FORMS: dict[str, Callable[[tuple[Json, ...]], str]] = {
    "one List": lambda objects: json.dumps(listing(*objects)),
    "indented": lambda objects: json.dumps(listing(*objects), indent=4),
    "objects per line": lambda objects: "\n".join(json.dumps(o) for o in objects),
    "lists per line": lambda objects: "\n".join(json.dumps(listing(o)) for o in objects) + "\n",
    "objects one after the other": lambda objects: "".join(
        json.dumps(o, indent=1) for o in objects
    ),
    "an array": json.dumps,
    "with a byte order mark": lambda objects: "\ufeff" + json.dumps(listing(*objects)),
    "Windows line ends": lambda objects: "\r\n".join(json.dumps(o) for o in objects),
}


@pytest.fixture
def expected(desk: Desk) -> Json:
    """The plan from one plain List."""
    return desk.plan_of(*OBJECTS)


@pytest.mark.parametrize("form", FORMS)
def test_objects_in_any_form_give_the_same_plan(desk: Desk, expected: Json, form: str) -> None:
    """A file that kubectl, jq or a pipe wrote would be refused, or half of it overlooked."""
    assert desk.plan("--cluster", desk.write("in.json", FORMS[form](OBJECTS))).plan == expected


def typed(desk: Desk) -> list[str]:
    """A PodList and a NodeList, whose items name no kind."""
    pods = listing(*(o for o in OBJECTS if o["kind"] == "Pod"), kind="PodList")
    nodes = listing(*(o for o in OBJECTS if o["kind"] == "Node"), kind="NodeList")
    return [desk.write("pods.json", pods), desk.write("nodes.json", nodes)]


def test_typed_lists_without_item_kinds_are_read(desk: Desk, expected: Json) -> None:
    """Answers of the API server itself, as `kubectl get --raw` saves them, would be refused."""
    assert desk.plan("--cluster", *typed(desk)).plan == expected


def test_several_files_after_one_flag_repeated_flags_and_equals_signs_mean_the_same(
    desk: Desk, expected: Json
) -> None:
    """A shell glob after --cluster would be taken for other arguments."""
    one, two = typed(desk)
    assert desk.plan("--cluster", one, "--cluster", two).plan == expected
    assert desk.plan(f"--cluster={one}", f"--cluster={two}").plan == expected
    assert desk.plan("--cluster", two, one, "--output", "json").plan == expected


def test_standard_input_is_read_for_a_dash(desk: Desk, expected: Json) -> None:
    """`kubectl get … | reconciler plan --cluster -` would not work."""
    one, two = typed(desk)
    piped = Path(one).read_bytes()
    assert desk.plan("--cluster", "-", two, stdin=piped).plan == expected


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["--cluster", "-", "--aws", "-"], "--cluster and --aws"),
        (["--config", "-", "--cluster", "-"], "--config and --cluster"),
    ],
)
def test_standard_input_for_two_things_is_refused(
    desk: Desk, arguments: list[str], options: str
) -> None:
    """The second would be told that it is empty, though the pipe was full."""
    answer = desk.plan(*arguments, stdin=b"{}")
    assert answer.code == 2
    assert answer.err.startswith(f"error: {options}: standard input can be read once, and each")


def test_single_object_is_read(desk: Desk) -> None:
    """`kubectl get pod x -o json` would be refused."""
    made = desk.plan("--cluster", desk.write("pod.json", pod("only"))).plan
    assert [p["pod"] for p in made["placements"]] == ["only"]


def test_same_object_or_file_twice_counts_once(desk: Desk, expected: Json) -> None:
    """Overlapping exports would double the demand."""
    file = desk.write("in.json", listing(*OBJECTS, *OBJECTS))
    copy = desk.write("copy.json", listing(*OBJECTS))
    assert desk.plan("--cluster", file, file, copy).plan == expected


def test_empty_lists_are_an_empty_cluster(desk: Desk) -> None:
    """A cluster without pods would be an error."""
    made = desk.plan("--cluster", desk.write("in.json", {"kind": "PodList", "items": None})).plan
    assert (made["actions"], made["placements"], made["ignored"]) == ([], [], [])


def test_unused_kinds_are_counted_not_refused(desk: Desk) -> None:
    """`kubectl get all` could not be used."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "ns"}}
    other = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "ns"}}
    copy = {**service, "metadata": {"name": "s2", "namespace": "ns"}}
    made = desk.plan_of(service, other, copy, *OBJECTS)
    assert made["ignored"] == [
        {"code": "unused-kind", "count": 1, "kind": "Event"},
        {"code": "unused-kind", "count": 2, "kind": "Service"},
    ]


@pytest.mark.parametrize(
    "broken",
    [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "ns"}},
        {**pod("x"), "spec": "none"},
        {**pod("x"), "status": {"phase": 3}},
        pod("x", cpu="a lot"),
        pod("x", memory="-1Gi"),
        pod("x", cpu="NaN"),
        pod("x", memory="1e99999"),
        pod("x", spec={"tolerations": "all"}),
    ],
)
def test_object_that_cannot_be_read_is_skipped_and_listed(desk: Desk, broken: Json) -> None:
    """One bad object would stop the planning of all others."""
    made = desk.plan_of(broken, *OBJECTS)
    listed = [i for i in made["ignored"] if i["code"] == "unreadable"]
    assert [(i["kind"], i["name"]) for i in listed] == [("Pod", "x")]
    assert {p["pod"] for p in made["placements"]} == {"a", "c"}


def test_unreadable_pod_keeps_its_node_from_looking_empty(desk: Desk) -> None:
    """The node of a pod that nobody can read would be ended."""
    idle = node("n1", annotations={"fleet-reconciler.io/unneeded-since": "2026-01-31T10:00:00Z"})
    broken = pod("x", cpu="a lot", node="n1")
    aws = fleets(fleet("primary-std", 1)) | instances(("n1", "primary-std"))
    assert [a["action"] for a in desk.plan_of(idle, aws=aws)["actions"]] == ["taint-node"]
    made = desk.plan_of(idle, broken, aws=aws)
    assert "taint-node" not in [a["action"] for a in made["actions"]]


@pytest.mark.parametrize("field", ["kind", "apiVersion", "metadata", "spec", "status"])
def test_number_too_large_to_read_spoils_one_object_at_most(desk: Desk, field: str) -> None:
    """Five thousand digits in one field would end in Python's own error message."""
    text = json.dumps(listing({**pod("x"), field: 12345}, pod("a")))
    made = desk.plan("--cluster", desk.write("in.json", text.replace("12345", "9" * 5000))).plan
    assert [p["pod"] for p in made["placements"]] == ["a"]
    assert [i["code"] for i in made["ignored"]] == ["unreadable"]


# ---- answers of the AWS CLI ---------------------------------------------------------------


def test_aws_answers_of_several_files_are_merged(desk: Desk) -> None:
    """Each describe call has its own file; only one of them would count."""
    cluster = desk.write("cluster.json", listing(node("n1"), pod("a", cpu="4")))
    merged = {**ALL_FLEETS, **instances(("n1", "primary-std"))}
    one = desk.write("one.json", merged)
    parts = [
        desk.write("fleets.json", ALL_FLEETS),
        desk.write("instances.json", instances(("n1", "primary-std"))),
    ]
    together = desk.plan("--cluster", cluster, "--aws", one).plan
    assert desk.plan("--cluster", cluster, "--aws", *parts).plan == together
    again = [arg for part in (*parts, parts[0]) for arg in ("--aws", part)]
    assert desk.plan("--cluster", cluster, *again).plan == together
    lines = desk.write("lines.json", "\n".join(Path(part).read_text() for part in parts))
    assert desk.plan("--cluster", cluster, "--aws", lines).plan == together


def test_region_of_an_answer_is_the_one_it_states(desk: Desk) -> None:
    """Fleets of the second region would be taken for those at home."""
    home = desk.write("home.json", fleets(fleet("primary-std", 1)))
    away = desk.write("away.json", fleets(fleet("primary-std", 2), region="us-east-1"))
    cluster = desk.write("cluster.json", listing())
    made = desk.plan("--cluster", cluster, "--aws", home, away).plan
    shown = {(f["fleet"], f["region"]): (f["current"], f["state"]) for f in made["fleets"]}
    assert shown["primary-std", "us-west-2"] == (1, "active")
    assert shown["primary-std", "us-east-1"] == (2, "active")


def test_fleet_of_the_config_that_aws_does_not_have_is_missing(desk: Desk) -> None:
    """A fleet that Terraform has yet to make would be planned as if it were there."""
    made = desk.plan_of(pod("a", spec={"nodeSelector": {"sector": "batch"}}), aws=fleets())
    assert {f["state"] for f in made["fleets"] if f["region"] == "us-west-2"} == {"missing"}
    assert made["unplaceable"][0]["reasons"][0]["code"] == "fleet-unavailable"
    assert made["actions"] == []


def test_without_aws_every_fleet_is_active_with_the_nodes_it_shows(desk: Desk) -> None:
    """Planning from kubectl alone would see no capacity."""
    made = desk.plan_of(node("n1"), node("n2", fleet="batch-std"), pod("a", node="n1"))
    shown = {
        f["fleet"]: (f["current"], f["state"]) for f in made["fleets"] if f["region"] == "us-west-2"
    }
    assert shown == {
        "primary-std": (1, "active"),
        "primary-big": (0, "active"),
        "batch-std": (1, "active"),
    }


@pytest.mark.parametrize("aws", [{}, {"Fleets": []}, {"Reservations": []}, {"Fleets": None}])
def test_empty_answers_remove_nothing(desk: Desk, aws: Json) -> None:
    """An empty answer would make nodes look gone or instances stuck."""
    idle = {"fleet-reconciler.io/unneeded-since": "2026-01-31T10:00:00Z"}
    made = desk.plan_of(node("n1", annotations=idle), node("n2"), pod("a", node="n2"), aws=aws)
    assert {a["action"] for a in made["actions"]} <= {"taint-node", "annotate-node"}


def test_entry_of_an_answer_that_cannot_be_read_is_skipped_and_listed(desk: Desk) -> None:
    """One odd fleet would stop everything."""
    broken = fleet("primary-big") | {"TargetCapacitySpecification": {"TotalTargetCapacity": "many"}}
    made = desk.plan_of(pod("a"), aws=fleets(fleet("primary-std"), broken))
    why = "Expected `int`, got `str` - at `$.TargetCapacitySpecification.TotalTargetCapacity`"
    told = {"code": "unreadable", "kind": "Fleet", "name": "fleet-primary-big", "detail": why}
    assert told in made["ignored"]
    assert made["placements"][0]["fleet"] == "primary-std"


def test_fleets_of_other_clusters_are_left_alone(desk: Desk) -> None:
    """Two clusters in one account would scale each other's fleets."""
    foreign = fleet(
        "primary-std",
        5,
        Tags=[{"Key": "cluster", "Value": "x"}, {"Key": "fleet", "Value": "primary-std"}],
    )
    made = desk.plan_of(pod("a"), aws=fleets(foreign, fleet("primary-big")))
    assert [a["id"] for a in made["actions"]] == ["fleet-primary-big"]


@pytest.mark.parametrize(
    "now", ["2026-01-31t12:00:00z", "2026-01-31 12:00:00.000Z", "2026-01-31T13:00+01:00"]
)
def test_time_is_read_in_every_form_of_the_rfc(desk: Desk, now: str) -> None:
    """`date` and other programs write each of them."""
    file = desk.write("cluster.json", listing(node("n1")))
    config = str(desk.folder / "sectors.yaml")
    found = desk.command("plan", "--config", config, "--cluster", file, "--now", now)
    assert found == desk.plan("--cluster", file)
