"""A submodule is another repository: nothing of it is read or written, and it is named."""

from pathlib import Path

import pytest

from reconciler.adapters.git.repository import GitRepository
from reconciler.adapters.git.settings import GitSettings
from reconciler.model.errors import InputError, NotFound
from reconciler.ports.repository import FileChange
from tests.git_remote import git, make_remote


def test_path_in_a_submodule_says_so(tmp_path: Path) -> None:
    """`No such file` sends people looking for a typo: their editor shows the file."""
    work = make_remote(tmp_path, {"sectors.yaml": "cluster: one\n"})
    repository = GitRepository(GitSettings(url=str(tmp_path / "remote.git")))
    commit = git(work, "rev-parse", "HEAD")
    git(work, "update-index", "--add", "--cacheinfo", f"160000,{commit},clusters/b")
    git(work, "commit", "-qm", "A submodule")
    git(work, "push", "-q", "origin", "HEAD:main")
    tip = repository.fetch()
    assert repository.submodules(tip.id) == ("clusters/b",)
    for path in ("clusters/b", "clusters/b/sectors.yaml", "clusters/b/c/sectors.yaml"):
        with pytest.raises(InputError, match="lies in the submodule clusters/b, which is not"):
            repository.read(tip.id, path)
        with pytest.raises(InputError, match="lies in the submodule clusters/b, which belongs"):
            repository.commit(tip.id, [FileChange(path=path, content=b"x")], "M")
    with pytest.raises(NotFound):
        repository.read(tip.id, "clusters/bb")
    repository.close()
