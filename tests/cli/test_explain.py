"""`reconciler plan --explain` and `--explain-node` as users call them."""

import json
from typing import Any

import pytest

from tests.cli import groups
from tests.cli.inputs import NOW, Desk, Json, listing, node, pod

LARGE = pod("large", memory="300Gi", spec={"nodeSelector": {"size": "big"}})


def cluster(desk: Desk, *objects: Json) -> str:
    """A file with these objects."""
    return desk.write("cluster.json", listing(*objects))


def test_plan_has_no_explanations_unless_asked(desk: Desk) -> None:
    """A key that appears by itself breaks programs that compare plans."""
    made = desk.plan("--cluster", cluster(desk, LARGE)).plan
    assert "explanations" not in made


def test_explained_pod_is_a_key_of_the_plan(desk: Desk) -> None:
    """Tools read the plan and the answer from one document."""
    made = desk.plan("--cluster", cluster(desk, LARGE), "--explain", "ns/large").plan
    (said,) = made["explanations"]["pods"]
    assert (said["namespace"], said["pod"], said["verdict"]) == ("ns", "large", "unplaceable")
    assert said["change"] == ["lower the pod's memory request to 61.5Gi"]
    by_fleet: dict[str, Any] = {f["fleet"]: f for f in said["fleets"]}
    assert by_fleet["primary-big"]["code"] == "insufficient-memory"
    assert by_fleet["primary-std"]["code"] == "node-selector"
    assert made["actions"] == desk.plan("--cluster", cluster(desk, LARGE)).plan["actions"]


def test_change_that_is_named_places_the_pod(desk: Desk) -> None:
    """The advice is only worth something when following it helps."""
    lowered = pod("large", memory="61.5Gi", spec={"nodeSelector": {"size": "big"}})
    assert desk.plan("--cluster", cluster(desk, lowered)).plan["unplaceable"] == []


def test_table_is_the_answer_in_words(desk: Desk) -> None:
    """A person asks one question and gets no plan of a thousand lines (two fleets, two regions)."""
    asked = desk.plan(
        "--cluster", cluster(desk, LARGE), "--explain", "ns/large", "--output", "table"
    )
    assert asked.code == 0
    assert asked.out.startswith("Pod ns/large: unplaceable: none of 4 fleets takes it.\n")
    assert "Smallest change that would place it: lower the pod's memory" in asked.out
    assert "or: add a size to the sector of primary-big" in asked.out


def test_several_questions_are_answered_in_their_order(desk: Desk) -> None:
    """One run, one snapshot: answers of one moment fit together."""
    objects = (node("n1"), pod("runs", node="n1"), LARGE)
    asked = ("--explain", "ns/runs", "--explain", "ns/large", "--explain-node", "n1")
    made = desk.plan("--cluster", cluster(desk, *objects), *asked).plan
    said = made["explanations"]
    assert [p["pod"] for p in said["pods"]] == ["runs", "large"]
    assert [n["node"] for n in said["nodes"]] == ["n1"]
    assert said["nodes"][0]["pods"] == [{"namespace": "ns", "pod": "runs"}]


def test_node_with_pods_is_distinguished_from_one_that_pods_will_move_to(desk: Desk) -> None:
    """`in-use` is the code of a node that pods of nodes that leave come to, and of no other."""
    objects = (node("n1"), pod("runs", node="n1", cpu="3"))
    made = desk.plan("--cluster", cluster(desk, *objects), "--explain-node", "n1").plan
    (said,) = made["explanations"]["nodes"]
    assert (said["verdict"], said["code"]) == ("used", "has-pods")


def test_idle_node_is_explained_with_its_timer(desk: Desk) -> None:
    """Why a node is still here is the commonest question of all."""
    since = {"fleet-reconciler.io/unneeded-since": "2026-01-31T11:58:00Z"}
    idle = node("n1", annotations=since)
    made = desk.plan("--cluster", cluster(desk, idle), "--explain-node", "n1").plan
    (said,) = made["explanations"]["nodes"]
    assert (said["verdict"], said["code"], said["fleet"]) == ("kept", "idle-time", "primary-std")
    assert said["because"] == "empty for 2m, 8m to go"


