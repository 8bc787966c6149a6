"""`reconciler ci` as a process over real Terraform, local state and terraform_data only."""

import json
from pathlib import Path

import pytest

from tests.git_remote import git
from tests.sandbox.gitops.local_checkout import (
    SLOW,
    applied,
    planned,
    reconciler,
    set_config,
    set_text,
)
from tests.terraform.needs import needs_terraform

pytestmark = [pytest.mark.sandbox, pytest.mark.terraform, needs_terraform]


def test_plan_is_kept_with_digest_and_summary_then_applied(checkout: Path) -> None:
    """The way every change takes."""
    report = planned(checkout)
    kept = checkout.parent / "plan"
    assert {p.name for p in kept.iterdir()} >= {"plan.tfplan", "report.json", "summary.md"}
    assert json.loads((kept / "report.json").read_text()) == report
    assert report["digest"] in (kept / "summary.md").read_text()
    assert report["binding"]["commit"] == git(checkout, "rev-parse", "HEAD")
    assert report["counts"] == {"create": 1}
    assert kept.stat().st_mode & 0o077 == 0
    done = applied(checkout, "--digest", report["digest"])
    assert done.returncode == 0, done.stderr
    assert "1 added" in json.loads(done.stdout)["message"]


def test_plan_with_the_cluster_says_what_becomes_of_its_pods(checkout: Path) -> None:
    """Nothing is touched here, so nothing is said; a file that is no cluster is an error."""
    (checkout / "sectors.yaml").write_text(
        "cluster: one\nregions: [us-west-2]\n"
        "sectors: {primary: {kind: memory, fleets: [{size: small}]}}\n"
    )
    (checkout / "cluster.json").write_text('{"kind": "List", "apiVersion": "v1", "items": []}')
    assert planned(checkout, "--cluster", "cluster.json")["pods"] == []
    plan = ("ci", "plan", "--dir", "terraform", "--out", "../plan")
    refused = reconciler(*plan, "--cluster", "nowhere.json", cwd=checkout)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)


def test_plan_of_a_change_is_replayed_against_the_config_before(checkout: Path) -> None:
    """Who reviews a smaller size sees that no pod would fit, before the merge."""
    config = (
        "cluster: one\nregions: [us-west-2]\ndefault_sector: primary\n"
        "sectors: {primary: {kind: cpu, fleets: [{size: SIZE}]}}\n"
    )
    pod = {
        "t": "2026-03-01T12:00:00Z",
        "kind": "pod",
        "id": "a",
        "spec": {"containers": [{"resources": {"requests": {"cpu": "12"}}}]},
        "ran_seconds": 600,
    }
    (checkout.parent / "demand.jsonl").write_text(json.dumps(pod) + "\n")
    (checkout / "sectors.yaml").write_text(config.replace("SIZE", "large"))
    set_text(checkout, "two")
    (checkout / "sectors.yaml").write_text(config.replace("SIZE", "small"))
    set_text(checkout, "three")
    replay = planned(checkout, "--replay", "../demand.jsonl")["replay"]
    assert replay["before"]["waiting"]["without_a_node_at_the_end"] == 0
    assert replay["after"]["waiting"]["without_a_node_at_the_end"] == 1
    summary = (checkout.parent / "plan" / "summary.md").read_text()
    assert "### Replayed: `demand.jsonl`" in summary
    assert "**1 pod finds no node**" in summary
    alone = planned(checkout, "--replay", "../demand.jsonl", "--replay-base", "HEAD~9")["replay"]
    assert alone["before"] is None
    assert "there is no commit HEAD~9 here" in alone["problem"]
    missing = planned(checkout, "--replay", "../nowhere.jsonl")
    assert "nowhere.jsonl" in missing["replay"]["problem"]


def test_detailed_exit_codes_are_terraforms_own(checkout: Path) -> None:
    """Pipelines branch on 0, 1 and 2."""
    plan = ("ci", "plan", "--dir", "terraform", "--out", "../plan", "--detailed-exitcode")
    drift = ("ci", "drift", "--dir", "terraform", "--detailed-exitcode")
    assert reconciler(*plan, cwd=checkout).returncode == 2
    assert reconciler(*drift, cwd=checkout).returncode == 2
    assert applied(checkout).returncode == 0
    assert reconciler(*plan, cwd=checkout).returncode == 0
    assert reconciler(*drift, cwd=checkout).returncode == 0
    (checkout / "sectors.yaml").write_text("cluster: [")
    assert reconciler(*plan, cwd=checkout).returncode == 1
    assert reconciler(*plan[:-1], cwd=checkout).returncode == 2


