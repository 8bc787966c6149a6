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
