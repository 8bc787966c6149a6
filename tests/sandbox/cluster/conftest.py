"""Clusters over real HTTP, each test its own."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reconciler.sandbox.cluster.server import ClusterServer
from reconciler.sandbox.cluster.settings import ClusterSettings
from tests.sandbox.cluster.kube import Kube, add_node

MakeCluster = Callable[..., Kube]


@pytest.fixture
def make_cluster() -> Iterator[MakeCluster]:
    """Starts clusters with the settings asked for; all of them end with the test."""
    started: list[Kube] = []

    def make(**settings: Any) -> Kube:
        server = ClusterServer(ClusterSettings(**settings)).start()
        started.append(Kube(server))
        return started[-1]

    yield make
    for kube in started:
        kube.close()
        kube.server.stop()


@pytest.fixture
def kube(make_cluster: MakeCluster) -> Kube:
    """A cluster without nodes."""
    return make_cluster()


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> Kube:
    """A cluster with two Ready nodes, `a` and `b`, of 4 CPUs each."""
    kube = make_cluster()
    for name in ("a", "b"):
        add_node(kube, name)
    return kube