@pytest.mark.parametrize(
    ("option", "name", "message"),
    [
        ("--explain", "ns/larg", "pod ns/larg: there is no such pod (did you mean ns/large?)"),
        ("--explain", "x", "pod x: there is no such pod (give NAMESPACE/NAME)"),
        ("--explain", "y/x", "pod y/x: there is no such pod (look with kubectl get pods -A)"),
        ("--explain", "ns/", "pod ns/: there is no such pod (did you mean ns/large?)"),
        ("--explain-node", "n2", "node n2: there is no such node (look with kubectl get nodes)"),
    ],
)
def test_unknown_name_is_a_usage_error(desk: Desk, option: str, name: str, message: str) -> None:
    """An empty answer would look like "nothing is wrong"."""
    asked = desk.plan("--cluster", cluster(desk, LARGE), option, name)
    assert (asked.code, asked.out) == (2, "")
    assert asked.err.startswith(f"error: {message}")
    assert asked.err.count("\n") == 1


def test_answers_are_the_same_bytes_every_time(desk: Desk) -> None:
    """An answer that changes from run to run convinces nobody."""
    args = ("--cluster", cluster(desk, LARGE, node("n1")), "--explain", "ns/large")
    assert desk.plan(*args).out == desk.plan(*args).out


def test_explain_pod_and_node_are_the_answers_alone(desk: Desk) -> None:
    """Whoever asks about one pod does not look for it in a plan."""
    file = cluster(desk, node("n1"), pod("runs", node="n1"), LARGE)
    asked = (
        "--config",
        str(desk.folder / "sectors.yaml"),
        "--cluster",
        file,
        "--now",
        "2026-01-31T12:00:00Z",
    )
    said = json.loads(desk.command("explain", "pod", "ns/large", "ns/runs", *asked).out)
    assert [each["verdict"] for each in said["pods"]] == ["unplaceable", "running"]
    assert said["nodes"] == said["fleets"] == []
    said = json.loads(desk.command("explain", "node", "n1", *asked).out)
    assert said["nodes"][0]["node"] == "n1"
    table = desk.command("explain", "pod", "ns/large", *asked, "--output", "table").out
    assert table.startswith("Pod ns/large: unplaceable: none of 4 fleets takes it")


def test_explain_fleet_says_why_it_has_its_size(desk: Desk) -> None:
    """A target that nobody can explain is lowered by hand at 3 a.m."""
    waiting = pod("waits", spec={"nodeSelector": {"size": "std"}})
    file = cluster(desk, waiting, LARGE)
    asked = ("--config", str(desk.folder / "sectors.yaml"), "--cluster", file)
    done = desk.command("explain", "fleet", "primary-std", *asked)
    said = json.loads(done.out)["fleets"]
    assert [each["fleet"] for each in said] == ["primary-std", "primary-std"]
    grows = said[0]
    assert (grows["verdict"], grows["target"], grows["pods"]) == ("grows", 1, 1)
    assert grows["because"] == "1 pending pod needs 1 more node"
    assert grows["refused"] == {"node-selector": 1}
    assert said[1]["verdict"] == "stays"
    table = desk.command("explain", "fleet", "primary-std", *asked, "--output", "table").out
    assert "Fleet primary-std in " in table


def test_fleet_that_is_not_there_is_one_line(desk: Desk) -> None:
    """With the nearest name, as for pods and nodes."""
    asked = ("--config", str(desk.folder / "sectors.yaml"), "--cluster", cluster(desk))
    done = desk.command("explain", "fleet", "primary-sdt", *asked)
    assert done.code == 2
    assert "fleet primary-sdt: the config has no such fleet (did you mean primary-std?)" in done.err


FLEETLESS = "sectors: {primary: {kind: memory, fleets: []}}\n"
NO_FLEET = "sector primary has no fleets: name one under sectors.primary.fleets"
FAR = "sectors: {primary: {kind: cpu, fleets: [{size: small, regions: [us-east-1]}]}}\n"


