"""How often a server in trouble is asked again."""

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import orjson

from reconciler.adapters.kubernetes import connect
from reconciler.adapters.kubernetes.cache import Cache
from reconciler.adapters.kubernetes.kinds import KINDS
from reconciler.adapters.kubernetes.reflector import BACKOFF_SECONDS, Reflector
from reconciler.adapters.kubernetes.signal import ThreadedChangeSignal
from reconciler.records.kubernetes import ObjectDecoder
from tests.contract.kubernetes_api import kubeconfig
from tests.contract.scripted import Answer, Request, Script, json_answer, scripted_server

Clock = Callable[[], float]

SLOW_SECONDS = 30.0
LONG_SECONDS = 60.0
"""What no test waits for, however slow the machine."""


@contextmanager
def reflecting(
    folder: Path, script: Script, *, cache: Clock = time.monotonic, lists: Clock = time.monotonic
) -> Iterator[Cache]:
    """Pods of a scripted server are followed; two clocks: for what was heard, and for lists."""
    with scripted_server(script) as url:
        transport = connect(kubeconfig(folder, url))
        held = Cache("Pod", ThreadedChangeSignal(), cache)
        reflector = Reflector(KINDS[0], transport, held, ObjectDecoder(), lists)
        reflector.start()
        try:
            yield held
        finally:
            reflector.stop()
            reflector.join()
            transport.close()


def passing(step_seconds: float) -> Clock:
    """A clock that so much time passes on between two looks."""
    ticks = itertools.count(step=step_seconds)
    return lambda: next(ticks)


def asked_first(folder: Path, count: int, watches: Answer, clock: Clock) -> list[str]:
    """What the first requests ask for, where lists work and watches are answered so."""
    asked: Queue[str] = Queue()

    def script(request: Request) -> Answer:
        watching = "watch=" in request.path
        asked.put("watch" if watching else "list")
        return (
            watches
            if watching
            else json_answer({"metadata": {"resourceVersion": "7"}, "items": []})
        )

    with reflecting(folder, script, cache=clock):
        return [asked.get(timeout=LONG_SECONDS) for _ in range(count)]


def test_list_that_fails_late_is_asked_for_less_and_less_often(tmp_path: Path) -> None:
    """An overloaded server lets lists run into their limit; asking at once keeps it down."""
    asked: Queue[float] = Queue()

    def overloaded(_: Request) -> Answer:
        asked.put(time.monotonic())
        return json_answer({"message": "timed out"}, 504)

    with reflecting(tmp_path, overloaded, lists=passing(SLOW_SECONDS)):
        first, _, third = (asked.get(timeout=LONG_SECONDS) for _ in range(3))
    assert third - first >= BACKOFF_SECONDS + 2 * BACKOFF_SECONDS


def test_kind_that_cannot_be_watched_from_its_version_is_listed_anew(tmp_path: Path) -> None:
    """A server restored from a backup knows no such version: the program would stay blind."""
    restored = json_answer({"message": "Too large resource version"}, 504)
    found = asked_first(tmp_path, 4, restored, passing(LONG_SECONDS))
    assert found == ["list", "watch", "list", "watch"]


def test_list_after_a_long_silence_has_to_be_confirmed(tmp_path: Path) -> None:
    """It shows the nodes of a burst as not Ready, as their kubelets were not heard for as long."""
    asked: Queue[str] = Queue()
    now = [0.0]

    def script(request: Request) -> Answer:
        if "watch=" in request.path:
            asked.put("watch")
            return json_answer({"message": "starting"}, 503)
        asked.put("list")
        return json_answer({"metadata": {"resourceVersion": "7"}, "items": []})

    with reflecting(tmp_path, script, cache=lambda: now[0]) as held:
        assert [asked.get(timeout=LONG_SECONDS) for _ in range(2)] == ["list", "watch"]
        now[0] += SLOW_SECONDS + LONG_SECONDS
        while asked.get(timeout=LONG_SECONDS) != "list":
            pass
        asked.get(timeout=LONG_SECONDS)
        assert held.lists_agreeing == 1


def test_watch_goes_on_from_its_version_after_a_short_outage(tmp_path: Path) -> None:
    """Every replica of every controller would list at once when the server comes back."""
    flapping = json_answer({"message": "starting"}, 503)
    assert asked_first(tmp_path, 3, flapping, lambda: 0.0) == ["list", "watch", "watch"]


def test_watch_that_ended_after_bringing_something_goes_on_at_once(tmp_path: Path) -> None:
    """The server ends it when a thousand pods come at once: half of them would be planned late."""
    watches = 20
    versions = itertools.count(8)
    asked: Queue[None] = Queue()

    def script(request: Request) -> Answer:
        version = str(next(versions))
        metadata = {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": version}
        if "watch=" in request.path:
            asked.put(None)
            event = {"type": "BOOKMARK", "object": {"metadata": metadata}}
            return Answer(200, orjson.dumps(event) + b"\n", {})
        return json_answer({"metadata": {"resourceVersion": "7"}, "items": []})

    began = time.monotonic()
    with reflecting(tmp_path, script, lists=lambda: 0.0):
        for _ in range(watches):
            asked.get(timeout=LONG_SECONDS)
    assert time.monotonic() - began < (watches - 1) * BACKOFF_SECONDS
