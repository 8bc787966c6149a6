"""What the pods of the install are to the program itself, and to each other."""

from pathlib import Path

import pytest
import yaml

from reconciler.config.schema import SectorConfig
from reconciler.install.settings import Gitops, extra_paths
from reconciler.model.errors import UsageError
from reconciler.planner.rules import Verdict
from tests.unit.install.command import CONFIG, run
from tests.unit.install.rendered import REPOSITORY, objects, pod_of, ruled, settings


@pytest.mark.parametrize("gitops", [None, Gitops(repository=REPOSITORY)], ids=["one", "two loops"])
def test_nodes_of_the_own_pods_can_be_emptied(gitops: Gitops | None) -> None:
    """No rolling update would ever end: its last nodes are those that the reconciler runs on."""
    ruling = ruled(pod_of(settings(gitops=gitops, sector="coordinate")))
    assert ruling.verdict is Verdict.OK, ruling


@pytest.mark.parametrize("path", ["../a.json", "a..b", "a/../b", "b.", "a//b", "\u00fc.json"])
def test_file_without_a_key_of_its_own_is_refused(path: str) -> None:
    """`a/b` and `a..b` are one key of the ConfigMap: the pods would read the wrong file."""
    with pytest.raises(UsageError, match="cannot be put into a ConfigMap"):
        extra_paths(SectorConfig(cluster="a", catalogue=path))
    for taken in ("a/b.json", ".a/.b.c", "x_y-z"):
        assert extra_paths(SectorConfig(cluster="a", catalogue=taken)) == (taken,)


def test_one_replica_without_an_election_is_replaced_after_it_has_ended(tmp_path: Path) -> None:
    """In a rolling update the old one and the new one would both act."""
    config = CONFIG + "leader_election: {enabled: false}\n"
    done = run(tmp_path, "--replicas", "1", "--identity", "none", config=config)
    assert (done.returncode, done.stderr) == (0, "")
    (made,) = (d for d in yaml.safe_load_all(done.stdout) if d["kind"] == "Deployment")
    assert made["spec"]["strategy"] == {"type": "Recreate"}
    assert objects(settings())["Deployment"]["spec"]["strategy"]["type"] == "RollingUpdate"
