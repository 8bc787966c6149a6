"""Pages for users of other autoscalers name keys and rights that exist."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from textwrap import dedent

import pytest

from reconciler.config.json_schema import json_schema
from reconciler.config.loader import Purpose, parse_config
from reconciler.install.iam import Values, policy
from reconciler.install.settings import tolerations_of

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    "auto-scaling-groups.md",
    "migrating-from-cluster-autoscaler.md",
    "migrating-from-kubernetes-ec2-autoscaler.md",
)
FLAGS_OF_RUN = {"cluster-name", "regions", "sleep", "kubeconfig", "pod-namespace",
                "idle-threshold", "type-idle-threshold", "instance-init-time", "dry-run",
                "slack-hook"}  # fmt: skip
"""Of kubernetes-ec2-autoscaler, which `run` promises to take."""


def keys() -> set[str]:
    """Every key of a sector config, whatever its section."""
    schema = json_schema()
    shapes = [schema, *schema["$defs"].values()]
    return {key for shape in shapes for key in shape.get("properties", {})}


@pytest.mark.parametrize("page", PAGES)
def test_keys_on_the_page_are_keys_of_the_config(page: str) -> None:
    """A flag that became a key of another name would not be found."""
    text = (DOCS / page).read_text()
    known = keys()
    rows = [line for line in text.splitlines() if line.startswith("| `--")]
    named = {
        word
        for row in rows
        for word in re.findall(r"`([a-z][a-z_.]+)(?::[^`]*)?`", row.split("|", 2)[2])
        if "_" in word
    }
    missing = {word for word in named if not set(word.split(".")) <= known}
    assert not missing


def test_forty_flags_of_cluster_autoscaler_are_answered() -> None:
    """Whoever uses one that is not there would not know whether to worry."""
    text = (DOCS / "migrating-from-cluster-autoscaler.md").read_text()
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `--")]
    assert len({flag for row in rows for flag in re.findall(r"`(--[a-z-]+)", row)}) >= 40


def test_flags_that_run_takes_are_in_its_reference() -> None:
    """The page would promise what the program refuses."""
    help_of_run = (DOCS / "cli.md").read_text()
    page = (DOCS / "migrating-from-kubernetes-ec2-autoscaler.md").read_text()
    for flag in FLAGS_OF_RUN:
        assert f"--{flag}" in help_of_run
        assert f"--{flag}" in page


def test_rights_on_the_page_are_those_of_the_policy() -> None:
    """A policy that was copied once and never again misses what the program has learned since."""
    text = (DOCS / "migrating-from-kubernetes-ec2-autoscaler.md").read_text()
    block = re.search(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    values: Values = {"cluster": "analytics", "regions": ["us-west-2"], "groups": "true"}
    printed = json.loads(policy("capacity-loop", values))["Statement"]
    for statement in json.loads(block[1])["Statement"]:
        assert statement in printed


def test_config_of_the_karpenter_page_is_one_that_the_program_can_be_installed_with() -> None:
    """Without nodes that are always there, nothing would run what scales the others up."""
    text = (DOCS / "migrating-from-karpenter.md").read_text()
    block = re.search(r"^ *```yaml\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    assert block is not None
    config = parse_config(dedent(block[1]), name="sectors.yaml", purpose=Purpose.RUN)
    (sector,) = set(re.findall(r"--sector (\S+)", text))
    assert tolerations_of(config, sector) == ()


AWS = """\
#!/bin/sh
case "$*" in
*describe-auto-scaling-groups*) cat "$IDS" ;;
*set-instance-protection*) for word; do case "$word" in i-*) echo "$word" ;; esac; done | wc -l ;;
esac
"""
"""The AWS CLI as far as the page uses it; it prints how many instances a change names."""


@pytest.mark.parametrize(("instances", "calls"), [(0, []), (3, [3]), (120, [50, 50, 20])])
def test_protection_is_taken_off_groups_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instances: int, calls: list[int]
) -> None:
    """EC2 Auto Scaling takes 50 instances in one call; those left protected are never ended."""
    text = (DOCS / "migrating-from-kubernetes-ec2-autoscaler.md").read_text()
    (command,) = re.findall(r"^    (aws .*set-instance-protection .*)$", text, re.MULTILINE)
    program, ids = tmp_path / "aws", tmp_path / "ids"
    program.write_text(AWS)
    program.chmod(0o755)
    ids.write_text("\t".join(f"i-{number:03}" for number in range(instances)) + "\n")
    shell = shutil.which("sh")
    assert shell is not None
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("IDS", str(ids))
    done = subprocess.run([shell, "-c", command], check=True, capture_output=True, text=True)
    assert [int(line) for line in done.stdout.split()] == calls