def test_apply_of_a_plan_from_another_commit_is_refused(checkout: Path) -> None:
    """Merging twice in a row must not apply the first plan on top of the second config."""
    planned(checkout)
    set_text(checkout, "two")
    done = applied(checkout)
    assert done.returncode == 1
    assert "the commit was" in done.stderr
    assert not (checkout / "terraform" / "terraform.tfstate").exists()


@pytest.mark.parametrize(
    ("changed", "code"),
    [("other/sectors.yaml", 0), ("sectors.yaml", 1), ("terraform/README.md", 1)],
)
def test_commit_that_leaves_this_cluster_alone_need_not_stop_its_apply(
    checkout: Path, changed: str, code: int
) -> None:
    """With many clusters in one repository somebody always merges while another waits."""
    (checkout / "sectors.yaml").write_text("cluster: one\n")
    set_text(checkout, "two")
    planned(checkout)
    (checkout / changed).parent.mkdir(exist_ok=True)
    (checkout / changed).write_text("# new\ncluster: one\n" if changed.endswith("yaml") else "")
    git(checkout, "add", "--all")
    git(checkout, "commit", "-qm", "Meanwhile")
    strict = applied(checkout)
    assert strict.returncode == 1
    assert "the commit was" in strict.stderr
    done = applied(checkout, "--allow-newer-commit")
    assert done.returncode == code, done.stderr


def test_apply_with_edited_files_is_refused(checkout: Path) -> None:
    """Same commit, other files: a dirty runner."""
    planned(checkout)
    (checkout / "terraform" / "extra.tf").write_text("# edited\n")
    done = applied(checkout)
    assert done.returncode == 1
    assert "extra.tf: file/foreign" in done.stderr


def test_apply_after_the_state_moved_is_refused(checkout: Path) -> None:
    """Somebody applied in between: what was reviewed is no longer what would happen."""
    planned(checkout)
    second = reconciler("ci", "plan", "--dir", "terraform", "--out", "../other", cwd=checkout)
    assert second.returncode == 0
    other = reconciler("ci", "apply", "--dir", "terraform", "--plan", "../other", cwd=checkout)
    assert other.returncode == 0, other.stderr
    done = applied(checkout)
    assert done.returncode == 1
    assert "state" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("what", ["plan.tfplan", "serial", "changes", "digest"])
def test_apply_of_a_plan_that_was_tampered_with_is_refused(checkout: Path, what: str) -> None:
    """An artifact store is not a safe place."""
    digest = planned(checkout)["digest"]
    kept = checkout.parent / "plan"
    if what == "plan.tfplan":
        (kept / what).write_bytes((kept / what).read_bytes() + b"x")
    elif what == "digest":
        digest = "0" * 64
    else:
        was, by = {"serial": (0, 1), "changes": ("true", "false")}[what]
        text = (kept / "report.json").read_text()
        assert f'"{what}": {was}' in text
        (kept / "report.json").write_text(text.replace(f'"{what}": {was}', f'"{what}": {by}'))
    done = applied(checkout, "--digest", digest)
    assert done.returncode == 1
    assert not (checkout / "terraform" / "terraform.tfstate").exists()


def test_lock_is_taken_away_although_the_killed_run_left_its_imports(checkout: Path) -> None:
    """A run that is killed while it plans leaves both; the file was not rendered."""
    left = checkout / "terraform" / "reconciler_left_behind.tf"
    left.write_text('import {\n  to = terraform_data.thing\n  id = "x"\n}\n')
    done = reconciler("ci", "unlock", "--dir", "terraform", "7e1f", cwd=checkout)
    assert "file/foreign" not in done.stderr
    assert not left.exists()


def test_apply_without_a_plan_says_what_to_do(checkout: Path) -> None:
    """A lost artifact must not end in a traceback."""
    done = applied(checkout)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "ci plan" in done.stderr


def test_plan_without_changes_applies_nothing(checkout: Path) -> None:
    """A pipeline runs on every merge, most of which change no fleet."""
    planned(checkout)
    applied(checkout)
    report = planned(checkout)
    assert not report["changes"]
    assert "No changes" in json.loads(applied(checkout).stdout)["message"]


