"""`validate` and the modules have one set of rules: random fleets compare both directions."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from reconciler.config.check import check_reading
from reconciler.config.loader import parse_config, read_config
from reconciler.config.module.user_data import user_data_bytes
from reconciler.config.resolve import resolve_fleets
from reconciler.gitops.applying.kept_fleets import kept_variables
from reconciler.gitops.rendering.assets import MODULES, module_sources
from tests.full_proofs import rounds
from tests.terraform.cases import REQUIRED, Case, Values, make_case
from tests.terraform.offline_root import OFFLINE_PROVIDER
from tests.terraform.program import TerraformProgram, find_terraform
from tests.unit.gitops.plans import ended

pytestmark = [pytest.mark.terraform, pytest.mark.timeout(3600)]

CASES = rounds(24, 570)
"""Planned with the AWS provider, which also shows their user data."""
TOGETHER = 30
"""Cases of one root: a provider takes seconds to start, and a plan more than its share of each."""
COMPARED = rounds(12, 800)
"""Judged by the modules alone, at about a second each."""
JUDGED_TOGETHER = 100
"""Cases of one `terraform test`, which has to end within the time that a program is given."""
WANTED = rounds(3, 300)
"""How many have to be planned, and of the compared, accepted and refused by both sides."""
_CASE = re.compile(r"\bc(\d{4})\b")


def refused_by_validate(case: Case) -> list[str]:
    """The faults that `validate` finds; none: it accepts the config."""
    problems = check_reading(read_config(case.config))
    return [f"{p.code}: {p.message}" for p in problems if p.severity == "error"]


def write_root(folder: Path, cases: dict[int, Case]) -> None:
    """A root that calls the rendered modules once for each case.

    Each case has its own copy of them: messages name the file, and not the module's instance.
    """
    calls = [OFFLINE_PROVIDER]
    for number, case in cases.items():
        name = f"c{number:04}"
        for module in MODULES:
            (folder / name / module).mkdir(parents=True)
            for file, source in module_sources(module).items():
                (folder / name / module / file).write_bytes(source)
        (folder / name / "fleets.json").write_text(json.dumps(case.fleets))
        calls.append(
            f'module "{name}" {{\n  source       = "./{name}/fleets"\n'
            f'  cluster_name = "analytics"\n'
            f'  fleets       = jsondecode(file("{name}/fleets.json"))\n}}\n'
        )
    (folder / "main.tf").write_text("".join(calls))


def refused_by_terraform(
    terraform: TerraformProgram, folder: Path
) -> tuple[dict[int, str], dict[int, int]]:
    """What `plan` says is wrong by case, and the bytes of user data of the cases it plans."""
    done = terraform.run(folder, "plan", "-json", "-input=false", "-refresh=false", "-out=saved")
    refused: dict[int, str] = {}
    for line in done.stdout.splitlines():
        told = json.loads(line)
        if told["type"] != "diagnostic" or told["diagnostic"]["severity"] != "error":
            continue
        found = _CASE.search(json.dumps(told["diagnostic"]))
        assert found is not None, told
        refused.setdefault(
            int(found[1]), told["diagnostic"]["summary"] + told["diagnostic"]["detail"]
        )
    assert bool(done.returncode) == bool(refused), done.stderr
    return refused, {} if refused else _user_data(terraform, folder)


def _user_data(terraform: TerraformProgram, folder: Path) -> dict[int, int]:
    shown: dict[str, Any] = json.loads(terraform.run(folder, "show", "-json", "saved").stdout)
    sizes: dict[int, int] = {}
    for change in shown["resource_changes"]:
        if change["type"] == "aws_launch_template":
            text = change["change"]["after"]["user_data"] or ""
            found = _CASE.search(change["address"])
            assert found is not None
            sizes[int(found[1])] = len(text) // 4 * 3 - text.count("=")
    return sizes


@pytest.fixture(scope="module")
def terraform() -> TerraformProgram:
    """The program."""
    return find_terraform()


def planned(
    terraform: TerraformProgram, folder: Path, cases: dict[int, Case]
) -> tuple[dict[int, str], dict[int, int]]:
    """The verdicts of Terraform on these cases, in roots of a bearable size."""
    refused: dict[int, str] = {}
    sizes: dict[int, int] = {}
    numbers = sorted(cases)
    for start in range(0, len(numbers), TOGETHER):
        root = folder / f"root{start}"
        root.mkdir()
        write_root(root, {n: cases[n] for n in numbers[start : start + TOGETHER]})
        terraform.init(root)
        some, data = refused_by_terraform(terraform, root)
        refused |= some
        sizes |= data
        shutil.rmtree(root)
    return refused, sizes


LISTED: dict[str, str] = {}
"""Faults that only `validate` tells, by the beginning of their text, and why the modules do not."""


def literal(value: Any) -> Any:
    """A value as a test file has it, in which texts are templates."""
    if isinstance(value, str):
        return value.replace("${", "$${").replace("%{", "%%{")
    if isinstance(value, dict):
        return {literal(key): literal(each) for key, each in value.items()}
    return [literal(each) for each in value] if isinstance(value, list) else value


def judged_by_modules(
    terraform: TerraformProgram, folder: Path, cases: dict[int, Values]
) -> dict[int, str]:
    """What the modules by themselves say of fleets, by `terraform test`; empty: they accept them.

    Each case is a test file of its own, since a failed run ends its file. The provider is mocked:
    its schema is real, and it is not asked to plan.
    """
    for module in MODULES:
        (folder / module).mkdir(parents=True)
        for file, source in module_sources(module).items():
            (folder / module / file).write_bytes(source)
    root = folder / "fleets"
    (root / "tests").mkdir()
    for number, fleets in cases.items():
        variables = {"cluster_name": "analytics", "fleets": literal(fleets)}
        run = {"plan": {"command": "plan", "variables": variables}}
        content = json.dumps({"mock_provider": {"aws": {}}, "run": run})
        (root / "tests" / f"c{number:04}.tftest.json").write_text(content)
    terraform.init(root)
    done = terraform.run(root, "test", "-json")
    shutil.rmtree(root)
    verdicts: dict[int, str] = {}
    faults: dict[int, str] = {}
    for line in done.stdout.splitlines():
        told = json.loads(line)
        found = _CASE.search(told.get("@testfile", ""))
        if told["type"] == "diagnostic" and told["diagnostic"]["severity"] == "error":
            assert found is not None, told
            text = f"{told['diagnostic']['summary']}: {told['diagnostic']['detail']}"
            faults.setdefault(int(found[1]), text)
        if told["type"] == "test_run" and told["test_run"].get("progress") == "complete":
            assert found is not None, told
            verdicts[int(found[1])] = told["test_run"]["status"]
    assert set(verdicts) == set(cases), done.stderr
    assert {number for number, status in verdicts.items() if status != "pass"} == set(faults)
    return {number: faults.get(number, "") for number in cases}


def test_validate_and_modules_refuse_the_same(
    terraform: TerraformProgram, tmp_path: Path, closing_lines: list[str]
) -> None:
    """What only one side refuses fails in the pipeline, or cannot be used although it could."""
    cases = {number: make_case(number) for number in range(COMPARED)}
    by_modules: dict[int, str] = {}
    for start in range(0, COMPARED, JUDGED_TOGETHER):
        some = {n: case.fleets for n, case in cases.items() if start <= n < start + JUDGED_TOGETHER}
        by_modules |= judged_by_modules(terraform, tmp_path / str(start), some)
    by_validate = {number: refused_by_validate(case) for number, case in cases.items()}
    listed = {
        number
        for number, told in by_validate.items()
        if told and not by_modules[number] and all(each.startswith(tuple(LISTED)) for each in told)
    }
    differing = {
        number: (by_validate[number], by_modules[number], cases[number].config)
        for number in cases
        if bool(by_validate[number]) != bool(by_modules[number]) and number not in listed
    }
    assert differing == {}
    accepted = sum(not told for told in by_validate.values())
    refused = sum(bool(told) for told in by_modules.values())
    assert min(accepted, refused) >= WANTED
    closing_lines.append(
        f"{COMPARED} random fleets: {accepted} accepted by validate, all of them by the modules;"
        f" {refused} refused by the modules, all of them by validate; {len(listed)} refused by"
        " validate alone, for listed reasons"
    )


def test_fleet_that_drains_is_accepted_beside_those_that_divide_it_by_zone(
    terraform: TerraformProgram, tmp_path: Path
) -> None:
    """One size into zones, or zones into one: no part of the change could be applied."""
    values = {**REQUIRED, "sector_label": "web", "node_pool_kind": "memory"}
    whole = {"web-small": {**values, "node_pool_size": "small"}}
    split = {
        f"web-small-{zone}": {**values, "node_pool_size": "small", "zone": zone}
        for zone in REQUIRED["private_subnet_ids"]
    }
    cases: dict[int, Values] = {}
    for number, (old, new) in enumerate([(whole, split), (split, whole)]):
        drains = [ended(key, sector="web", size="small", kind="memory") for key in old]
        tfvars = json.dumps({"cluster_name": "analytics", "fleets": new}).encode()
        cases[number] = json.loads(kept_variables(tfvars, drains))["fleets"]
        assert set(cases[number]) == {*old, *new}
    assert judged_by_modules(terraform, tmp_path, cases) == {0: "", 1: ""}


def test_what_validate_accepts_is_planned(
    terraform: TerraformProgram, tmp_path: Path, closing_lines: list[str]
) -> None:
    """A commit that validates and cannot be planned stops every pipeline of its cluster.

    A fleet that the modules refuse and `validate` accepts would be among those that are planned.
    What `validate` refuses is not planned: Terraform stops at the first of several faults.
    """
    cases = {number: make_case(number) for number in range(CASES)}
    accepted = {n: case for n, case in cases.items() if not refused_by_validate(case)}
    refused, sizes = planned(terraform, tmp_path, accepted)
    assert {n: (text, cases[n].config) for n, text in refused.items()} == {}
    assert sorted(sizes) == sorted(accepted)
    for number, size in sizes.items():
        (fleet,) = resolve_fleets(parse_config(cases[number].config))
        assert user_data_bytes(fleet) == size, cases[number].config
    assert WANTED <= len(accepted) < 3 * CASES // 4 + 1
    closing_lines.append(
        f"{len(accepted)} of {CASES} random fleets pass validate and all of them are planned by"
        " Terraform, their user data to the byte"
    )
