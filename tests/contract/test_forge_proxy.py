"""The forge is asked through the proxy of the environment, as git and boto3 ask."""

import socket
import threading
from base64 import b64encode

import pytest

from reconciler.adapters.forge import ForgeSettings, forge
from reconciler.model.errors import PortError
from reconciler.ports.repository import CommitId
from tests.contract.kubernetes_api import LONG_SECONDS

URL = "https://localhost:1/api/v4"


def asked(monkeypatch: pytest.MonkeyPatch, user: str = "", none_for: str = "") -> bytes:
    """Return what a proxy is asked when statuses are read; empty if it is not asked."""
    received: list[bytes] = []
    finished = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(LONG_SECONDS)

        def serve() -> None:
            while not finished.is_set():
                connection, _ = server.accept()
                with connection:
                    received.append(connection.recv(4096))
                    connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

        place = f"127.0.0.1:{server.getsockname()[1]}"
        for name, value in {"https_proxy": f"http://{user}{place}", "no_proxy": none_for}.items():
            monkeypatch.delenv(name.upper(), raising=False)
            monkeypatch.setenv(name, value)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        settings = ForgeSettings(kind="gitlab", api_url=URL, repository="a/b", token="x")
        with pytest.raises(PortError):
            forge(settings).statuses(CommitId("a" * 40))
        finished.set()
        socket.create_connection(server.getsockname()).close()
        thread.join(LONG_SECONDS)
    return b"".join(received)


def test_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind one no status and no pull request ever came, and the hint said to check it."""
    assert asked(monkeypatch).startswith(b"CONNECT localhost:1 ")


def test_name_and_password_of_the_proxy_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are part of the address in the environment."""
    credentials = b64encode(b"user:p@ss")
    assert b"Basic " + credentials in asked(monkeypatch, user="user:p%40ss@")


def test_host_that_needs_no_proxy_is_asked_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GitLab inside of the company is not behind the proxy."""
    assert asked(monkeypatch, none_for="localhost") == b""
