"""One control plane for all tests of this folder, when this machine can run one."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.adapters.kubernetes import Transport, connect
from reconciler.model.errors import ToolError
from reconciler.sandbox.control_plane.binaries import (
    provide_binaries,
)
from reconciler.sandbox.control_plane.plane import ControlPlane
from tests.e2e.promises import Tally

_ENVIRONMENT = dict(os.environ)  # noqa: TID251 - Go and the cache are found there
_WANTED = "RECONCILER_E2E"
_TEST_SECONDS = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here is `e2e`; what its time limit counts is the test, not the build before it."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.timeout(_TEST_SECONDS, func_only=True))


@pytest.fixture(scope="package")
def tally(closing_lines: list[str]) -> Iterator[Tally]:
    """The promises of all scenes; printed at the end of the run."""
    found = Tally()
    yield found
    closing_lines.append(found.summary())


@pytest.fixture(scope="package")
def programs() -> Path:
    """The directory with etcd, the three of Kubernetes and KWOK; built when that is wanted."""
    wanted = _ENVIRONMENT.get(_WANTED)
    if wanted == "0":
        pytest.skip(f"{_WANTED}=0 leaves the tests on a real control plane out")
    try:
        return provide_binaries(_ENVIRONMENT, _say)
    except ToolError as error:
        if wanted == "1":
            pytest.fail(f"no Kubernetes control plane: {error}", pytrace=False)
        pytest.skip(f"no Kubernetes control plane: {error}")


def _say(text: str) -> None:
    """Past pytest's capture: a build of ten minutes must not look like a test that hangs."""
    os.write(2, f"\n{text}\n".encode())


@pytest.fixture(scope="package")
def plane(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A running control plane without nodes."""
    with ControlPlane(programs, tmp_path_factory.mktemp("plane")) as running:
        yield running


@pytest.fixture(scope="package")
def api(plane: ControlPlane) -> Iterator[Transport]:
    """Requests to it as its administrator."""
    transport = connect(str(plane.kubeconfig))
    yield transport
    transport.close()
