"""One sandbox over the control plane for all scenes; each scene is a sector of its own."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from reconciler.adapters.kubernetes import KubernetesCluster, Transport, connect
from reconciler.sandbox.control_plane.plane import ControlPlane
from tests.e2e.promises import Tally
from tests.e2e.sandbox import OnRealCluster
from tests.e2e.scene import Scene


@pytest.fixture(scope="package")
def sandbox(plane: ControlPlane) -> Iterator[OnRealCluster]:
    """AWS whose instances join the control plane."""
    with OnRealCluster(plane) as running:
        yield running


@pytest.fixture(scope="package")
def cluster(plane: ControlPlane) -> Iterator[KubernetesCluster]:
    """The cluster, watched."""
    watched = KubernetesCluster(connect(str(plane.kubeconfig)))
    yield watched
    watched.close()


@pytest.fixture
def scene(
    sandbox: OnRealCluster,
    api: Transport,
    cluster: KubernetesCluster,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    tally: Tally,
) -> Iterator[Scene]:
    """A scene named after its file and case; afterwards no promise of a plan may be broken."""
    name = request.path.stem.removeprefix("test_").replace("_", "-")
    case = request.node.name.partition("[")[2].rstrip("]")
    if case:
        name = f"{name[:12]}-{sha256(case.encode()).hexdigest()[:6]}"
    broken_before = len(tally.broken)
    again = getattr(request.node, "execution_count", 1)
    name += f"-{again}" if again > 1 else ""  # its namespace may still be on its way out
    made = Scene(sandbox, api, cluster, tmp_path, name, tally)
    try:
        yield made
    finally:
        made.close()
    assert not tally.broken[broken_before:]
