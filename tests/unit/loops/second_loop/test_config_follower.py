"""Which config of the branch the capacity loop gets, whatever lies in other folders."""

from collections.abc import Mapping, Sequence

import pytest

from reconciler.config.catalogue import load_catalogue, render_catalogue
from reconciler.model.errors import InputError, Unavailable, UsageError
from reconciler.ports.repository import Commit, CommitId
from tests.unit.loops.second_loop.followed_branch import (
    BROKEN,
    CATALOGUE,
    CONFIG,
    COPY,
    FAULTY,
    OTHER,
    OURS,
    POLICIES,
    THEIRS,
    VALID_POLICIES,
    WITH_CATALOGUE,
    WITH_POLICIES,
    Branch,
    Scene,
    commit,
)


@pytest.mark.parametrize(
    "error",
    [
        InputError(THEIRS, "5400000 bytes, more than the limit of 4194304"),
        UsageError("path", "'clusters/x\\ny/sectors.yaml' is not a path inside the repository"),
        ValueError("odd"),
    ],
)
def test_unreadable_config_of_another_folder_stops_no_capacity_loop(error: Exception) -> None:
    """One team's odd file would keep every cluster of the repository from new limits."""
    scene = Scene()
    found = scene.look({OURS: CONFIG, THEIRS: error})
    assert (found.trouble, found.config and found.config.path) == ("", OURS)
    found = scene.look({OURS: CONFIG.replace("3", "4"), THEIRS: error})
    assert found.config is not None
    assert b"max_capacity: 4" in found.config.content


def test_unreadable_config_is_nobodys_first_choice() -> None:
    """It may be this cluster's own: another folder's config must not take its place."""
    scene = Scene()
    nameless = CONFIG.partition("\n")[2]
    before = scene.look({OURS: CONFIG, THEIRS: nameless})
    error = InputError(OURS, "5400000 bytes, more than the limit of 4194304")
    found = scene.look({OURS: error, THEIRS: nameless})
    assert found.config == before.config
    assert "5400000 bytes" in found.trouble


def test_copy_that_cannot_be_read_leaves_the_original_its_name() -> None:
    """Both have the same content, and so the same blob in git."""
    scene = Scene()
    path = "clusters/b\nad/sectors.yaml"

    class OddPath(Branch):
        def read(self, commit: CommitId, path: str) -> bytes:
            if "\n" in path:
                raise UsageError("path", "is not a path inside the repository")
            return super().read(commit, path)

    scene.branch = OddPath({OURS: CONFIG, path: CONFIG})
    for number in (1, 2):
        scene.follower.look(commit(number))
        assert scene.heard[-1].config is not None
        assert scene.heard[-1].config.path == OURS
        assert scene.heard[-1].trouble == ""


def test_bug_with_its_own_config_is_said_and_the_last_one_stays() -> None:
    """The second loop's process would end again and again, for all clusters."""
    scene = Scene()
    before = scene.look({OURS: CONFIG, THEIRS: OTHER})
    found = scene.look({OURS: ValueError("odd"), THEIRS: OTHER})
    assert found.config == before.config
    assert "ValueError: odd" in found.trouble


def test_server_that_does_not_answer_is_asked_again_for_the_same_commit() -> None:
    """Otherwise a short outage would hide a commit until the next one."""
    scene = Scene()
    scene.branch = Branch({OURS: Unavailable("remote", "no answer")})
    scene.follower.look(commit(1))
    assert "no answer" in scene.heard[-1].trouble
    scene.branch = Branch({OURS: CONFIG})
    scene.follower.look(commit(1))
    assert scene.heard[-1].config is not None


def test_unchanged_configs_of_other_folders_are_not_read_again() -> None:
    """A repository of fifty clusters would cost fifty reads per commit."""
    scene = Scene()
    scene.look({OURS: CONFIG, THEIRS: OTHER})
    scene.look({OURS: CONFIG.replace("3", "4"), THEIRS: OTHER})
    assert set(scene.branch.read_paths) == {OURS}


