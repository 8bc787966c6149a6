"""What several contract tests of git begin with."""

from pathlib import Path

import pytest

from tests.git_remote import make_remote


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A person's clone of a remote with one commit on main."""
    return make_remote(tmp_path, {"sectors.yaml": "cluster: one\n"})