def test_refused_plan_leaves_nothing_to_apply(checkout: Path) -> None:
    """A red pipeline must not leave a plan that somebody applies by hand."""
    (checkout / "terraform" / "main.tf").write_text(SLOW)
    set_text(checkout, "slow")
    done = reconciler("ci", "plan", "--dir", "terraform", "--out", "../plan", cwd=checkout)
    assert done.returncode == 1
    assert "resource/provisioner" in done.stderr
    assert not (checkout.parent / "plan" / "plan.tfplan").exists()
    assert "Refused" in (checkout.parent / "plan" / "summary.md").read_text()
    assert "guard refused" in applied(checkout).stderr


def test_program_that_would_run_at_a_removal_is_refused(checkout: Path) -> None:
    """Terraform's plan shows a plain removal, and the apply runs it with the role that writes."""
    planned(checkout)
    assert applied(checkout).returncode == 0
    (checkout / "terraform" / "main.tf").write_text(
        "removed {\n  from = terraform_data.thing\n  lifecycle {\n    destroy = true\n  }\n"
        '  provisioner "local-exec" {\n    when    = destroy\n    command = "touch ran"\n  }\n}\n'
    )
    git(checkout, "commit", "-qam", "Tidy up")
    done = reconciler("ci", "plan", "--dir", "terraform", "--out", "../plan", cwd=checkout)
    assert done.returncode == 1
    assert "main.tf: resource/provisioner" in done.stderr
    assert not (checkout.parent / "plan" / "plan.tfplan").exists()


def test_invalid_module_fails_with_its_place(checkout: Path) -> None:
    """The author needs the line, not Terraform's whole output."""
    (checkout / "terraform" / "main.tf").write_text('resource "terraform_data" "x" {\n no = 1\n}\n')
    done = reconciler("ci", "plan", "--dir", "terraform", "--out", "../plan", cwd=checkout)
    assert done.returncode == 1
    assert "main.tf:2" in done.stderr


def test_missing_terraform_is_one_line(checkout: Path, tmp_path: Path) -> None:
    """A runner image without Terraform must say so."""
    done = reconciler(
        "ci",
        "plan",
        "--dir",
        "terraform",
        "--out",
        "../plan",
        cwd=checkout,
        environment={"RECONCILER_TERRAFORM": str(tmp_path / "nowhere")},
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: terraform")
    assert done.stderr.count("\n") == 1


def test_summary_is_what_a_terminal_sees(checkout: Path) -> None:
    """The same text on the laptop and in the pull request."""
    done = reconciler(
        "ci", "plan", "--dir", "terraform", "--out", "../plan", "-o", "table", cwd=checkout
    )
    assert done.stdout == (checkout.parent / "plan" / "summary.md").read_text()


def test_drift_is_reported_even_when_the_config_is_broken(checkout: Path) -> None:
    """The nightly report must not fall silent because of a typo."""
    (checkout / "sectors.yaml").write_text("cluster: [")
    done = reconciler("ci", "drift", "--dir", "terraform", "-o", "json", cwd=checkout)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["drift"]


def test_backend_file_is_found_from_where_the_command_was_given(checkout: Path) -> None:
    """Terraform runs in the root module, the person does not."""
    (checkout / "terraform" / "backend.tf").write_text('terraform {\n  backend "local" {}\n}\n')
    (checkout / "backend.hcl").write_text(f'path = "{checkout.parent}/kept.state"\n')
    set_text(checkout, "three")
    planned(checkout, "--backend-config", "backend.hcl")
    done = applied(checkout, "--backend-config", "backend.hcl")
    assert done.returncode == 0, done.stderr
    assert (checkout.parent / "kept.state").is_file()


def test_config_without_a_cluster_takes_the_rendered_name(checkout: Path) -> None:
    """A Kluster Fleet Manager config names no cluster; its plan must be judged all the same."""
    planned(checkout)
    applied(checkout)
    set_config(checkout, cluster="", rendered='{"cluster_name": "blue"}')
    (checkout / "cluster.json").write_text('{"kind": "List", "apiVersion": "v1", "items": []}')
    report = planned(checkout, "--cluster", "cluster.json")
    assert (report["cluster"], report["pods"]) == ("blue", [])
