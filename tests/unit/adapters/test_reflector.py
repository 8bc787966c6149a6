"""How often a server in trouble is asked again."""

import itertools
import time
from pathlib import Path
from queue import Queue

from reconciler.adapters.kubernetes import connect
from reconciler.adapters.kubernetes.cache import Bell, Cache
from reconciler.adapters.kubernetes.kinds import KINDS
from reconciler.adapters.kubernetes.reflector import BACKOFF_SECONDS, Reflector
from reconciler.records.kubernetes import ObjectDecoder
from tests.contract.scripted import Answer, Request, json_answer, scripted_server
from tests.contract.test_kubernetes_adapter import kubeconfig

SLOW_SECONDS = 30.0
LONG_SECONDS = 60.0
"""What no test waits for, however slow the machine."""


def test_list_that_fails_late_is_asked_for_less_and_less_often(tmp_path: Path) -> None:
    """An overloaded server lets lists run into their limit; asking at once keeps it down."""
    asked: Queue[float] = Queue()

    def overloaded(_: Request) -> Answer:
        asked.put(time.monotonic())
        return json_answer({"message": "timed out"}, 504)

    ticks = itertools.count(step=SLOW_SECONDS)
    with scripted_server(overloaded) as url:
        transport = connect(kubeconfig(tmp_path, url))
        cache = Cache("Pod", Bell())
        reflector = Reflector(KINDS[0], transport, cache, ObjectDecoder(), lambda: next(ticks))
        reflector.start()
        first, _, third = (asked.get(timeout=LONG_SECONDS) for _ in range(3))
        reflector.stop()
        reflector.join()
        transport.close()
    assert third - first >= BACKOFF_SECONDS + 2 * BACKOFF_SECONDS


def test_kind_that_cannot_be_watched_from_its_version_is_listed_anew(tmp_path: Path) -> None:
    """A server restored from a backup knows no such version: the program would stay blind."""
    asked: Queue[str] = Queue()

    def restored(request: Request) -> Answer:
        watching = "watch=" in request.path
        asked.put("watch" if watching else "list")
        if watching:
            return json_answer({"message": "Too large resource version"}, 504)
        return json_answer({"metadata": {"resourceVersion": "7"}, "items": []})

    ticks = itertools.count(step=LONG_SECONDS)
    with scripted_server(restored) as url:
        transport = connect(kubeconfig(tmp_path, url))
        cache = Cache("Pod", Bell(), lambda: next(ticks))
        reflector = Reflector(KINDS[0], transport, cache, ObjectDecoder())
        reflector.start()
        found = [asked.get(timeout=LONG_SECONDS) for _ in range(4)]
        reflector.stop()
        reflector.join()
        transport.close()
    assert found == ["list", "watch", "list", "watch"]


def test_watch_goes_on_from_its_version_after_a_short_outage(tmp_path: Path) -> None:
    """Every replica of every controller would list at once when the server comes back."""
    asked: Queue[str] = Queue()

    def flapping(request: Request) -> Answer:
        watching = "watch=" in request.path
        asked.put("watch" if watching else "list")
        if watching:
            return json_answer({"message": "starting"}, 503)
        return json_answer({"metadata": {"resourceVersion": "7"}, "items": []})

    with scripted_server(flapping) as url:
        transport = connect(kubeconfig(tmp_path, url))
        cache = Cache("Pod", Bell(), lambda: 0.0)
        reflector = Reflector(KINDS[0], transport, cache, ObjectDecoder())
        reflector.start()
        found = [asked.get(timeout=LONG_SECONDS) for _ in range(3)]
        reflector.stop()
        reflector.join()
        transport.close()
    assert found == ["list", "watch", "watch"]
