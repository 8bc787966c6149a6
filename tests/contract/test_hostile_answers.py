"""Servers that answer too slowly, too deeply or with too much: a clean error, and in time."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import pytest

from reconciler.adapters.forge import ForgeSettings, forge
from reconciler.adapters.prometheus.server import PrometheusServer, PrometheusSettings
from reconciler.machine.deadline import within
from reconciler.model.errors import InputError, OutcomeUnknown, Refused, Unavailable
from reconciler.ports.forge import CommitStatus, Forge
from reconciler.ports.repository import CommitId
from reconciler.web import client
from tests.contract.scripted import Answer, scripted_server
from tests.waiting import until

NOW = datetime(2026, 1, 31, tzinfo=UTC)
NESTED = Answer(200, b"[" * 200_000, {})


IN_THE_HEAD = b"HTTP/1.1 200 OK\r\nX-Slow: "
IN_THE_BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"


@contextmanager
def trickling(begins: bytes = IN_THE_HEAD) -> Iterator[str]:
    """`HOST:PORT` of a server that sends a byte every tenth of a second, until nobody listens."""
    ended = threading.Event()

    def serve(listener: socket.socket) -> None:
        with listener.accept()[0] as connection, suppress(OSError):
            connection.sendall(begins)
            while not ended.wait(0.1):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            thread.join()


def test_status_of_a_server_that_trickles_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timeout of the socket begins anew with each byte: the command would hang for ever."""
    monkeypatch.setattr(client, "TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr(client, "WHOLE_ANSWER_SECONDS", 0.5)
    with trickling() as address, pytest.raises(Unavailable, match="no whole answer within"):
        client.ask_status(address)


def test_query_of_a_server_that_trickles_ends() -> None:
    """A recording on a schedule would never end, and the next one find it running."""
    with trickling() as address:
        settings = PrometheusSettings(url=f"http://{address}", query_seconds=0.5)
        with pytest.raises(Unavailable, match="no whole answer within"):
            PrometheusServer(settings).query("up", NOW)


@pytest.mark.parametrize("begins", [IN_THE_HEAD, IN_THE_BODY])
def test_question_to_a_forge_that_trickles_ends(begins: bytes) -> None:
    """The second loop, or a stage whose status is shown, would wait for as long as it likes."""
    with trickling(begins) as address:
        port = forge_at(address)
        with pytest.raises(Unavailable, match="no whole answer within"):
            port.statuses(CommitId("f" * 40))
        assert_nobody_waits()


@pytest.mark.parametrize("begins", [IN_THE_HEAD, IN_THE_BODY])
def test_write_to_a_forge_that_trickles_may_have_happened(begins: bytes) -> None:
    """Sent again blindly, it would be there twice."""
    with trickling(begins) as address:
        port = forge_at(address)
        with pytest.raises(OutcomeUnknown, match="no reply came"):
            port.set_status(
                CommitId("f" * 40), CommitStatus(context="a", state="success", description="")
            )
        assert_nobody_waits()


def forge_at(address: str) -> Forge:
    """A forge of which a whole answer is awaited for half a second."""
    return forge(
        ForgeSettings(
            kind="github",
            api_url=f"http://{address}",
            repository="team/fleets",
            token="token",
            answer_seconds=0.5,
        )
    )


def assert_nobody_waits() -> None:
    """A loop that asks at each turn would have a thread more at each."""
    until(
        "the end of the call that was given up",
        lambda: all(each.name != "within-deadline" for each in threading.enumerate()),
        seconds=10,
    )


def test_deeply_nested_answers_are_refused_cleanly() -> None:
    """Python's own words say nothing about who answered what."""
    with scripted_server(lambda _: NESTED) as url:
        with pytest.raises(Refused, match="answered 200"):
            PrometheusServer(PrometheusSettings(url=url)).query("up", NOW)
        address = url.removeprefix("http://")
        with pytest.raises(InputError, match="is not a reconciler's status endpoint"):
            client.ask_status(address)
        with pytest.raises(InputError, match="is not a reconciler's status endpoint"):
            client.ask_explanations(address, {"pod": ["a/b"]})


def test_status_of_another_program_is_refused() -> None:
    """Many programs count cycles: `reconciler status` ended with KeyError 'verdict'."""
    with (
        scripted_server(lambda _: Answer(200, b'{"cycle": {"number": 1}}', {})) as url,
        pytest.raises(InputError, match="is not a reconciler's status endpoint"),
    ):
        client.ask_status(url.removeprefix("http://"))


def test_answer_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would fill the memory of whoever asks."""
    monkeypatch.setattr(client, "BODY_MAX_BYTES", 1024**2)
    answer = Answer(200, b" " * (1024**2 + 1), {})
    with scripted_server(lambda _: answer) as url, pytest.raises(InputError, match="more than 1"):
        client.ask_status(url.removeprefix("http://"))


def test_error_of_a_call_in_time_is_its_own() -> None:
    """What a call raises decides what happens next."""
    assert within(5, lambda: 1) == 1
    with pytest.raises(ZeroDivisionError):
        within(5, lambda: 1 // 0)
