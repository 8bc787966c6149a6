"""An install without an image is refused: its pods could not start."""

from pathlib import Path

from tests import command
from tests.unit.install.command import CONFIG


def test_manifest_without_an_image_prints_nothing_and_says_what_to_do(tmp_path: Path) -> None:
    """A default would name an image that was pushed nowhere."""
    (tmp_path / "sectors.yaml").write_text(CONFIG)
    done = command.reconciler("manifest", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "--image" in done.stderr
    assert "push it" in done.stderr
