"""`reconciler manifest` without a role: it can be meant, and mostly is forgotten."""

from pathlib import Path

from tests.unit.install.command import ROLE, run


def test_missing_identity_is_warned_of_and_a_stated_one_is_not(tmp_path: Path) -> None:
    """Pods with the node's role start, and then every change of a fleet is denied."""
    forgotten = run(tmp_path)
    assert forgotten.returncode == 0
    assert "warning: --identity is not given" in forgotten.stderr
    for stated in ("none", f"irsa={ROLE}"):
        done = run(tmp_path, "--identity", stated)
        assert (done.returncode, done.stderr) == (0, "")
    assert run(tmp_path, "--identity", "none").stdout == forgotten.stdout
