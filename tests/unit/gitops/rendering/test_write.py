"""Writing a render into a folder: ours is replaced, everything else stays."""

import json
from pathlib import Path

import pytest

from reconciler.gitops.rendering.render import RenderedFile, manifest
from reconciler.gitops.rendering.targets import MANIFEST
from reconciler.gitops.rendering.write import WrittenChanges, write_rendered
from reconciler.model.errors import InputError, ReconcilerError, UsageError


def make_files(**contents: str) -> tuple[RenderedFile, ...]:
    """A small render; `__` in a name stands for a folder, and `.tf` is added."""
    paths = {name.replace("__", "/") + ".tf": text.encode() for name, text in contents.items()}
    paths[MANIFEST] = manifest([*paths, MANIFEST])
    return tuple(RenderedFile(path=path, content=content) for path, content in paths.items())


def test_write_into_a_new_folder_creates_all(tmp_path: Path) -> None:
    """The first render of a repository starts from nothing."""
    changes = write_rendered(make_files(main="a", modules__m__x="b"), tmp_path / "new" / "dir")
    assert changes == WrittenChanges(
        created=(MANIFEST, "main.tf", "modules/m/x.tf"), updated=(), removed=(), unchanged=0
    )
    assert (tmp_path / "new/dir/modules/m/x.tf").read_text() == "b"


def test_write_of_the_same_again_touches_nothing(tmp_path: Path) -> None:
    """A touched file looks changed to whoever watches the folder."""
    write_rendered(make_files(main="a"), tmp_path)
    before = {path: path.stat().st_ino for path in tmp_path.iterdir()}
    changes = write_rendered(make_files(main="a"), tmp_path)
    assert (changes.created, changes.updated, changes.removed) == ((), (), ())
    assert changes.unchanged == 2
    assert {path: path.stat().st_ino for path in tmp_path.iterdir()} == before


def test_write_removes_files_of_the_older_render_only(tmp_path: Path) -> None:
    """A stale file of ours would still be planned; a file of yours must never be lost."""
    write_rendered(make_files(main="a", modules__old__x="b", modules__m__x="c"), tmp_path)
    (tmp_path / "extra.tf").write_text("mine")
    (tmp_path / "modules/m/mine.tf").write_text("mine")
    changes = write_rendered(make_files(main="changed"), tmp_path)
    assert changes.updated == (MANIFEST, "main.tf")
    assert changes.removed == ("modules/m/x.tf", "modules/old/x.tf")
    left = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert left == [MANIFEST, "extra.tf", "main.tf", "modules/m/mine.tf"]
    assert not (tmp_path / "modules/old").exists()


