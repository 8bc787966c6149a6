"""A link that a repository may have put on the way to a folder is found, that of people not."""

from pathlib import Path

import pytest

from reconciler.machine.work_tree import assert_no_link, work_tree
from reconciler.model.errors import InputError


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work tree, in which the test runs."""
    made = tmp_path / "checkout"
    (made / ".git").mkdir(parents=True)
    (made / "clusters/a").mkdir(parents=True)
    monkeypatch.chdir(made)
    return made


def test_work_tree_is_the_nearest_folder_with_git(checkout: Path) -> None:
    """A work tree that git made for a branch, and a submodule, have a file there."""
    assert work_tree(checkout / "clusters/a") == checkout
    (checkout / "clusters/.git").write_text("gitdir: elsewhere\n")
    assert work_tree(checkout / "clusters/a") == checkout / "clusters"
    assert work_tree(checkout.parent) is None


@pytest.mark.parametrize(
    "named", ["linked", "./linked/", "linked/a", "clusters/../linked/a", "linked/../clusters"]
)
def test_link_in_a_work_tree_is_refused(checkout: Path, named: str) -> None:
    """Wherever it is on the way, the repository decides where it leads."""
    (checkout / "linked").symlink_to("clusters")
    with pytest.raises(InputError, match="linked: is a symbolic link"):
        assert_no_link(Path(named))
    with pytest.raises(InputError, match="linked: is a symbolic link"):
        assert_no_link(checkout / named)


@pytest.mark.parametrize("named", [".", "clusters/a", "..", "../checkout/clusters", "new/folder"])
def test_plain_folders_pass(checkout: Path, named: str) -> None:
    """A folder that is not there yet is made by a render."""
    assert_no_link(Path(named))
    assert_no_link(checkout / named)


def test_link_outside_of_any_work_tree_passes_unless_it_is_the_folder(checkout: Path) -> None:
    """It belongs to the machine; a root module itself is never one."""
    (checkout.parent / "shortcut").symlink_to(checkout)
    assert_no_link(Path("../shortcut/clusters"))
    with pytest.raises(InputError, match="shortcut: is a symbolic link"):
        assert_no_link(Path("../shortcut"))
