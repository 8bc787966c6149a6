"""Which programs the tests find, and what they say when there are none."""

from pathlib import Path

import pytest

from reconciler.model.errors import ToolError
from reconciler.sandbox.control_plane.binaries import (
    CACHE_VARIABLE,
    COMPONENTS,
    READY_VARIABLE,
    build_binaries,
    find_binaries,
)


def _programs(directory: Path, *names: str) -> Path:
    directory.mkdir(exist_ok=True)
    for name in names:
        (directory / name).touch(mode=0o755)
    return directory


def test_named_directory_with_all_programs_is_used(tmp_path: Path) -> None:
    """Who has the programs already must not build them again."""
    ready = _programs(tmp_path / "bin", *COMPONENTS)
    assert find_binaries({READY_VARIABLE: str(ready), "PATH": ""}) == ready.resolve()


def test_named_directory_that_lacks_programs_says_which(tmp_path: Path) -> None:
    """setup-envtest brings only two of the five; the person must learn what is left to get."""
    ready = _programs(tmp_path / "bin", "etcd", "kube-apiserver")
    with pytest.raises(ToolError, match=r"lacks kube-controller-manager, kube-sch.*kwok"):
        find_binaries({READY_VARIABLE: str(ready), "PATH": ""})


def test_without_go_nothing_is_found_and_the_message_says_what_to_do(tmp_path: Path) -> None:
    """A bare 'command not found' leaves the reader without a next step."""
    environment = {"PATH": str(tmp_path), CACHE_VARIABLE: str(tmp_path)}
    assert find_binaries(environment) is None
    with pytest.raises(ToolError, match=rf"install Go [\d.]+ or newer, or set {READY_VARIABLE}"):
        build_binaries(environment)


def test_failed_build_leaves_nothing_and_shows_what_go_said(tmp_path: Path) -> None:
    """Half a build in the cache would be taken for a whole one by the next run."""
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text('#!/bin/sh\n[ "$1" = env ] && exit 0\necho "no module proxy" >&2\nexit 1\n')
    go.chmod(0o755)
    cache = tmp_path / "cache"
    environment = {"PATH": str(go.parent), CACHE_VARIABLE: str(cache)}
    with pytest.raises(ToolError, match="no module proxy"):
        build_binaries(environment)
    assert [path.name for path in cache.iterdir()] == ["lock"]
    assert find_binaries(environment) is None
