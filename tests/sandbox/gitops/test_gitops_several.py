"""Several clusters in one repository: none becomes another, and none is made twice."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from reconciler.loops.second_loop.gitops_loop import GitopsLoop, GitopsSettings
from reconciler.model.errors import Unavailable
from reconciler.ports.forge import CommitStatus, StatusState
from reconciler.ports.repository import CommitId
from tests.git_remote import git, write_and_push
from tests.sandbox.gitops.loop_world import (
    SETTINGS,
    ImmediateClock,
    Loops,
    RecordingForge,
    branch_of,
    changed_clusters,
    config,
    merged,
    pulled,
    remote_of,
)

pytestmark = pytest.mark.sandbox

CLUSTERS = GitopsSettings(version="1.0.0", configs=("clusters/*/sectors.yaml",))


def written(cluster: str, *, subnet: str, key: str) -> str:
    """A config with its subnets and its state."""
    return (
        f"{config(5, cluster)}terraform:\n  ami: ami-0aa\n"
        f"  security_group_id: sg-0aa\n  private_subnet_ids: {{us-west-2a: {subnet}}}\n"
        f"  backend: {{bucket: states, key: {key}, region: us-west-2}}\n"
    )


def push(work: Path, folder: str, text: str) -> None:
    """A person changes one cluster."""
    pulled(work)
    write_and_push(work, f"clusters/{folder}/sectors.yaml", text, f"Change {folder}")


def states(loop: GitopsLoop) -> dict[str, str]:
    """How each cluster ended, by its folder."""
    return {
        cluster.target.config_path.split("/")[1]: cluster.state for cluster in loop.once().clusters
    }


@pytest.mark.parametrize(
    ("copied", "said"),
    [
        (
            written("one", subnet="subnet-1", key="b.tfstate"),
            "fleet primary-medium of cluster one in subnet-1",
        ),
        (written("two", subnet="subnet-2", key="a.tfstate"), "the state a.tfstate in bucket"),
    ],
)
def test_copied_folder_takes_no_other_clusters_fleets(
    loops: Loops, work: Path, copied: str, said: str
) -> None:
    """Two root modules over the same fleets would undo each other, each with an approved plan."""
    push(work, "a", written("one", subnet="subnet-1", key="a.tfstate"))
    loop = loops(CLUSTERS)
    assert states(loop) == {"a": "committed"}
    push(work, "b", copied)
    assert states(loop) == {"a": "unchanged", "b": "invalid"}
    assert states(loops(CLUSTERS)) == {"a": "unchanged", "b": "invalid"}
    (_, refused) = loop.once().clusters
    assert said in refused.detail
    assert "clusters/a/sectors.yaml" in refused.detail
    push(work, "b", written("two", subnet="subnet-2", key="b.tfstate"))
    assert states(loop) == {"a": "unchanged", "b": "committed"}


def test_folder_that_was_copied_with_its_render_is_reported(loops: Loops, work: Path) -> None:
    """Nothing differs, so that the copy went unseen until a capacity loop started again."""
    push(work, "a", written("one", subnet="subnet-1", key="a.tfstate"))
    push(work, "c", written("three", subnet="subnet-3", key="c.tfstate"))
    forge = RecordingForge()
    loop = loops(CLUSTERS, forge=forge)
    assert states(loop) == {"a": "committed", "c": "committed"}
    pulled(work)
    shutil.copytree(work / "clusters/a", work / "clusters/b")
    git(work, "add", "--all")
    git(work, "commit", "-qm", "Copy a folder, to be edited")
    git(work, "push", "-q", "origin", "HEAD:main")
    push(work, "c", written("three", subnet="subnet-3", key="d.tfstate"))
    for again in (loop, loops(CLUSTERS, forge=forge)):
        report = again.once()
        found = {cluster.target.config_path.split("/")[1]: cluster for cluster in report.clusters}
        assert (found["a"].state, found["b"].state) == ("invalid", "invalid")
        assert found["c"].healthy
        assert "clusters/b/sectors.yaml describes that too" in found["a"].detail
        assert "clusters/a/sectors.yaml describes that too" in found["b"].detail
        assert report.exit_code == 2
    push(work, "b", written("two", subnet="subnet-2", key="b.tfstate"))
    assert states(loop) == {"a": "unchanged", "b": "committed", "c": "unchanged"}


@pytest.mark.parametrize(
    "fault", [lambda text: text.replace("{", "[", 1), lambda text: f"{text}nonsense: 1\n"]
)
@pytest.mark.parametrize("key", ["a.tfstate", "b.tfstate"])
def test_copied_folder_takes_nothing_over_while_the_original_has_a_fault(
    loops: Loops, work: Path, key: str, fault: Callable[[str], str]
) -> None:
    """A slip of one poll would leave two root modules over the same fleets for good."""
    original = written("one", subnet="subnet-1", key="a.tfstate")
    push(work, "a", original)
    assert states(loops(CLUSTERS)) == {"a": "committed"}
    push(work, "b", written("one", subnet="subnet-1", key=key))
    push(work, "a", fault(original))
    loop = loops(CLUSTERS)
    assert states(loop) == {"a": "invalid", "b": "invalid"}
    assert "clusters/a/sectors.yaml describes that too" in loop.once().clusters[1].detail
    push(work, "a", original)
    assert states(loop) == {"a": "unchanged", "b": "invalid"}


def test_two_configs_in_one_directory_hold_up_no_other_cluster(loops: Loops, work: Path) -> None:
    """A copy that somebody kept beside a config would stop every team of the repository."""
    settings = GitopsSettings(version="1.0.0", configs=("clusters/*/*.yaml",))
    push(work, "a", written("one", subnet="subnet-1", key="a.tfstate"))
    push(work, "b", written("two", subnet="subnet-2", key="b.tfstate"))
    copied = "clusters/b/sectors-old.yaml"
    write_and_push(work, copied, written("two", subnet="subnet-2", key="b.tfstate"), "Keep it")
    loop = loops(settings, forge=RecordingForge())
    found = {cluster.target.config_path: cluster for cluster in loop.once().clusters}
    assert found["clusters/a/sectors.yaml"].state == "committed"
    for path in (copied, "clusters/b/sectors.yaml"):
        assert found[path].state == "invalid"
        assert "would share clusters/b/terraform" in found[path].detail
    pulled(work)
    git(work, "rm", "-q", copied)
    git(work, "commit", "-qm", "Tidy up")
    git(work, "push", "-q", "origin", "HEAD:main")
    assert loop.once().clusters[1].state == "committed"


def test_missing_config_beside_a_found_one_holds_up_no_other_cluster(
    loops: Loops, work: Path
) -> None:
    """A config that was renamed, and is still looked for by its old name, stopped every cluster."""
    settings = GitopsSettings(
        version="1.0.0", configs=("clusters/*/*.yaml", "clusters/b/sectors.yaml")
    )
    push(work, "a", config(5, "one"))
    write_and_push(work, "clusters/b/reports.yaml", config(5, "two"), "Another name")
    found = {cluster.target.config_path: cluster for cluster in loops(settings).once().clusters}
    assert found["clusters/a/sectors.yaml"].state == "committed"
    for name in ("reports", "sectors"):
        assert "would share clusters/b/terraform" in found[f"clusters/b/{name}.yaml"].detail


def test_clusters_of_one_name_in_two_accounts_are_two(loops: Loops, work: Path) -> None:
    """Names of clusters are an account's own affair; subnets are nobody else's."""
    push(work, "a", written("prod", subnet="subnet-1", key="a.tfstate"))
    push(work, "b", written("prod", subnet="subnet-2", key="b.tfstate"))
    assert states(loops(CLUSTERS)) == {"a": "committed", "b": "committed"}


def test_name_given_to_the_loop_makes_no_two_clusters_one(loops: Loops, work: Path) -> None:
    """The capacity loop's --cluster-name is handed on to the loop beside it."""
    settings = GitopsSettings(version="1.0.0", configs=CLUSTERS.configs, cluster_name="mine")
    push(work, "a", config(5, "one"))
    push(work, "b", config(5, "two").partition("\n")[2])
    named = {cluster.cluster for cluster in loops(settings).once().clusters}
    assert named == {"one", "mine"}


