"""Who may ask the status server, and how much one client may take of it."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.model.errors import InputError, UsageError
from reconciler.model.plan import Plan
from reconciler.records.plan import encoded_parts
from reconciler.web import encoded_plan, server
from reconciler.web.access import AccessRules
from reconciler.web.client import ask_status
from tests.unit.web.scene import Scene, fleet

TOKEN = "0123456789abcdef0123456789abcdef"
PATHS = ("/", "/metrics", "/api/status", "/api/plan")


@pytest.fixture
def scene() -> Iterator[Scene]:
    """A server without a token that answers to one more name."""
    with Scene(AccessRules(hosts=frozenset({"status.example"}))) as running:
        running.cycle(fleets=(fleet(),))
        yield running


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    """A token as a Secret's file has it."""
    file = tmp_path / "listen-token"
    file.write_text(TOKEN + "\n")
    return file


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:9235",
        "10.0.3.17:9235",
        "[::1]:9235",
        "[fd00::1]",
        "localhost",
        "LOCALHOST:1",
        "fleet-reconciler:9235",
        "fleet-reconciler.fleet-reconciler.svc:9235",
        "fleet-reconciler.kube-system.svc.cluster.local",
        "status.example",
    ],
)
def test_own_names_are_answered(scene: Scene, host: str) -> None:
    """Probes and scrapers ask by address, people through the Service or a port-forward."""
    assert scene.ask("/api/status", Host=host)[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "attacker.example",
        "attacker.example:9235",
        "fleet-reconciler.attacker.example",
        "fleet-reconciler.com",
        "a.fleet-reconciler.x.svc",
        "fleet-reconciler.x.svc.attacker.example",
        "127.0.0.1.attacker.example",
        "localhost.attacker.example",
        "user@localhost",
        "localhost/x",
        "localhost:port",
        "[::1",
        "",
    ],
)
@pytest.mark.parametrize("path", ["/api/plan", "/", "/healthz"])
def test_foreign_names_are_not_answered(scene: Scene, host: str, path: str) -> None:
    """A page on the web that rebinds its name to the pod reads the plan otherwise."""
    status, _, body = scene.ask(path, Host=host)
    assert status == 421
    assert "primary-small" not in body
    assert scene.ask(path, "POST", Host=host)[0] == 421


def raw(scene: Scene, request: bytes) -> bytes:
    """The answer to these very bytes."""
    with socket.create_connection(("127.0.0.1", scene.port), timeout=30) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(65_536):
            answer += part
        return answer


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /healthz HTTP/1.0\r\n\r\n", 200),
        (b"GET /healthz HTTP/1.1\r\n\r\n", 421),
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 421),
        (b"GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 421),
        (b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        (b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 17_000 + b"\r\n\r\n", 431),
        (
            b"GET / HTTP/1.1\r\nHost: localhost\r\n"
            + b"".join(b"X%d: %s\r\n" % (n, b"a" * 400) for n in range(60))
            + b"\r\n",
            431,
        ),
        (b"GET / HTTP/1.1 nonsense\r\n\r\n", 400),
    ],
)
def test_head_of_a_request_is_bounded_and_unambiguous(
    scene: Scene, request_bytes: bytes, status: int
) -> None:
    """Python would read 6 MiB of headers per connection, and believe the first of two hosts."""
    answer = raw(scene, request_bytes)
    assert answer.split(b" ", 2)[1] == b"%d" % status, answer[:200]
    assert b"aaaa" not in answer


def test_token_is_asked_for_except_by_probes(token_file: Path) -> None:
    """The kubelet has no token; everybody else shows it."""
    with Scene(AccessRules(token_file=token_file)) as scene:
        scene.cycle(fleets=(fleet(),))
        right = f"Bearer {TOKEN}"
        for path in PATHS:
            status, headers, body = scene.ask(path)
            assert (status, headers["WWW-Authenticate"].split()[0]) == (401, "Bearer")
            assert TOKEN not in body
            for wrong in ("Bearer x", f"Basic {TOKEN}", "Bearer", TOKEN, f"Bearer {TOKEN}x"):
                assert scene.ask(path, Authorization=wrong)[0] == 401, wrong
            assert scene.ask(path, Authorization=right)[0] == 200
        assert (scene.ask("/healthz")[0], scene.ask("/readyz")[0]) == (200, 200)
        assert scene.ask("/", "POST")[0] == 401
        assert ask_status(scene.server.address, TOKEN.encode())["cluster"] == "analytics"
        with pytest.raises(InputError, match="--listen-token-file"):
            ask_status(scene.server.address)


def test_token_can_be_rotated_and_its_loss_opens_nothing(token_file: Path) -> None:
    """A Secret's file changes under the running program, and may vanish."""
    with Scene(AccessRules(token_file=token_file)) as scene:
        token_file.write_text("f" * 32)
        assert scene.ask("/metrics", Authorization=f"Bearer {TOKEN}")[0] == 401
        assert scene.ask("/metrics", Authorization=f"Bearer {'f' * 32}")[0] == 200
        token_file.unlink()
        assert scene.ask("/metrics", Authorization=f"Bearer {'f' * 32}")[0] == 401
        assert scene.ask("/metrics", Authorization="Bearer ")[0] == 401


@pytest.mark.parametrize("content", [None, "", "short", "x" * 5000])
def test_token_that_protects_nothing_is_refused_at_the_start(
    tmp_path: Path, content: str | None
) -> None:
    """An empty Secret must not be an open door."""
    file = tmp_path / "listen-token"
    if content is not None:
        file.write_text(content)
    why = "no such file" if content is None else "holds no token"
    with pytest.raises(UsageError, match=why):
        AccessRules(token_file=file).check_token_file()


def test_plan_is_encoded_once_and_has_a_tag(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dashboard that polls a large plan must not cost the loop its CPU."""
    encoded: list[Plan] = []

    def counted(plan: Plan) -> Iterator[bytes]:
        encoded.append(plan)
        return encoded_parts(plan)

    monkeypatch.setattr(encoded_plan, "encoded_parts", counted)
    first = scene.ask("/api/plan")
    again = scene.ask("/api/plan")
    assert (first[2], first[1]["ETag"]) == (again[2], again[1]["ETag"])
    assert len(encoded) == 1
    status, headers, body = scene.ask("/api/plan", If_None_Match=f'"x", {first[1]["ETag"]}')
    assert (status, body, headers["ETag"]) == (304, "", first[1]["ETag"])
    scene.cycle(fleets=(fleet(target=7),))
    status, headers, body = scene.ask("/api/plan", If_None_Match=first[1]["ETag"])
    assert (status, json.loads(body)["fleets"][0]["target"]) == (200, 7)
    assert len(encoded) == 2


def test_threads_stay_within_the_limit_and_probes_get_in(scene: Scene) -> None:
    """320 connections held 320 threads where 64 were allowed."""
    before = threading.active_count()
    held = [socket.create_connection(("127.0.0.1", scene.port)) for _ in range(320)]
    try:
        for _ in range(5):
            assert scene.ask("/healthz")[0] == 200
            assert threading.active_count() - before <= server.CONNECTIONS_MAX
    finally:
        for each in held:
            each.close()