@pytest.mark.parametrize(
    ("config", "path", "content", "fault"),
    [
        (WITH_POLICIES, POLICIES, VALID_POLICIES, "policies.yaml"),
        (
            WITH_CATALOGUE,
            CATALOGUE,
            render_catalogue(load_catalogue()),
            "not an instance catalogue",
        ),
    ],
)
def test_broken_file_beside_the_config_is_a_fault_of_the_head(
    config: str, path: str, content: str, fault: str
) -> None:
    """After a restart the program ended at once, again and again, though an older version works."""
    valid = {OURS: config, path: content}
    found = Scene().look({OURS: config, path: "[oops"}, valid)
    assert found.config is not None
    assert found.config.files == {path.rpartition("/")[2]: content.encode()}
    assert fault in found.trouble


def test_broken_catalogue_is_named_by_its_path_in_the_repository_and_reported_once() -> None:
    """The temporary file that it was read from is gone, and each commit gave it another name."""
    scene, broken = Scene(), {OURS: WITH_CATALOGUE, CATALOGUE: "[oops"}
    scene.look({OURS: CONFIG})
    trouble = scene.look(broken).trouble
    assert trouble.startswith(f"{CATALOGUE}: is not an instance catalogue")
    scene.look({**broken, "README.md": "x"})
    assert len(scene.heard) == 2


def test_head_that_names_no_file_any_more_leaves_the_newest_files_beside_it() -> None:
    """The policies of the last valid version would be older ones."""
    newest = {OURS: WITH_POLICIES, POLICIES: VALID_POLICIES + "# newest\n"}
    found = Scene().look({OURS: BROKEN}, newest, {OURS: WITH_POLICIES, POLICIES: VALID_POLICIES})
    assert found.config is not None
    assert found.config.files["policies.yaml"].endswith(b"# newest\n")


@pytest.mark.parametrize("catalogue", ["/etc/types.json", "types.json"])
def test_catalogue_in_whose_place_another_is_stated_is_no_fault(catalogue: str) -> None:
    """The config of a pod names a file of the pod's image."""
    scene = Scene(own_catalogue=False)
    found = scene.look({OURS: f"{CONFIG}catalogue: {catalogue}\n", CATALOGUE: "[oops"})
    assert (found.trouble, found.config is None) == ("", False)


def test_valid_version_older_than_the_fetched_history_is_found_again() -> None:
    """Fifty commits of other teams after a fault, no restart succeeded any more."""
    faulty = {OURS: FAULTY}
    found = Scene().look(faulty, {**faulty, "README.md": "x"}, {OURS: CONFIG})
    assert found.config is not None
    assert found.config.content == CONFIG.encode()
    assert "must be 0 or more, not -3" in found.trouble


def test_valid_config_does_not_wait_for_the_name_of_its_commit() -> None:
    """A slow server keeps no valid config from coming into force."""

    class Slow(Branch):
        def last_change(
            self, commit: CommitId, _paths: Sequence[str], *, deep: bool = False
        ) -> Commit:
            raise Unavailable("git fetch", f"no answer for {commit}, {_paths}, {deep}")

    scene = Scene()
    scene.branch = Slow({OURS: CONFIG})
    scene.follower.look(commit(1))
    (found,) = scene.heard
    assert (found.trouble, found.config and found.config.commit) == ("", commit(1).id)


@pytest.mark.parametrize("unrelated", [0, 1])
def test_configs_that_cannot_be_read_keep_the_clusters_that_they_named(unrelated: int) -> None:
    """A slip in the folders of two teams kept both capacity loops from starting again."""
    broken = {OURS: BROKEN, THEIRS: BROKEN}
    older = [{**broken, "README.md": str(number)} for number in range(unrelated)]
    found = Scene().look(broken, *older, {OURS: CONFIG, THEIRS: OTHER})
    assert found.config is not None
    assert (found.config.path, found.config.content) == (OURS, CONFIG.encode())


def test_unreadable_config_of_another_cluster_never_takes_the_place_of_a_missing_one() -> None:
    """The fleets of one cluster would be sized by the config of another."""
    found = Scene().look({THEIRS: BROKEN}, {THEIRS: OTHER})
    assert found.config is None
    assert "no sector config of the branch is for cluster c1" in found.trouble


def test_configs_that_name_no_cluster_are_not_said_to_be_of_the_cluster() -> None:
    """People would look for a second config of their cluster."""
    found = Scene().look({OURS: BROKEN, THEIRS: BROKEN})
    assert found.config is None
    assert "no sector config is for cluster c1, and several name no cluster" in found.trouble


OF_OURS_BEFORE = {OURS: CONFIG.replace("3", "4")}


