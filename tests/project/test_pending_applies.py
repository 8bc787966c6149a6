"""Which plans of a run on GitHub ask for an approval."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.project.pipelines import github, steps_of

TIMEOUT_SECONDS = 60
ROOTS = [
    {"name": "a", "dir": "a/terraform", "config": "a/sectors.yaml", "cluster": "one"},
    {"name": "a-1", "dir": "a-1/terraform", "config": "a-1/sectors.yaml", "cluster": "two"},
]


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ({"began-a-1", "plan-a-1", "began-a-1-1"}, {"a": "plan-a-1"}),
        # Started again: the second plan of `a` was refused, or has nothing to apply any more.
        ({"began-a-1", "plan-a-1", "began-a-2"}, {}),
        # Only failed jobs were started again, and the plan of `a` was none of them.
        (
            {"began-a-1", "plan-a-1", "began-a-1-1", "began-a-1-2", "plan-a-1-2"},
            {"a": "plan-a-1", "a-1": "plan-a-1-2"},
        ),
        # The tenth attempt is newer than the ninth.
        ({"began-a-9", "plan-a-9", "began-a-10", "plan-a-10"}, {"a": "plan-a-10"}),
        ({"began-a-9", "plan-a-9", "began-a-10"}, {}),
        # Each is only half a name of another root's.
        ({"began-a-1-1", "plan-a-1-1", "plan-b-a-1", "plans"}, {"a-1": "plan-a-1-1"}),
        (set(), {}),
    ],
)
def test_plan_of_an_earlier_attempt_asks_for_no_approval(
    tmp_path: Path, kept: set[str], expected: dict[str, str]
) -> None:
    """GitHub keeps what each attempt of a run uploaded: a plan that was refused since stayed."""
    if shutil.which("jq") is None:
        pytest.skip("jq is not on the PATH")
    program = tmp_path / "gh"
    (tmp_path / "names").write_text("".join(f"{name}\n" for name in sorted(kept)))
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/names\n")
    program.chmod(0o755)
    (step,) = steps_of("pending")
    done = subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", step["run"]],
        env={
            "PATH": f"{tmp_path}:{os.environ['PATH']}",  # noqa: TID251 - jq is somewhere there
            "RUNNER_TEMP": str(tmp_path),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GITHUB_REPOSITORY": "team/fleets",
            "GITHUB_RUN_ID": "1",
            "ROOTS": json.dumps(ROOTS),
        },
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "output").read_text().removeprefix("list="))
    assert {root["name"]: root["plan"] for root in found} == expected
    assert all({**root, "plan": ""} in [{**each, "plan": ""} for each in ROOTS] for root in found)


def test_each_attempt_uploads_under_a_name_of_its_own() -> None:
    """That it began first: whatever ends the job then, no earlier plan counts any more."""
    plan = steps_of("plan")
    uploads = [step for step in plan if "upload-artifact" in step.get("uses", "")]
    names = [step["with"]["name"] for step in uploads]
    attempt = "${{ matrix.root.name }}-${{ github.run_attempt }}"
    assert names == [f"began-{attempt}", f"plan-{attempt}"]
    assert uploads[0] is plan[1]
    assert "github.event_name != 'pull_request'" in uploads[0]["if"]
    (download,) = [s for s in steps_of("apply") if "download-artifact" in s.get("uses", "")]
    assert download["with"]["name"] == "${{ matrix.root.plan }}"
    matrix = github()["jobs"]["apply"]["strategy"]["matrix"]["root"]
    assert matrix == "${{ fromJSON(needs.pending.outputs.list) }}"
