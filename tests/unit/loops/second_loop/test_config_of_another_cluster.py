"""A config of another cluster is never in force, whatever the history of a path has."""

from tests.unit.loops.second_loop.followed_branch import (
    CONFIG,
    COPY,
    FAULTY,
    OTHER,
    OURS,
    THEIRS,
    Scene,
)


def test_older_version_that_was_of_another_cluster_is_not_taken() -> None:
    """The folder was another cluster's: its limits and `allow_destroy` came into force."""
    found = Scene().look({OURS: FAULTY}, {OURS: OTHER})
    assert found.trouble
    assert found.config is None


def test_older_version_that_was_of_another_cluster_is_not_taken_after_a_copy() -> None:
    """The same where the newest commit with one config has the fault."""
    found = Scene().look({OURS: FAULTY, COPY: FAULTY}, {OURS: FAULTY}, {OURS: OTHER})
    assert found.config is None


def test_valid_config_stays_in_force_when_it_moves_and_has_a_fault() -> None:
    """Two folders are swapped, and one edit has a typing error: the other's config was taken."""
    scene, both = Scene(), {OURS: CONFIG, THEIRS: OTHER}
    scene.look(both)
    found = scene.look({THEIRS: FAULTY}, both)
    assert found.config is not None
    assert found.config.content == CONFIG.encode()


def test_config_that_names_another_cluster_for_many_commits_is_found_again() -> None:
    """Fifty commits after the slip no restart succeeded any more."""
    renamed = {OURS: CONFIG.replace("c1", "c2")}
    found = Scene().look({**renamed, "a": "2"}, {**renamed, "a": "1"}, {OURS: CONFIG})
    assert found.config is not None
    assert found.config.content == CONFIG.encode()