@pytest.mark.parametrize(
    ("head", "trouble", "remedy"),
    [
        pytest.param(
            {OURS: CONFIG, COPY: CONFIG},
            f"several sector configs are for cluster c1: {COPY}, {OURS}",
            f"let {COPY} name its own cluster, or remove it: {OURS} was there before",
            id="copied",
        ),
        pytest.param(
            {THEIRS: OTHER},
            "no sector config of the branch is for cluster c1; commit 000000000000 removed",
            "bring it back (git revert 000000000000)",
            id="removed",
        ),
        pytest.param(
            {},
            "no sector config of the names that are looked for; commit 000000000000 removed",
            "bring it back (git revert 000000000000)",
            id="removed-the-only-one",
        ),
        pytest.param(
            {OURS: CONFIG.replace("c1", "c2")},
            f"no sector config of the branch is for cluster c1; {OURS} names cluster c2",
            f"let {OURS} name cluster c1 again",
            id="renamed",
        ),
        pytest.param(
            {THEIRS: CONFIG, COPY: CONFIG},
            f"{COPY}, {THEIRS}; commit 000000000000 removed {OURS}",
            f"leave one of {COPY}, {THEIRS}, and remove or rename the others",
            id="moved-to-two-places",
        ),
    ],
)
@pytest.mark.parametrize("restarted", [False, True])
def test_config_that_the_branch_lost_sight_of_stays_in_force(
    head: Mapping[str, str], trouble: str, remedy: str, *, restarted: bool
) -> None:
    """A copied folder or a `git rm` of somebody else put the file of the install into force."""
    scene, older = Scene(), (OF_OURS_BEFORE, {OURS: CONFIG.replace("3", "1")})
    if not restarted:
        scene.look(OF_OURS_BEFORE, *older[1:])
    found = scene.look(head, *older)
    assert found.config is not None
    assert (found.config.path, found.config.content) == (OURS, OF_OURS_BEFORE[OURS].encode())
    assert trouble in found.trouble
    assert found.remedy.startswith(remedy)
    fixed = scene.look({OURS: CONFIG.replace("3", "5")}, head, *older)
    assert (fixed.trouble, fixed.remedy) == ("", "")


def test_copy_leaves_the_newest_files_beside_the_config_that_was_there_before() -> None:
    """The policies of its last change would be older ones."""
    oldest = {OURS: WITH_POLICIES, POLICIES: VALID_POLICIES}
    newest = {OURS: WITH_POLICIES, POLICIES: VALID_POLICIES + "# newest\n"}
    found = Scene().look({**newest, COPY: WITH_POLICIES}, newest, oldest)
    assert found.config is not None
    assert found.config.files["policies.yaml"].endswith(b"# newest\n")


def test_config_with_faults_when_it_was_lost_leaves_its_last_valid_version() -> None:
    """Two slips one after the other would stop the cluster at its next restart."""
    found = Scene().look({OURS: FAULTY, COPY: FAULTY}, {OURS: FAULTY}, {OURS: CONFIG})
    assert found.config is not None
    assert found.config.content == CONFIG.encode()


def test_config_that_moved_before_it_was_lost_is_not_looked_for_at_its_first_place() -> None:
    """The config of a year ago would come into force."""
    history = [
        {THEIRS: OTHER},
        {THEIRS: OTHER, COPY: CONFIG},
        {THEIRS: OTHER, COPY: CONFIG.replace("3", "2")},
        {THEIRS: OTHER, OURS: CONFIG.replace("3", "1")},
    ]
    found = Scene().look(*history)
    assert found.config is not None
    assert (found.config.path, found.config.content) == (COPY, CONFIG.encode())


@pytest.mark.parametrize("cluster", ["", "new"])
def test_config_of_another_cluster_is_never_taken_from_history(cluster: str) -> None:
    """A capacity loop that is set up wrongly would act with the config that was there first."""
    found = Scene(cluster).look({OURS: CONFIG, THEIRS: OTHER}, {OURS: CONFIG})
    assert found.config is None
    assert found.trouble


def test_history_without_a_config_of_the_cluster_is_searched_once() -> None:
    """Each commit of a large repository would cost another search."""
    scene = Scene("new")
    scene.look({OURS: CONFIG}, {OURS: CONFIG.replace("3", "4")})
    scene.look({OURS: CONFIG.replace("3", "4")}, {OURS: CONFIG})
    assert scene.branch.read_paths == [OURS]
