"""`reconciler sandbox up --control-plane kwok`, as a person runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.waiting import until

_INSIDE = """
import json, os
from kubernetes import client, config
config.load_kube_config()
print(json.dumps({
    "version": client.VersionApi().get_code().git_version,
    "classes": [c.metadata.name for c in client.StorageV1Api().list_storage_class().items],
    "folder": os.environ["KUBECONFIG"],
    "aws": os.environ["AWS_ENDPOINT_URL"],
}))
"""


def test_command_runs_inside_a_real_cluster_and_nothing_is_left(
    programs: Path, tmp_path: Path
) -> None:
    """What works in the sandbox's twin and not here would be found in production."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("KUBE")}  # noqa: TID251 - a child's
    environment = {**inherited, "RECONCILER_E2E_BIN": str(programs), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "reconciler", "sandbox", "up", "--control-plane", "kwok"),
            *("--", sys.executable, "-c", _INSIDE),
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["version"].startswith("v1.")
    assert found["classes"] == ["gp3"]
    assert found["aws"].startswith("http://127.0.0.1:")
    until("its folder is gone", lambda: not Path(found["folder"]).exists())


def test_without_go_the_command_says_what_to_install(tmp_path: Path) -> None:
    """A traceback of a missing program leaves the reader without a next step."""
    environment = {"PATH": str(tmp_path), "RECONCILER_E2E_CACHE": str(tmp_path)}
    done = subprocess.run(
        [*(sys.executable, "-m", "reconciler", "sandbox", "up", "--control-plane", "kwok")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: go: is not on the PATH")
    assert "RECONCILER_E2E_BIN" in line
