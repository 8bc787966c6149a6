"""Every command meets every kind of bad input with one clear line and the right exit code."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command import reconciler

CONFIG = """cluster: analytics
regions: [us-west-2]
sectors:
  primary:
    kind: memory
    fleets:
    - {size: small}
"""
CLUSTER = '{"kind": "List", "apiVersion": "v1", "items": []}'


def missing(path: Path) -> None:
    """No such file."""


def directory(path: Path) -> None:
    """A directory of that name."""
    path.mkdir()


def binary(path: Path) -> None:
    """Bytes that are no text."""
    path.write_bytes(bytes(range(256)) * 64)


def empty(path: Path) -> None:
    """Nothing."""
    path.write_bytes(b"")


def huge(path: Path) -> None:
    """Larger than any honest config; sparse, so that it costs nothing."""
    with path.open("wb") as stream:
        stream.truncate(3 << 30)


def wrong_shape(path: Path) -> None:
    """Well-formed, but something else."""
    path.write_text('["a", 1, null]\n')


def truncated(path: Path) -> None:
    """Cut off in the middle."""
    path.write_text('{"kind": "List", "items": [{"kind": "Pod", "meta')


BAD = (missing, directory, binary, empty, huge, wrong_shape, truncated)
COMMANDS = {
    "validate": ("validate", "BAD"),
    "render": ("render", "--config", "BAD", "--out", "out"),
    "plan --config": ("plan", "--config", "BAD", "--cluster", "cluster.json"),
    "plan --cluster": ("plan", "--config", "good.yaml", "--cluster", "BAD"),
    "plan --aws": ("plan", "--config", "good.yaml", "--cluster", "cluster.json", "--aws", "BAD"),
    "plan live": ("plan", "--config", "good.yaml", "--kubeconfig", "BAD"),
    "run": ("run", "--once", "--listen", "127.0.0.1:0", "--config", "BAD"),
    "run --kubeconfig": (
        "run", "--once", "--listen", "127.0.0.1:0", "--config", "good.yaml", "--kubeconfig", "BAD",
    ),
    "snapshot": ("snapshot", "--config", "BAD", "--out", "out"),
    "gitops": ("gitops", "--once", "--repository", "BAD"),
    "ci plan": ("ci", "plan", "--dir", "BAD", "--out", "out"),
    "ci apply": ("ci", "apply", "--dir", "terraform", "--plan", "BAD"),
    "demo --trace": ("demo", "--out", "out", "--trace", "BAD"),
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.__name__)
@pytest.mark.parametrize("command", COMMANDS)
def test_bad_input_is_one_line_and_an_exit_code(
    command: str, bad: Callable[[Path], None], tmp_path: Path
) -> None:
    """At three in the morning a traceback says nothing, and a silent success says worse."""
    (tmp_path / "good.yaml").write_text(CONFIG)
    (tmp_path / "cluster.json").write_text(CLUSTER)
    (tmp_path / "terraform").mkdir()
    bad(tmp_path / "BAD")
    done = reconciler(*COMMANDS[command], cwd=tmp_path)
    assert done.returncode in {1, 2}, (done.returncode, done.stdout[-500:], done.stderr[-500:])
    assert "Traceback" not in done.stderr
    if command != "validate":
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert errors, done.stderr[-800:]
        assert len(max(errors, key=len)) < 1_000


@pytest.mark.parametrize("command", ["validate", "render", "plan --config", "run", "snapshot"])
def test_bad_config_exits_2(command: str, tmp_path: Path) -> None:
    """Scripts tell an invalid config from a failure by the code."""
    (tmp_path / "cluster.json").write_text(CLUSTER)
    (tmp_path / "BAD").write_text(
        "cluster: analytics\nsectors: {primary: {fleets: [{size: huge}]}}\n"
    )
    done = reconciler(*COMMANDS[command], cwd=tmp_path)
    assert done.returncode == 2, done.stderr
