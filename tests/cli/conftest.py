"""The desk that the tests of this folder work at."""

from pathlib import Path

import pytest

from tests.cli.inputs import Desk


@pytest.fixture
def desk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Desk:
    """A folder with a config."""
    return Desk(tmp_path, capsys, monkeypatch)
