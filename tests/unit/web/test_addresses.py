"""Which addresses the server answers on."""

import errno
import os
import socket
from typing import Any
from urllib.request import urlopen

import pytest

from reconciler.model.errors import ReconcilerError
from reconciler.web.client import ask_status
from reconciler.web.server import WebServer
from tests.unit.web.scene import Scene

EVERYWHERE = "[::]:0"
"""What the pods of an install listen on, with a free port."""


class OnlyIpv6(socket.socket):
    """A socket where the machine's `net.ipv6.bindv6only` is 1."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        if self.family == socket.AF_INET6:
            self.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)


class NoIpv6(socket.socket):
    """A socket of a kernel without IPv6."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        if arguments[:1] == (socket.AF_INET6,):
            raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
        super().__init__(*arguments, **named)


def started(listen: str) -> WebServer:
    """A server; the test stops it."""
    return WebServer(listen, Scene().server._routes).start()


def health(host: str, server: WebServer) -> int:
    """The status of a health check of this host."""
    port = server.address.rpartition(":")[2]
    with urlopen(f"http://{host}:{port}/healthz", timeout=30) as answer:
        return int(answer.status)


def has_ipv6() -> bool:
    """Whether this machine has IPv6."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_every_address_is_of_both_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `bindv6only` is set, `[::]` would be IPv6 alone."""
    with monkeypatch.context() as patched:
        patched.setattr(socket, "socket", OnlyIpv6)
        server = started(EVERYWHERE)
    try:
        assert (health("127.0.0.1", server), health("[::1]", server)) == (200, 200)
        assert ask_status(server.address)["cycle"] is not None
    finally:
        server.stop()


def test_every_address_is_that_of_ipv4_without_ipv6(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same manifest is for clusters of both kinds, on nodes of any kernel."""
    with monkeypatch.context() as patched:
        patched.setattr(socket, "socket", NoIpv6)
        server = started(EVERYWHERE)
    try:
        assert health("127.0.0.1", server) == 200
        assert server.address.startswith("0.0.0.0:")
        port = server.address.rpartition(":")[2]
        assert ask_status(f"[::]:{port}")["cycle"] is not None
    finally:
        server.stop()


def test_one_address_of_ipv6_is_never_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who names an address means that one, and no other shall see the page."""
    with monkeypatch.context() as patched:
        patched.setattr(socket, "socket", NoIpv6)
        with pytest.raises(ReconcilerError, match="cannot listen there"):
            started("[::1]:0")
