"""Wrong input: one clear line on stderr and the right exit code."""

import json
import re
from typing import Any

import pytest

from tests.cli.inputs import ALL_FLEETS, Answer, Desk, listing, pod

GOOD = listing(pod("a"))


def one_line(answer: Answer, code: int) -> str:
    """The error's text; there must be nothing else."""
    assert (answer.code, answer.out) == (code, "")
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    assert "Traceback" not in answer.err
    return answer.err


BAD_CLUSTER: dict[str, Any] = {
    "empty": "",
    "blank": " \n\n",
    "binary": bytes(range(256)),
    "gzip": b"\x1f\x8b\x08\x00" + b"\x00" * 40,
    "truncated": '{"apiVersion": "v1", "kind": "List", "items": [{"kind": "Pod", "meta',
    "huge number": '{"kind": "List", "items": ' + "9" * 5000 + "}",
    "a bare huge number": "1" * 6000,
    "a number": "3",
    "a text": '"pods"',
    "yaml": "apiVersion: v1\nkind: Pod\n",
    "html": "<html><body>502 Bad Gateway</body></html>",
    "no kind": '{"foo": 1}',
    "items is a text": '{"kind": "List", "items": "none"}',
    "deep": "[" * 100_000,
    "deep objects": '{"a":' * 50_000,
    "aws by mistake": ALL_FLEETS,
}


@pytest.mark.parametrize("case", BAD_CLUSTER)
def test_file_that_holds_no_kubernetes_objects_is_one_line_with_its_name(
    desk: Desk, case: str
) -> None:
    """A traceback, or worse a plan made from nothing."""
    file = desk.write("bad.json", BAD_CLUSTER[case])
    assert file in one_line(desk.plan("--cluster", file), 1)


BAD_AWS: dict[str, Any] = {
    "empty": "",
    "binary": bytes(range(256)),
    "truncated": '{"Fleets": [{"FleetId": ',
    "a number": "3",
    "a list of numbers": "[1, 2]",
    "kubernetes by mistake": GOOD,
    "an error page": "<html>",
    "huge number": '{"Fleets": ' + "9" * 5000 + "}",
    "deep": "[" * 100_000,
    "region is a number": '{"Fleets": [], "Region": 7}',
}


@pytest.mark.parametrize("case", BAD_AWS)
def test_file_that_holds_no_answer_of_aws_is_one_line_with_its_name(desk: Desk, case: str) -> None:
    """A wrong file would be taken for an account without fleets."""
    cluster = desk.write("good.json", GOOD)
    file = desk.write("bad.json", BAD_AWS[case])
    assert file in one_line(desk.plan("--cluster", cluster, "--aws", file), 1)


@pytest.mark.parametrize("flag", ["--cluster", "--aws"])
@pytest.mark.parametrize("path", ["absent.json", ".", "a\0b"])
def test_path_that_is_no_file_is_one_line(desk: Desk, flag: str, path: str) -> None:
    """A typing error in a path would show Python's own words."""
    where = str(desk.folder / path)
    args = ["--cluster", desk.write("good.json", GOOD)] if flag == "--aws" else []
    one_line(desk.plan(*args, flag, where), 1)


def test_file_without_permission_is_one_line(desk: Desk) -> None:
    """The same, for a file of another user; root reads it all the same."""
    file = desk.write("locked.json", GOOD)
    (desk.folder / "locked.json").chmod(0)
    answer = desk.plan("--cluster", file)
    if answer.code:
        assert file in one_line(answer, 1)


@pytest.mark.parametrize(
    "args",
    [
        ("--now", "yesterday"),
        ("--now", "2026-01-31T12:00:00"),
        ("--now", "20260131T120000Z"),
        ("--now", "2026-W05-6T12:00:00Z"),
        ("--now", "2026-01-31T12Z"),
        ("--now", "2026-02-30T12:00:00Z"),
        ("--now", "9999-12-31T23:59:59Z"),
        ("--output", "xml"),
        ("--no-such-flag",),
        ("--aws", "aws.json"),
        ("stray",),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(desk: Desk, args: tuple[str, ...]) -> None:
    """Scripts tell wrong usage from failure by the exit code."""
    config = str(desk.folder / "sectors.yaml")
    extra = () if args[0] == "--aws" else ("--cluster", desk.write("good.json", GOOD))
    one_line(desk.command("plan", *args, "--config", config, *extra), 2)


@pytest.mark.parametrize(
    "config", ["sectors: [", "cluster: a\nsectors: {x: {fleets: []}}\n", "bogus: 1\n", ""]
)
def test_invalid_config_is_exit_code_2(desk: Desk, config: str) -> None:
    """A plan would be made from half a config."""
    desk.write("sectors.yaml", config)
    answer = desk.plan("--cluster", desk.write("good.json", GOOD))
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: ")
    assert "Traceback" not in answer.err


def test_every_fault_of_a_config_is_an_error_line_of_its_own(desk: Desk) -> None:
    """A config would be fixed fault by fault, one run of the pipeline for each."""
    config = (desk.folder / "sectors.yaml").read_text()
    faulty = config.replace("size: std, max", "size: sdt, max") + "expander: best\nslep: 3\n"
    desk.write("sectors.yaml", faulty)
    answer = desk.plan("--cluster", desk.write("good.json", GOOD))
    lines = answer.err.splitlines()
    assert answer.code == 2
    assert all(re.fullmatch(r"error: \S+:\d+:\d+: [\w/-]+: .+ \(.+\)", line) for line in lines)
    codes = [line.split(": ")[2] for line in lines]
    assert codes == ["sector/unknown-size", "config/type", "config/unknown-key"]


def test_config_without_a_cluster_asks_for_its_name(desk: Desk) -> None:
    """A Kluster Fleet Manager config names none."""
    config = (desk.folder / "sectors.yaml").read_text().replace("cluster: analytics\n", "")
    desk.write("sectors.yaml", config)
    cluster = desk.write("good.json", GOOD)
    assert "--cluster-name" in one_line(desk.plan("--cluster", cluster), 2)
    named = desk.plan("--cluster", cluster, "--cluster-name", "analytics")
    assert named.plan["cluster"] == "analytics"


def test_bad_number_inside_one_object_spoils_only_that_object(desk: Desk) -> None:
    """A number that JSON allows and nobody can hold would stop everything."""
    huge = json.dumps(pod("x", spec={"priority": 1})).replace(": 1}", ": " + "9" * 400 + "}")
    made = desk.plan("--cluster", desk.write("in.json", huge + "\n" + json.dumps(pod("a")))).plan
    assert [p["pod"] for p in made["placements"]] == ["a"]
    assert [i["name"] for i in made["ignored"]] == ["x"]
