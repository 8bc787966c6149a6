"""The desk that the tests of this folder work at."""

from pathlib import Path

import pytest

from tests.cli.importing.desk import Desk


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    """An empty one."""
    return Desk(tmp_path, capsys)
