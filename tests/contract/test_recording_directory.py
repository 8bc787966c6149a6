"""Recorded demand in a directory."""

import gzip
import resource
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from reconciler.adapters.recording import DirectoryLog
from reconciler.adapters.recording.queued import UNWRITTEN_BYTES_MAX
from reconciler.model.errors import PortError, Unavailable

DAY = datetime(2026, 3, 10, 12, tzinfo=UTC)
WEEK_SECONDS = 7 * 86_400.0


def test_lines_of_a_day_are_one_file_that_gzip_reads(tmp_path: Path) -> None:
    """The record could not be read by the tools that people have."""
    failed: list[PortError] = []
    with closing(DirectoryLog(tmp_path / "made", WEEK_SECONDS, failed.append)) as log:
        assert log.append(DAY, b"one\n")
        assert log.append(DAY, b"two\n")
        assert log.append(DAY + timedelta(days=1), b"three\n")
    files = sorted((tmp_path / "made").iterdir())
    assert [file.name for file in files] == [
        "demand-2026-03-10.jsonl.gz",
        "demand-2026-03-11.jsonl.gz",
    ]
    assert gzip.decompress(files[0].read_bytes()) == b"one\ntwo\n"
    assert not failed


def test_files_older_than_is_kept_are_removed_and_others_left_alone(tmp_path: Path) -> None:
    """The disk would fill, or somebody else's file would go."""
    others = {"notes.txt", "demand-2025-black-friday.jsonl.gz"}
    for name in others:
        (tmp_path / name).write_text("mine")
    with closing(DirectoryLog(tmp_path, WEEK_SECONDS, print)) as log:
        for day in range(10):
            assert log.append(DAY + timedelta(days=day), b"line\n")
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= others
    assert min(names - others) == "demand-2026-03-12.jsonl.gz"
    assert len(names - others) == 8


def test_one_cycle_of_a_clock_that_is_far_ahead_removes_nothing(tmp_path: Path) -> None:
    """All recordings were gone after it."""
    days = [0, 1, 2, 300, 3]
    with closing(DirectoryLog(tmp_path, WEEK_SECONDS, print)) as log:
        for day in days:
            assert log.append(DAY + timedelta(days=day), b"line\n")
    kept = {f"demand-{DAY + timedelta(days=day):%Y-%m-%d}.jsonl.gz" for day in days}
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_oldest_files_go_when_all_together_are_too_large(tmp_path: Path) -> None:
    """A busy cluster would fill the disk long before the files are old."""
    with closing(DirectoryLog(tmp_path, WEEK_SECONDS, print, bytes_max=60)) as log:
        for day in range(5):
            assert log.append(DAY + timedelta(days=day), b"line\n")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert 1 <= len(names) < 5
    assert names[-1] == "demand-2026-03-14.jsonl.gz"


@contextmanager
def files_end_at(size_bytes: int) -> Iterator[None]:
    """No file of this process can grow beyond a size, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_lines_that_do_not_fit_leave_no_part_of_them_behind(tmp_path: Path) -> None:
    """A part of a member makes all that is written behind it unreadable."""
    with closing(DirectoryLog(tmp_path, WEEK_SECONDS, print)) as log:
        log.write(DAY, b"one\n")
        (file,) = tmp_path.iterdir()
        with files_end_at(file.stat().st_size + 9), pytest.raises(Unavailable):
            log.write(DAY, b"two\n")
        log.write(DAY, b"three\n")
    assert gzip.decompress(file.read_bytes()) == b"one\ntwo\nthree\n"


def test_directory_that_cannot_be_written_is_reported_and_holds_nothing_up(tmp_path: Path) -> None:
    """The loop would stop scaling because a disk is full."""
    (tmp_path / "file").write_text("no directory")
    failed: list[PortError] = []
    with closing(DirectoryLog(tmp_path / "file" / "below", WEEK_SECONDS, failed.append)) as log:
        assert log.append(DAY, b"line\n")
    assert failed
    assert all(str(tmp_path / "file" / "below") in str(error) for error in failed)


def test_lines_that_came_while_the_directory_was_away_are_written_later(tmp_path: Path) -> None:
    """The ends of pods among them were lost, and a replay let these pods run to its end."""
    there, away = tmp_path / "rec", tmp_path / "away"
    with closing(DirectoryLog(there, WEEK_SECONDS, print)) as log:
        log.write(DAY, b"one\n")
        there.rename(away)
        there.write_text("in the way")
        for lines in (b"two\n", b"three\n"):
            with pytest.raises(Unavailable):
                log.write(DAY, lines)
        there.unlink()
        away.rename(there)
        log.write(DAY, b"four\n")
    (file,) = there.iterdir()
    assert gzip.decompress(file.read_bytes()) == b"one\ntwo\nthree\nfour\n"


def test_lines_are_written_once_where_old_files_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were written again with the next ones, each time where the reason was a bug."""
    failed: list[PortError] = []
    with monkeypatch.context() as patched:
        patched.setattr(Path, "glob", _refused)
        with closing(DirectoryLog(tmp_path, WEEK_SECONDS, failed.append)) as log:
            log.append(DAY, b"one\n")
            log.append(DAY, b"two\n")
    (file,) = tmp_path.iterdir()
    assert gzip.decompress(file.read_bytes()) == b"one\ntwo\n"
    assert len(failed) == 1


def _refused(*_: object) -> NoReturn:
    raise PermissionError(13, "Permission denied")


def test_old_files_go_with_the_first_lines_of_a_day_that_fit(tmp_path: Path) -> None:
    """Where the disk was full at midnight, nothing was removed until the next one."""
    with closing(DirectoryLog(tmp_path, 0.0, print)) as log:
        for day in range(2):
            log.write(DAY + timedelta(days=day), b"line\n")
        with files_end_at(9), pytest.raises(Unavailable):
            log.write(DAY + timedelta(days=2), b"line\n")
        log.write(DAY + timedelta(days=2), b"line\n")
    assert [path.name for path in tmp_path.iterdir()] == ["demand-2026-03-12.jsonl.gz"]


def test_lines_of_a_directory_that_stays_away_are_bounded_and_their_loss_is_reported(
    tmp_path: Path,
) -> None:
    """They would fill the memory of the loop."""
    (tmp_path / "file").write_text("no directory")
    with closing(DirectoryLog(tmp_path / "file", WEEK_SECONDS, lambda _: None)) as log:
        for _ in range(3):
            with pytest.raises(Unavailable, match="File exists"):
                log.write(DAY, b"x" * (UNWRITTEN_BYTES_MAX // 2))
        with pytest.raises(Unavailable, match="lines of some hours are lost"):
            log.write(DAY, b"x")