@pytest.mark.parametrize("path", ["sectors.yaml", "./sectors.yaml"])
def test_name_given_to_the_loop_is_the_only_configs_however_it_is_written(
    loops: Loops, path: str
) -> None:
    """Fleets would be tagged with the name of another cluster, and be nobody's."""
    settings = GitopsSettings(version="1.0.0", configs=(path,), cluster_name="mine")
    assert [cluster.cluster for cluster in loops(settings).once().clusters] == ["mine"]


class OneOddConfig(GitRepository):
    """A repository in which reading one config meets a bug."""

    def read(self, commit: CommitId, path: str) -> bytes:
        if path == "clusters/b/sectors.yaml":
            raise ValueError("nobody foresaw this")
        return super().read(commit, path)


def test_bug_that_one_config_leads_to_holds_up_no_other_cluster(loops: Loops, work: Path) -> None:
    """The loop would end at every start, and nobody's config would be rendered any more."""
    for folder in ("a", "b", "c"):
        push(work, folder, config(5, folder))
    repository = OneOddConfig(GitSettings(url=remote_of(work)))
    loop = loops(CLUSTERS, repository, forge=RecordingForge())
    assert states(loop) == {"a": "committed", "b": "invalid", "c": "committed"}
    odd = loop.once().clusters[1].detail
    assert "rendering it fails: ValueError: nobody foresaw this" in odd


def test_review_of_one_cluster_holds_up_no_other(loops: Loops, work: Path) -> None:
    """A pull request that waits, or was closed, must not keep another team's from being opened."""
    settings = replace(SETTINGS, mode="pull-request", configs=("clusters/*/sectors.yaml",))
    forge = RecordingForge()
    loop = loops(settings, forge=forge)
    branches = {}
    for name in ("b", "a", "c"):
        text = config(5, cluster=name)
        head = write_and_push(work, f"clusters/{name}/sectors.yaml", text, f"Add {name}")
        branches[name] = branch_of(head, f"clusters/{name}/sectors.yaml")
        loop.once()
    for name, branch in branches.items():
        assert changed_clusters(work, branch) == {name}
    assert {request[0] for request in forge.pull_requests} == set(branches.values())
    report = loop.once()
    assert {cluster.cluster: cluster.branch for cluster in report.clusters} == branches
    assert len({cluster.pull_request for cluster in report.clusters}) == len(branches)


