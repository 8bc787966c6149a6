"""Copies of the process play a story to other ends."""

import os

import pytest

from tests.life.branches import Branches


def test_each_copy_goes_on_from_its_point() -> None:
    """The crash matrix would compare runs that never parted."""
    branches: Branches[tuple[int, list[str]]] = Branches()
    ends = []

    def story() -> tuple[int, list[str]]:
        happened: list[str] = []
        for name in ("first", "second"):
            happened.append(name)
            end = branches.branch()
            if end is None:
                happened.append("crash")
                break
            ends.append(end)
        return os.getpid(), happened

    assert branches.play(story) == (os.getpid(), ["first", "second"])
    assert [happened for _, happened in ends] == [["first", "crash"], ["first", "second", "crash"]]
    assert len({os.getpid(), *(process for process, _ in ends)}) == 3


def test_error_in_a_copy_fails_the_test() -> None:
    """A copy that dies unnoticed would count as a crash that was survived."""
    branches: Branches[None] = Branches()

    def story() -> None:
        if branches.branch() is None and branches.is_copy:
            raise KeyError("lost")

    with pytest.raises(AssertionError, match="KeyError: 'lost'"):
        branches.play(story)


def test_copy_that_ends_without_a_result_fails_the_test() -> None:
    """Killed for its memory, say."""
    branches: Branches[int] = Branches()

    def story() -> int:
        if branches.branch() is None:
            os._exit(3)
        return 0

    with pytest.raises(AssertionError, match="ended with 3"):
        branches.play(story)
