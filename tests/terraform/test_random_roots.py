"""Random and hostile configs as Terraform reads them: formatted, valid, literal, planned empty."""

import base64
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.config.loader import parse_config
from reconciler.gitops.rendering.render import TFVARS, render
from reconciler.gitops.rendering.root_module import root_module_of
from reconciler.gitops.rendering.write import write_rendered
from reconciler.model.errors import ConfigError
from reconciler.sandbox.aws.bootstrap import AccountIds, bootstrap_account
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.aws.values import Delays
from tests.full_proofs import rounds
from tests.properties.rendering.configs import drawn
from tests.properties.rendering.hcl import STRING
from tests.properties.rendering.hostile import hostile_documents
from tests.terraform.offline_root import OFFLINE_PROVIDER, make_offline_root
from tests.terraform.program import TerraformProgram, find_terraform

pytestmark = [pytest.mark.terraform, pytest.mark.timeout(3600)]

ROOTS = rounds(20, 200)
PLAN = ("plan", "-input=false", "-out=saved", "-refresh=false")


@pytest.fixture(scope="module")
def terraform() -> TerraformProgram:
    """The program."""
    return find_terraform()


@pytest.fixture(scope="module")
def data(terraform: TerraformProgram, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of one initialised root, which every other root shares."""
    folder = tmp_path_factory.mktemp("initialised")
    make_offline_root(folder)
    return folder


def written(text: str, folder: Path) -> dict[str, Any]:
    """Render a config into a folder; its variables."""
    root = root_module_of(parse_config(text.encode(), name="sectors.yaml"))
    write_rendered(render(root), folder)
    variables: dict[str, Any] = json.loads((folder / TFVARS).read_text())
    return variables


@pytest.fixture(scope="module")
def written_roots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a rendered root of each random config, r000 and on."""
    folder = tmp_path_factory.mktemp("random")
    for number, text in enumerate(drawn(ROOTS)):
        written(text, folder / f"r{number:03}")
    return folder


@pytest.fixture(scope="module")
def together(
    terraform: TerraformProgram, written_roots: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """One initialised root that calls every random root as a module, with its own variables.

    A provider takes seconds to start, and this way it starts once. Where the provider is and
    where the state is kept is the root's own to say, so both are taken out of the modules.
    """
    folder = tmp_path_factory.mktemp("together")
    shutil.copytree(written_roots, folder, dirs_exist_ok=True)
    calls = [OFFLINE_PROVIDER]
    for root in sorted(folder.iterdir()):
        without_block(root / "main.tf", r'provider "aws" ')
        without_block(root / "versions.tf", r'  backend "s3" ')
        values = f'jsondecode(file("{root.name}/{TFVARS}"))'
        calls.append(
            f'module "{root.name}" {{\n  source       = "./{root.name}"\n'
            f"  cluster_name = {values}.cluster_name\n  fleets       = {values}.fleets\n}}\n"
        )
    (folder / "main.tf").write_text("".join(calls))
    terraform.init(folder)
    return folder


def without_block(file: Path, head: str) -> None:
    """Take a block out of a rendered file."""
    indent = " " * (len(head) - len(head.lstrip()))
    text = re.sub(rf"\n{head}{{.*?\n{indent}}}\n", "\n", file.read_text(), flags=re.DOTALL)
    assert head not in text
    file.write_text(text)


@pytest.mark.nightly
def test_random_roots_are_formatted_and_valid(
    terraform: TerraformProgram, data: Path, written_roots: Path, closing_lines: list[str]
) -> None:
    """A config that validates here and fails in CI costs its author a round trip."""
    done = terraform.run(written_roots, "fmt", "-check", "-recursive", "-diff")
    assert done.returncode == 0, done.stdout[:2000]
    shared = {"TF_DATA_DIR": str(data / ".terraform")}
    count = rounds(4, ROOTS)
    for number in range(count):
        folder = written_roots / f"r{number:03}"
        shutil.copy(data / ".terraform.lock.hcl", folder)
        done = terraform.run(folder, "validate", "-json", **shared)
        found = json.loads(done.stdout)
        assert (found["valid"], found["diagnostics"]) == (True, []), folder.name
    closing_lines.append(
        f"{ROOTS} random roots: terraform fmt -check is clean; {count} of them by themselves:"
        " terraform validate is clean"
    )


@pytest.mark.nightly
def test_random_roots_are_valid_and_planned_together(
    terraform: TerraformProgram, together: Path, closing_lines: list[str]
) -> None:
    """Validation blocks look at values only when planning: they must agree with `validate`."""
    valid = json.loads(terraform.run(together, "validate", "-json").stdout)
    assert (valid["valid"], valid["diagnostics"]) == (True, [])
    done = terraform.run(together, *PLAN)
    assert done.returncode == 0, done.stderr[:4000]
    shown = terraform.run(together, "show", "-json", "saved")
    made: dict[str, dict[str, Any]] = {}
    for change in json.loads(shown.stdout)["resource_changes"]:
        assert change["change"]["actions"] == ["create"]
        if change["type"] == "aws_ec2_fleet":
            after = change["change"]["after"]
            (called,) = re.findall(r"^module\.(r\d+)\.", change["address"])
            made.setdefault(called, {})[after["tags"]["fleet"]] = after
    for root in (folder for folder in together.iterdir() if folder.name.startswith("r")):
        wanted = json.loads((root / TFVARS).read_text())["fleets"]
        assert set(wanted) == set(made.get(root.name, {}))
        for name, fleet in wanted.items():
            assert fleet.get("tags", {}).items() <= made[root.name][name]["tags"].items()
    fleets = sum(map(len, made.values()))
    closing_lines.append(
        f"{ROOTS} random roots in one: terraform validate is clean, {fleets} fleets planned,"
        " every tag literal"
    )


def test_hostile_backends_are_read_back_literally(
    terraform: TerraformProgram, tmp_path: Path, closing_lines: list[str]
) -> None:
    """The backend is the one part of a config that is written as HCL: Terraform must agree."""
    expressions, payloads = [], []
    for place, payload, text in hostile_documents():
        if place[:2] != ("terraform", "backend") or payload == "":
            continue
        try:
            written(text, tmp_path / "root")
        except ConfigError:
            continue
        found = [m[0] for m in STRING.finditer((tmp_path / "root" / "versions.tf").read_text())]
        expressions.append(found)
        payloads.append(payload)
    (tmp_path / "texts").mkdir()
    listed = "".join(f"    [{', '.join(expression)}],\n" for expression in expressions)
    (tmp_path / "texts" / "main.tf").write_text(f"locals {{\n  texts = [\n{listed}  ]\n}}\n")
    question = "base64encode(jsonencode(local.texts))"
    done = terraform.run(tmp_path / "texts", "console", stdin=question)
    assert done.returncode == 0, done.stderr[:2000]
    answer = json.loads(base64.b64decode(done.stdout.strip().strip('"')))
    assert len(answer) == len(payloads) > 15
    for texts, payload in zip(answer, payloads, strict=True):
        assert payload in texts
    closing_lines.append(
        f"{len(payloads)} hostile backends read back by Terraform as they were written"
    )


@pytest.fixture(scope="module")
def account() -> Iterator[tuple[AwsServer, AccountIds]]:
    """An emulated AWS."""
    delays = Delays(launch_seconds=0.1, terminate_seconds=0.1, modify_seconds=0.1)
    with AwsServer(delays=delays) as server:
        yield server, bootstrap_account(server.url)


@pytest.mark.nightly
def test_random_roots_are_applied_and_planned_empty(
    terraform: TerraformProgram,
    data: Path,
    tmp_path: Path,
    account: tuple[AwsServer, AccountIds],
    closing_lines: list[str],
) -> None:
    """A plan that is never empty hides the change that matters."""
    server, ids = account
    settings = {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_EC2_METADATA_DISABLED": "true",
        "TF_DATA_DIR": str(data / ".terraform"),
    }
    texts, fleets = drawn(rounds(2, 12)), 0
    for number, text in enumerate(texts):
        folder = tmp_path / f"{number:03}"
        variables = written(text, folder)
        zones = sorted(ids.subnet_ids)
        for fleet in variables["fleets"].values():
            fleet |= {"ami": ids.ami, "security_group_id": ids.security_group_id}
            fleet["private_subnet_ids"] = {
                own: ids.subnet_ids[zones[index % len(zones)]]
                for index, own in enumerate(sorted(fleet["private_subnet_ids"]))
            }
            fleet.pop("ssh_key_name", None)
            fleet["initial_node_count"] = min(fleet["initial_node_count"], 2)
        variables["cluster_name"] = f"c{number}-{variables['cluster_name']}"[:40].strip("-_.")
        (folder / TFVARS).write_text(json.dumps(variables))
        versions = (folder / "versions.tf").read_text()
        local = re.sub(r'\n  backend "s3" \{.*?\n  \}\n', "", versions, flags=re.DOTALL)
        (folder / "versions.tf").write_text(local)
        shutil.copy(data / ".terraform.lock.hcl", folder)
        applied = terraform.run(folder, "apply", "-auto-approve", "-input=false", **settings)
        assert applied.returncode == 0, (text, applied.stderr)
        again = terraform.run(folder, "plan", "-detailed-exitcode", "-input=false", **settings)
        assert again.returncode == 0, (text, again.stdout)
        fleets += len(variables["fleets"])
    closing_lines.append(
        f"{len(texts)} random roots applied ({fleets} fleets); the next plan was empty"
    )