@pytest.mark.parametrize("together", [True, False])
def test_clusters_of_one_commit_are_proposed_apart(
    loops: Loops, work: Path, *, together: bool
) -> None:
    """The second of two loops called proposed what no branch held, and nobody ever reviewed it."""
    paths = [f"clusters/{name}/sectors.yaml" for name in ("a", "b")]
    for name, path in zip("ab", paths, strict=True):
        (work / path).parent.mkdir(parents=True)
        (work / path).write_text(config(5, cluster=name))
    git(work, "add", "--all")
    write_and_push(work, "README.md", "two clusters\n", "Add both")
    forge = RecordingForge()
    followed = [tuple(paths)] if together else [(path,) for path in paths]
    gitops_loops = [
        loops(replace(SETTINGS, mode="pull-request", configs=configs), forge=forge)
        for configs in followed
    ]
    found = {s.cluster: s for loop in gitops_loops for s in loop.once().clusters}
    assert {s.state for s in found.values()} == {"proposed"}
    assert {name: changed_clusters(work, s.branch) for name, s in found.items()} == {
        "a": {"a"},
        "b": {"b"},
    }
    assert len({s.pull_request for s in found.values()}) == 2
    assert ["clusters/a" in title for _, _, title, _ in forge.pull_requests] == [True, False]
    merged(work, found["a"].branch, "squash")
    again = {s.cluster: s for loop in gitops_loops for s in loop.once().clusters}
    assert again["a"].state == "unchanged"
    assert (again["b"].branch, again["b"].state) == (found["b"].branch, "proposed")
    assert changed_clusters(work, found["b"].branch) == {"b"}


def test_push_that_is_refused_for_one_cluster_holds_up_no_other(loops: Loops, work: Path) -> None:
    """A rule of the forge on one team's paths would keep every other cluster from its render."""
    hook = Path(remote_of(work)) / "hooks" / "pre-receive"
    for name in ("a", "b", "c"):
        push(work, name, config(5, name))
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        "#!/bin/sh\nread old new ref\nif git diff --name-only $old $new | grep -q ^clusters/b/; "
        "then echo 'GH013: rule violations' >&2; exit 1; fi\n"
    )
    hook.chmod(0o755)
    forge = RecordingForge()
    loop = loops(CLUSTERS, forge=forge)
    report = loop.once()
    assert states(loop) == {"a": "unchanged", "b": "refused", "c": "unchanged"}
    first = {cluster.cluster: cluster for cluster in report.clusters}
    assert {name: each.state for name, each in first.items()} == {
        "a": "committed",
        "b": "refused",
        "c": "committed",
    }
    assert "clusters/c/terraform/main.tf" in pulled(work)
    assert first["c"].commit == git(work, "rev-parse", "HEAD")
    assert (first["b"].commit, first["b"].branch, report.exit_code) == (None, "", 1)
    assert "hook declined" in first["b"].detail
    assert [cluster_progress.stage for cluster_progress in report.progress] == [
        "rendered",
        "configured",
        "rendered",
    ]
    shown = {status.context: status.state for _, status in forge.statuses_shown}
    assert shown["fleet-reconciler/clusters/b/sectors.yaml"] == "failure"
    hook.unlink()
    assert states(loop) == {"a": "unchanged", "b": "committed", "c": "unchanged"}


class HangingForge(RecordingForge):
    """A forge that takes connections and never answers."""

    def __init__(self, clock: ImmediateClock) -> None:
        super().__init__()
        self._clock = clock
        self.asked = 0

    def set_status(self, commit: CommitId, status: CommitStatus) -> None:
        """Keep the caller waiting."""
        del commit, status
        self._hang()

    def statuses(self, commit: CommitId) -> Mapping[str, StatusState]:
        """Keep the caller waiting."""
        del commit
        self._hang()
        return {}

    def _hang(self) -> None:
        self.asked += 1
        self._clock.wait_seconds(30.0)
        raise Unavailable("forge", "not reached: timed out")


def test_forge_that_hangs_delays_a_turn_once(work: Path) -> None:
    """With fifty clusters the capacity loop heard of the next commit an hour late."""
    for name in "abc":
        push(work, name, config(3, name))
    clock = ImmediateClock()
    forge = HangingForge(clock)
    repository = GitRepository(GitSettings(url=remote_of(work)))
    loop = GitopsLoop(repository, clock, CLUSTERS, forge)
    assert set(states(loop).values()) == {"committed"}
    assert forge.asked == 1
    report = loop.once()
    assert forge.asked == 2
    assert len(report.unshown) == 3
    assert {cluster_progress.stage for cluster_progress in report.progress} == {"rendered"}
    repository.close()
