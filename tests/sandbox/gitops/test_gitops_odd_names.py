"""The second loop over repositories whose file names nobody would choose."""

import os
from pathlib import Path

import pytest

from reconciler.loops.second_loop.gitops_loop import GitopsSettings
from tests.git_remote import git, write_and_push
from tests.sandbox.gitops.loop_world import Loops, RecordingForge, config

pytestmark = pytest.mark.sandbox

CLUSTERS = GitopsSettings(version="1.0.0", configs=("clusters/*/sectors.yaml",))


@pytest.mark.parametrize("odd", [b"caf\xe9", b"line\nfeed", "caf\u00e9".encode(), b'quo"te', b"-x"])
def test_config_in_an_odd_folder_holds_no_other_up(loops: Loops, work: Path, odd: bytes) -> None:
    """One push with an old file system's names would end the program, again at each start."""
    write_and_push(work, "clusters/one/sectors.yaml", config(5), "One")
    folder = work / "clusters" / os.fsdecode(odd)
    folder.mkdir()
    (folder / "sectors.yaml").write_text(config(5, "two"))
    git(work, "add", "--all")
    git(work, "commit", "-qm", "Two")
    git(work, "push", "-q", "origin", "HEAD:main")
    loop = loops(CLUSTERS, forge=RecordingForge())
    states = {cluster.target.config_path: cluster.state for cluster in loop.once().clusters}
    assert states["clusters/one/sectors.yaml"] == "committed"
    assert loop.once().clusters
