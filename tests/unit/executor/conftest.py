"""The world that the tests of this folder act on."""

import pytest

from tests.unit.executor.scene import Scene


@pytest.fixture
def scene() -> Scene:
    """Three idle nodes."""
    return Scene()
