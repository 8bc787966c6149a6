"""Servers that answer too slowly, too deeply or with too much: a clean error, and in time."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from reconciler.adapters.prometheus.server import PrometheusServer, PrometheusSettings
from reconciler.model.errors import InputError, Refused, Unavailable
from reconciler.records.deadline import within
from reconciler.web import asking
from tests.contract.scripted import Answer, scripted_server

NOW = datetime(2026, 1, 31, tzinfo=UTC)
NESTED = Answer(200, b"[" * 200_000, {})


@contextmanager
def trickling() -> Iterator[str]:
    """`HOST:PORT` of a server that sends a byte of a header every tenth of a second, for ever."""
    ended = threading.Event()

    def serve(listener: socket.socket) -> None:
        with listener.accept()[0] as connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
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
    monkeypatch.setattr(asking, "TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr(asking, "WHOLE_ANSWER_SECONDS", 0.5)
    with trickling() as address, pytest.raises(Unavailable, match="no whole answer within"):
        asking.ask_status(address)


def test_query_of_a_server_that_trickles_ends() -> None:
    """A recording on a schedule would never end, and the next one find it running."""
    with trickling() as address:
        settings = PrometheusSettings(url=f"http://{address}", query_seconds=0.5)
        with pytest.raises(Unavailable, match="no whole answer within"):
            PrometheusServer(settings).query("up", NOW)


def test_deeply_nested_answers_are_refused_cleanly() -> None:
    """Python's own words say nothing about who answered what."""
    with scripted_server(lambda _: NESTED) as url:
        with pytest.raises(Refused, match="answered 200"):
            PrometheusServer(PrometheusSettings(url=url)).query("up", NOW)
        address = url.removeprefix("http://")
        with pytest.raises(InputError, match="is no reconciler's status endpoint"):
            asking.ask_status(address)
        with pytest.raises(InputError, match="is no reconciler's status endpoint"):
            asking.ask_explanations(address, {"pod": ["a/b"]})


def test_answer_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would fill the memory of whoever asks."""
    monkeypatch.setattr(asking, "BODY_MAX_BYTES", 1024**2)
    answer = Answer(200, b" " * (1024**2 + 1), {})
    with scripted_server(lambda _: answer) as url, pytest.raises(InputError, match="more than 1"):
        asking.ask_status(url.removeprefix("http://"))


def test_error_of_a_call_in_time_is_its_own() -> None:
    """What a call raises decides what happens next."""
    assert within(5, lambda: 1) == 1
    with pytest.raises(ZeroDivisionError):
        within(5, lambda: 1 // 0)