@pytest.mark.parametrize(
    ("sectors", "answer", "detail"),
    [
        (FLEETLESS, "Fleets", NO_FLEET),
        ("", "AutoScalingGroups", "no Auto Scaling group carries the tags of cluster analytics"),
        (FAR, "Fleets", "AWS was not asked about the region of primary-small"),
    ],
)
def test_pod_that_no_fleet_could_be_asked_about_is_reported_so(
    desk: Desk, sectors: str, answer: str, detail: str
) -> None:
    """The plan named no reason, its table not the pod, and --explain ended with IndexError."""
    default = "default_sector: primary\n" if sectors else ""
    config = f"cluster: analytics\nregions: [us-west-2, us-east-1]\n{default}{sectors}"
    desk.write("sectors.yaml", config)
    files = ("--cluster", cluster(desk, pod("p")), "--aws", desk.write("aws.json", {answer: []}))
    made = desk.plan(*files, "--explain", "ns/p").plan
    (refused,) = made["unplaceable"]
    (reason,) = refused["reasons"]
    assert (reason["fleet"], reason["code"]) == ("", "fleet-unavailable")
    assert reason["detail"] == detail
    assert made["explanations"]["pods"][0]["because"] == detail
    assert detail in desk.plan(*files, "--output", "table").out


def test_words_of_strangers_steer_no_terminal(desk: Desk) -> None:
    """Whoever may make a pod could write over what the person who explains it sees."""
    steering = "\x1b[2J"
    odd = pod("odd", memory="300Gi", spec={"nodeSelector": {"size": f"big{steering}"}})
    asked = ("--cluster", cluster(desk, odd), "--output", "table")
    for more in ([], ["--explain", "ns/odd"]):
        told = desk.plan(*asked, *more)
        assert "big�[2J" in told.out
        assert "\x1b" not in told.out


@pytest.mark.parametrize("variable", ["RECONCILER_LISTEN", "RECONCILER_STATUS_URL"])
def test_files_are_answered_from_whatever_the_environment_says(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """Every pod of the install has RECONCILER_LISTEN: files would never be read there."""
    monkeypatch.setenv(variable, "127.0.0.1:1")
    config = str(desk.folder / "sectors.yaml")
    files = ("--config", config, "--cluster", cluster(desk, LARGE), "--now", NOW)
    asked = desk.command("explain", "pod", "ns/large", *files, "--output", "json")
    assert (asked.code, asked.err) == (0, "")
    assert json.loads(asked.out)["pods"][0]["verdict"] == "unplaceable"


@pytest.mark.parametrize(
    "other", [("--cluster", "-"), ("--aws", "aws.json"), ("--now", NOW)], ids=lambda other: other[0]
)
def test_named_program_beside_files_is_a_contradiction(desk: Desk, other: tuple[str, str]) -> None:
    """Either answer would be the wrong one for somebody."""
    asked = desk.command("explain", "pod", "ns/large", *other, "--status-url", "127.0.0.1:1")
    assert (asked.code, asked.out) == (2, "")
    assert asked.err.startswith(f"error: --status-url and {other[0]}: ")
    assert asked.err.count("\n") == 1


@pytest.mark.parametrize("variable", ["RECONCILER_LISTEN", "RECONCILER_STATUS_URL"])
def test_live_apis_are_asked_where_nothing_answers_at_the_address_of_the_environment(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """As with the config's `listen`: only an address that was asked for by name is an error."""
    monkeypatch.setenv(variable, "127.0.0.1:1")
    monkeypatch.setenv("KUBECONFIG", str(desk.folder / "none"))
    asked = desk.command(
        "explain", "pod", "ns/large", "--config", str(desk.folder / "sectors.yaml")
    )
    assert asked.code == 1
    assert "nothing answers" not in asked.err
    assert str(desk.folder / "none") in asked.err


def test_groups_that_are_found_by_their_tags_are_asked_too(desk: Desk) -> None:
    """Without sectors in the config the answer named no fleet, and no change would have helped."""
    desk.write("sectors.yaml", groups.CONFIG)
    aws = desk.write("aws.json", {"AutoScalingGroups": [groups.group(desired=3)]})
    waits = pod("large", cpu="2", memory="1Gi")
    asked = ("--cluster", cluster(desk, waits), "--aws", aws, "--explain", "ns/large")
    (said,) = desk.plan(*asked).plan["explanations"]["pods"]
    assert [fleet["fleet"] for fleet in said["fleets"]] == ["workers"]
