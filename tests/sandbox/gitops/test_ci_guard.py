"""Ways in which a config repository could have a pipeline run a program, each with a real one.

Every attack leaves a marker file when its program runs. All ran with the guard on plans alone.
"""

import base64
import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from reconciler.gitops.rendering.render import TFVARS, render
from reconciler.gitops.rendering.root_module import RootModule, S3Backend
from reconciler.gitops.rendering.targets import MANIFEST
from reconciler.gitops.rendering.write import write_rendered
from reconciler.gitops.terraform_plan.directory import LOCK
from tests import command
from tests.git_remote import git
from tests.sandbox.gitops.stand_in import planner
from tests.terraform.needs import needs_provider, needs_terraform
from tests.terraform.offline_root import make_fleet

pytestmark = [pytest.mark.sandbox, pytest.mark.terraform, needs_terraform, needs_provider]
TIMEOUT_SECONDS = 240
PLATFORM = "linux_amd64"
AWS = "registry.terraform.io/hashicorp/aws"
Environment = dict[str, str]


def reconciler(
    *arguments: str, cwd: Path, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """The program as a pipeline calls it, with credentials in its environment."""
    users = os.environ  # noqa: TID251 - the process inherits it
    return command.reconciler(
        *arguments,
        cwd=cwd,
        env={
            **{name: value for name, value in users.items() if not name.startswith("AWS_")},
            "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_MAX_ATTEMPTS": "1",
            "AWS_REGION": "us-west-2",
            **environment,
        },
        timeout_seconds=TIMEOUT_SECONDS,
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a rendered root module in `terraform/`."""
    directory = tmp_path / "checkout"
    root = RootModule(
        cluster_name="analytics", region="us-west-2", fleets={"primary-small": make_fleet()}
    )
    write_rendered(render(root), directory / "terraform")
    git(tmp_path, "init", "-q", "-b", "main", "checkout")
    commit(directory)
    return directory


def commit(checkout: Path) -> None:
    """What somebody's pull request holds."""
    git(checkout, "add", "--all", "--force")
    git(checkout, "commit", "-qm", "Change the config")


def executable(file: Path, marker: Path) -> Path:
    """A program that leaves the marker."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\ntouch {marker}\nexit 1\n")
    file.chmod(0o755)
    return file


def aws_config(file: Path, marker: Path) -> Path:
    """An AWS config whose credentials come from a program."""
    file.parent.mkdir(parents=True, exist_ok=True)
    program = executable(file.parent / "give-credentials", marker)
    file.write_text(f"[default]\nregion = us-west-2\ncredential_process = {program}\n")
    return file


def provider_block(checkout: Path, marker: Path) -> str:
    """A provider with such a config."""
    config = aws_config(checkout / "aws.cfg", marker)
    return (
        f'provider "aws" {{\n  shared_config_files = ["{config}"]\n  profile = "default"\n'
        "  skip_requesting_account_id = true\n}\n"
    )


def override(checkout: Path, marker: Path) -> Environment:
    """Terraform merges the file over the rendered provider."""
    (checkout / "terraform/zz_override.tf").write_text(provider_block(checkout, marker))
    return {}


def override_as_json(checkout: Path, marker: Path) -> Environment:
    """The same in Terraform's other syntax."""
    config = str(aws_config(checkout / "aws.cfg", marker))
    block = {"provider": {"aws": {"shared_config_files": [config], "profile": "default"}}}
    (checkout / "terraform/override.tf.json").write_text(json.dumps(block))
    return {}


def override_with_a_newline(checkout: Path, marker: Path) -> Environment:
    """A name that takes two lines of a log."""
    name = "modules\nterraform/x_override.tf".replace("/", "\u2215")
    (checkout / "terraform" / name).write_text(provider_block(checkout, marker))
    return {}


def link(checkout: Path, marker: Path) -> Environment:
    """A link in the root module to a file beside it."""
    (checkout / "beside.tf").write_text(provider_block(checkout, marker))
    (checkout / "terraform/zz_override.tf").symlink_to("../beside.tf")
    return {}


def linked_over_a_rendered_file(checkout: Path, marker: Path) -> Environment:
    """A link in the place of a rendered file."""
    rendered = checkout / "terraform/main.tf"
    block = provider_block(checkout, marker)
    text = rendered.read_text().replace('provider "aws" {\n  region = "us-west-2"\n}\n', block)
    (checkout / "beside.tf").write_text(text)
    rendered.unlink()
    rendered.symlink_to("../beside.tf")
    return {}


def override_in_a_module(checkout: Path, marker: Path) -> Environment:
    """The same in a directory of a rendered module."""
    file = checkout / "terraform/modules/fleets/x_override.tf"
    file.write_text(provider_block(checkout, marker))
    return {}


def edited_with_its_manifest(checkout: Path, marker: Path) -> Environment:
    """A rendered module changed, and the list of rendered files with it."""
    module = checkout / "terraform/modules/fleets"
    (module / "main.tf").write_text(
        (module / "main.tf").read_text() + provider_block(checkout, marker)
    )
    (module / "new.tf").write_text("# listed\n")
    manifest = checkout / "terraform" / MANIFEST
    listed = json.loads(manifest.read_text())
    listed["files"].append("modules/fleets/new.tf")
    manifest.write_text(json.dumps(listed))
    return {}


def plugin(checkout: Path, marker: Path) -> Environment:
    """A provider in the directory in which Terraform looks for them first."""
    folder = checkout / "terraform/terraform.d/plugins" / AWS / "6.99.0" / PLATFORM
    executable(folder / "terraform-provider-aws_v6.99.0", marker)
    return {}


def foreign_provider(checkout: Path, marker: Path) -> Environment:
    """A provider that no rendered root module has, with a resource that starts it."""
    (checkout / "terraform/x.tf").write_text('resource "evil_thing" "x" {}\n')
    plugins = checkout / "terraform/terraform.d/plugins"
    for source in (AWS, AWS.replace("aws", "evil")):
        name = source.rpartition("/")[2]
        program = plugins / source / "5.100.0" / PLATFORM / f"terraform-provider-{name}_v5.100.0"
        executable(program, marker)
    return {}


def installed_already(checkout: Path, marker: Path) -> Environment:
    """A provider in Terraform's own data, with a lock file that names its hash."""
    name = "terraform-provider-aws_v5.100.0"
    folder = checkout / "terraform/.terraform/reconciler/providers" / AWS / "5.100.0" / PLATFORM
    program = executable(folder / name, marker)
    line = f"{hashlib.sha256(program.read_bytes()).hexdigest()}  {name}\n"
    digest = base64.b64encode(hashlib.sha256(line.encode()).digest()).decode()
    (checkout / "terraform/.terraform.lock.hcl").write_text(
        f'provider "{AWS}" {{\n  version     = "5.100.0"\n  constraints = ">= 5.100.0, < 7.0.0"\n'
        f'  hashes = [\n    "h1:{digest}",\n  ]\n}}\n'
    )
    return {}


def cli_config(checkout: Path, marker: Path) -> Environment:
    """Terraform's settings in the repository, as a runner may be told to use them."""
    mirror = checkout / "mirror"
    executable(mirror / AWS / "6.99.0" / PLATFORM / "terraform-provider-aws_v6.99.0", marker)
    (checkout / "ci.tfrc").write_text(
        f'provider_installation {{\n  filesystem_mirror {{\n    path = "{mirror}"\n  }}\n}}\n'
    )
    return {"TF_CLI_CONFIG_FILE": str(checkout / "ci.tfrc")}


def home(checkout: Path, marker: Path) -> Environment:
    """A home directory in the checkout, as some runners have it."""
    aws_config(checkout / ".aws/config", marker)
    return {"HOME": str(checkout)}


def shared_config(checkout: Path, marker: Path) -> Environment:
    """AWS's settings, named relative to the directory in which Terraform runs."""
    aws_config(checkout / "terraform.cfg", marker)
    return {"AWS_CONFIG_FILE": "../terraform.cfg"}


def linked_out_of_the_checkout(checkout: Path, marker: Path) -> Environment:
    """The root module itself somewhere else: AWS's settings then lie beside no checkout."""
    aws_config(checkout / "terraform.cfg", marker)
    (checkout / "terraform").rename(checkout.parent / "elsewhere")
    (checkout / "terraform").symlink_to("../elsewhere")
    return {"AWS_CONFIG_FILE": str(checkout / "terraform.cfg")}


ATTACKS: list[Callable[[Path, Path], Environment]] = [
    override,
    override_as_json,
    override_with_a_newline,
    link,
    linked_over_a_rendered_file,
    override_in_a_module,
    edited_with_its_manifest,
    plugin,
    foreign_provider,
    installed_already,
    cli_config,
    home,
    shared_config,
    linked_out_of_the_checkout,
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_no_program_of_the_repository_runs(
    checkout: Path, tmp_path: Path, attack: Callable[[Path, Path], Environment]
) -> None:
    """Whoever may open a pull request would have the credentials of the role that plans."""
    marker = tmp_path / "ran"
    environment = attack(checkout, marker)
    commit(checkout)
    done = reconciler(
        *("ci", "plan", "--dir", "terraform", "--out", "../plan", "--output", "table"),
        cwd=checkout,
        environment=environment,
    )
    assert not marker.exists()
    assert done.returncode == 1
    if attack is linked_out_of_the_checkout:
        assert "terraform: is a symbolic link" in done.stderr
    elif environment:
        assert "lies in the checkout" in done.stderr
    elif attack is not installed_already:
        assert ": file/" in done.stderr
        assert "**Refused**" in (tmp_path / "plan/summary.md").read_text()
    assert all(line.startswith("error: ") for line in done.stderr.splitlines()), done.stderr


@pytest.mark.parametrize("stage", ["apply", "finish", "drift", "unlock"])
def test_every_stage_looks_before_terraform_does(
    checkout: Path, tmp_path: Path, stage: str
) -> None:
    """The role that applies is worth more than the one that plans."""
    marker = tmp_path / "ran"
    plan = tmp_path / "plan"
    if stage == "apply":
        done = reconciler(
            *("ci", "plan", "--dir", "terraform", "--out", str(plan)),
            cwd=checkout,
            environment={"RECONCILER_TERRAFORM": str(planner(tmp_path / "terraform"))},
        )
        assert done.returncode == 0, done.stderr
    override(checkout, marker)
    executable(tmp_path / "terraform", marker)
    more = {"apply": ["--plan", str(plan)], "unlock": ["some-id"]}.get(stage, [])
    if stage == "finish":  # it starts nothing while no removal is approved
        config = "cluster: analytics\nallow_destroy: [old-small]\nsectors: {}\n"
        (checkout / "sectors.yaml").write_text(config)
    done = reconciler(
        *("ci", stage, "--dir", "terraform", *more),
        cwd=checkout,
        environment={"RECONCILER_TERRAFORM": str(tmp_path / "terraform")},
    )
    assert done.returncode == 1
    assert "zz_override.tf: file/foreign" in done.stderr
    assert not marker.exists()


def test_values_beside_the_rendered_ones_are_refused(checkout: Path, tmp_path: Path) -> None:
    """Terraform reads every `*.auto.tfvars`, the last by name wins: no review would show it."""
    root = checkout / "terraform"
    (root / "zz.auto.tfvars").write_text("fleets = {}\n")
    (root / "terraform.tfvars").write_text('cluster_name = "other"\n')
    (root / TFVARS).write_text('{"cluster_name": "a", "fleets": {}, "more": 1}')
    done = reconciler(
        *("ci", "plan", "--dir", "terraform", "--out", "../plan"), cwd=checkout, environment={}
    )
    found = [(finding["where"], finding["code"]) for finding in json.loads(done.stdout)["findings"]]
    assert found == [
        (TFVARS, "file/changed"),
        ("terraform.tfvars", "file/foreign"),
        ("zz.auto.tfvars", "file/foreign"),
    ]


def test_line_ends_that_git_changed_are_reported_with_what_keeps_them(
    checkout: Path, tmp_path: Path
) -> None:
    """Every file was refused, and neither a render nor another version helped."""
    backend = S3Backend(bucket="state", key="fleets", region="us-west-2")
    root = RootModule(cluster_name="analytics", region="us-west-2", backend=backend, fleets={})
    write_rendered(render(root), checkout / "terraform")
    commit(checkout)

    def planned(attributes: str) -> tuple[int, list[str]]:
        (checkout / ".gitattributes").write_text(attributes)
        git(checkout, "add", ".gitattributes")
        git(checkout, "commit", "-qm", "Say how files are checked out")
        git(checkout, "rm", "-rq", "--cached", "terraform")
        git(checkout, "reset", "-q", "--hard")
        done = reconciler(
            *("ci", "plan", "--dir", "terraform", "--out", "../plan"),
            cwd=checkout,
            environment={"RECONCILER_TERRAFORM": str(planner(tmp_path / "terraform"))},
        )
        return done.returncode, [
            finding["message"] for finding in json.loads(done.stdout)["findings"]
        ]

    code, messages = planned("* text=auto eol=crlf\n")
    assert code == 1
    assert len(messages) > 10
    remedy = "add the line `**/terraform/** -text` to the end of the repository's .gitattributes"
    assert [message for message in messages if remedy not in message] == []
    assert planned("* text=auto eol=crlf\n**/terraform/** -text\n") == (0, [])


@pytest.mark.parametrize("leads_to", ["credentials", "/proc/self/environ"])
def test_file_that_a_link_names_does_not_get_into_the_plan(
    checkout: Path, tmp_path: Path, leads_to: str
) -> None:
    """Whoever may open a pull request could read the credentials of the job in its artifacts."""
    (tmp_path / "credentials").write_text("secret-of-the-runner\n")
    (checkout / "terraform" / LOCK).symlink_to(tmp_path / leads_to)
    commit(checkout)
    done = reconciler(
        *("ci", "plan", "--dir", "terraform", "--out", "../plan", "--output", "table"),
        cwd=checkout,
        environment={"AWS_SECRET_ACCESS_KEY": "secret-of-the-runner"},
    )
    assert done.returncode == 1
    assert f"{LOCK}: file/link" in done.stderr
    kept = {each.name: each.read_bytes() for each in (tmp_path / "plan").iterdir()}
    assert sorted(kept) == ["report.json", "summary.md"]
    assert not any(b"secret-of-the-runner" in content for content in kept.values())


def test_apply_writes_nothing_before_it_looked(checkout: Path, tmp_path: Path) -> None:
    """A commit could have the job that applies write into its own home directory."""
    stand_in = {"RECONCILER_TERRAFORM": str(planner(tmp_path / "terraform"))}
    (checkout / "terraform" / LOCK).write_text("# locked\n")
    planned = reconciler(
        *("ci", "plan", "--dir", "terraform", "--out", "../plan"),
        cwd=checkout,
        environment=stand_in,
    )
    assert planned.returncode == 0, planned.stderr
    assert (tmp_path / "plan" / LOCK).read_text() == "# locked\n"
    (checkout / "terraform" / LOCK).unlink()
    (checkout / "terraform" / LOCK).symlink_to(tmp_path / "outside")
    commit(checkout)
    applied = reconciler(
        *("ci", "apply", "--dir", "terraform", "--plan", "../plan"),
        cwd=checkout,
        environment=stand_in,
    )
    assert applied.returncode == 1
    assert f"{LOCK}: file/link" in applied.stderr
    assert not (tmp_path / "outside").exists()