def test_write_over_a_file_that_no_render_wrote_is_refused(tmp_path: Path) -> None:
    """Overwriting a user's main.tf would destroy their root module."""
    (tmp_path / "main.tf").write_text("mine")
    with pytest.raises(UsageError, match=r"main\.tf: exists and was not written by a render"):
        write_rendered(make_files(main="a"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["main.tf"]
    assert (tmp_path / "main.tf").read_text() == "mine"


def test_write_after_an_interrupted_write_finishes_it(tmp_path: Path) -> None:
    """A crash half-way must not leave a folder that the next render refuses."""
    write_rendered(make_files(main="a", old="b"), tmp_path)
    (tmp_path / "main.tf").write_text("half of the new rend")
    (tmp_path / "new.tf").write_text("n")
    (tmp_path / MANIFEST).write_bytes(manifest([MANIFEST, "main.tf", "old.tf", "new.tf"]))
    (tmp_path / ".main.tf.partial").write_text("rest of a crash")
    write_rendered(make_files(main="c", new="n"), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [MANIFEST, "main.tf", "new.tf"]
    assert (tmp_path / "main.tf").read_text() == "c"


def test_write_where_a_file_is_refused(tmp_path: Path) -> None:
    """The message must say what is wrong with the path, not what the system call was."""
    target = tmp_path / "file"
    target.write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        write_rendered(make_files(main="a"), target)


def test_write_below_a_file_is_an_error_with_its_place(tmp_path: Path) -> None:
    """A traceback would not tell the user which path cannot be written."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(ReconcilerError, match="cannot be written"):
        write_rendered(make_files(main="a"), tmp_path / "file" / "dir")


@pytest.mark.parametrize("entry", ["../victim", "/etc/passwd", "", 7])
def test_write_with_a_manifest_that_leads_outside_is_refused(tmp_path: Path, entry: object) -> None:
    """A manifest comes from a repository: it must not be able to remove files elsewhere."""
    victim = tmp_path / "victim"
    victim.write_text("x")
    folder = tmp_path / "dir"
    folder.mkdir()
    (folder / MANIFEST).write_text(json.dumps({"files": [entry]}))
    with pytest.raises(UsageError, match="outside of its folder"):
        write_rendered(make_files(main="a"), folder)
    assert victim.exists()


@pytest.mark.parametrize("content", ["", "[]", '{"files": 3}', "{"])
def test_write_with_a_broken_manifest_is_refused(tmp_path: Path, content: str) -> None:
    """A guess at what was rendered could remove a user's files."""
    (tmp_path / MANIFEST).write_text(content)
    with pytest.raises(UsageError, match=r"\.rendered\.json"):
        write_rendered(make_files(main="a"), tmp_path)


def test_write_through_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    """A link in a repository must not let a render write anywhere else."""
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = tmp_path / "dir"
    folder.mkdir()
    (folder / "modules").symlink_to(outside, target_is_directory=True)
    with pytest.raises(UsageError, match="link"):
        write_rendered(make_files(modules__x="a"), folder)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("on_the_way", [False, True])
def test_write_into_a_link_of_the_repository_is_refused(tmp_path: Path, on_the_way: bool) -> None:
    """`terraform -> ../elsewhere` in a pull request had a render write outside of the checkout."""
    checkout, outside = tmp_path / "checkout", tmp_path / "outside"
    (checkout / ".git").mkdir(parents=True)
    (outside / "terraform").mkdir(parents=True)
    link = checkout / ("clusters" if on_the_way else "terraform")
    link.symlink_to(outside, target_is_directory=True)
    folder = link / "terraform" if on_the_way else link
    with pytest.raises(InputError, match=f"{link.name}: is a symbolic link"):
        write_rendered(make_files(main="a"), folder)
    assert [each for each in outside.rglob("*") if each.is_file()] == []


def test_write_below_a_link_of_the_machine_is_done(tmp_path: Path) -> None:
    """People keep their checkouts behind links, and macOS has `/tmp` there."""
    (tmp_path / "disk/checkout/.git").mkdir(parents=True)
    (tmp_path / "shortcut").symlink_to(tmp_path / "disk", target_is_directory=True)
    write_rendered(make_files(main="a"), tmp_path / "shortcut/checkout/terraform")
    assert (tmp_path / "disk/checkout/terraform/main.tf").read_text() == "a"


def test_write_replaces_files_whole(tmp_path: Path) -> None:
    """A reader must never see half a file, so a file is replaced, not rewritten in place."""
    write_rendered(make_files(main="a"), tmp_path)
    before = (tmp_path / "main.tf").stat().st_ino
    with (tmp_path / "main.tf").open() as reader:
        write_rendered(make_files(main="b"), tmp_path)
        assert reader.read() == "a"
    assert (tmp_path / "main.tf").stat().st_ino != before


def test_write_where_a_folder_stands_is_refused(tmp_path: Path) -> None:
    """A folder of the user's must not be taken apart to make room for a file."""
    (tmp_path / "main.tf").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        write_rendered(make_files(main="a"), tmp_path)


def test_write_replaces_a_link_instead_of_its_target(tmp_path: Path) -> None:
    """A link that took the place of our file must not make us write elsewhere."""
    folder, victim = tmp_path / "dir", tmp_path / "victim"
    victim.write_text("mine")
    write_rendered(make_files(main="a"), folder)
    (folder / "main.tf").unlink()
    (folder / "main.tf").symlink_to(victim)
    write_rendered(make_files(main="b"), folder)
    assert (victim.read_text(), (folder / "main.tf").read_text()) == ("mine", "b")
    assert not (folder / "main.tf").is_symlink()


def test_write_removes_nothing_behind_a_link_out_of_the_folder(tmp_path: Path) -> None:
    """A folder replaced by a link must not let a render remove files elsewhere."""
    folder, outside = tmp_path / "dir", tmp_path / "outside"
    write_rendered(make_files(main="a", modules__x="b"), folder)
    (folder / "modules").rename(outside)
    (folder / "modules").symlink_to(outside, target_is_directory=True)
    changes = write_rendered(make_files(main="a"), folder)
    assert (outside / "x.tf").read_text() == "b"
    assert changes.removed == ()


def test_write_removes_folders_that_it_leaves_empty(tmp_path: Path) -> None:
    """An empty module folder makes people look for what is gone."""
    write_rendered(make_files(main="a", modules__deep__x="b"), tmp_path)
    write_rendered(make_files(main="a"), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [MANIFEST, "main.tf"]
