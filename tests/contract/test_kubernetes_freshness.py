"""The caches are never older than they look: watches that get stuck, machines that slept."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.kubernetes import Transport, connect
from reconciler.adapters.kubernetes.cache import Cache
from reconciler.adapters.kubernetes.cluster import STALE_SECONDS
from reconciler.adapters.kubernetes.kinds import KINDS
from reconciler.adapters.kubernetes.reflector import Reflector
from reconciler.adapters.kubernetes.signal import ThreadedChangeSignal
from reconciler.model.errors import ObservationError, Unavailable
from reconciler.model.snapshot import ClusterState
from reconciler.records.kubernetes import ObjectDecoder
from tests import waiting
from tests.contract.kubernetes_api import (
    LONG_SECONDS,
    ApiScript,
    event,
    kubeconfig,
    pod_json,
    until,
    watching,
)
from tests.contract.scripted import Answer, Request, json_answer


@pytest.mark.parametrize(
    "line",
    [
        event("ERROR", {"kind": "Status", "code": 500, "message": "unable to decode the event"}),
        event("RENAMED", pod_json("8")),
        b"<html>a proxy speaks</html>",
    ],
)
def test_watch_that_cannot_go_on_from_a_version_lists_again(tmp_path: Path, line: bytes) -> None:
    """Asked for from the same version it ends the same way for good, and yet looks fresh."""
    script = ApiScript()

    def missed(request: Request) -> Answer:
        if request.path.startswith("/api/v1/pods") and "watch=1" in request.path:
            script.pods = [pod_json("8")]
            if "resourceVersion=7" in request.path and script.lists == 1:
                return Answer(lines=(line,))
        return script(request)

    with watching(tmp_path, missed) as cluster:
        try:
            until(cluster, lambda state: len(state.pods) == 1)
        finally:
            script.hold.set()


def test_machine_that_slept_makes_observations_fail(tmp_path: Path) -> None:
    """A laptop that wakes up would decide from what the cluster was last night."""
    script, hours = ApiScript(), [0.0]
    with watching(tmp_path, script, awake_seconds=lambda: 3600.0 * hours[0]) as cluster:
        until(cluster, lambda _: script.watches > 0)
        hours[0] = 8.0
        with pytest.raises(ObservationError, match=r"no answer about .* for 28800 s"):
            cluster.observe()


def test_first_list_after_the_server_was_out_of_reach_says_so(tmp_path: Path) -> None:
    """It shows nodes as not Ready whose kubelets the server had not heard again yet."""
    script, hours = ApiScript(), [0.0]

    def restarting(request: Request) -> Answer:
        if hours[0] and "watch=1" in request.path:
            return json_answer({"message": "starting"}, 503)
        return script(request)

    with watching(
        tmp_path,
        restarting,
        confirm_seconds=LONG_SECONDS,
        awake_seconds=lambda: 3600.0 * hours[0],
    ) as cluster:
        try:
            assert not until(cluster, lambda _: script.watches > 0).heard_again
            hours[0] = 8.0
        finally:
            script.hold.set()

        def look() -> ClusterState | None:
            try:
                return cluster.observe()
            except ObservationError:
                return None

        found = waiting.until(lambda: "no list", look, pause=cluster.wait_for_change)
        assert (found.relists, found.heard_again) == (1, True)


class Lasting:
    """A watch that tells of nothing, and ends after some time."""

    def __init__(self, clock: list[float], seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self.asked: Mapping[str, Any] = {}

    def begin(self, path: str, query: Mapping[str, Any], silence_seconds: float) -> Any:
        self.asked = query
        return self

    def lines(self) -> Iterator[bytes]:
        self._clock[0] += self._seconds
        return iter(())

    def close(self) -> None:
        """Nothing is open."""

    def follow(self, reflector: Reflector, transport: Transport) -> None:
        """Have the reflector watch this."""
        transport.stream = self.begin  # type: ignore[method-assign]
        reflector._watch()


def _ends_at_once(script: ApiScript, request: Request) -> Answer:
    """Lists are answered, watches with an object that is no event, which ends at once."""
    if "watch=1" in request.path:
        script.watches += 1
        return json_answer({})
    return script(request)


def test_watch_that_ends_at_once_and_tells_nothing_is_not_fresh(tmp_path: Path) -> None:
    """A proxy that answers `200 {}` passed for a quiet cluster: no new pod was ever seen."""
    script, seconds = ApiScript(), [0.0]

    def answer(request: Request) -> Answer:
        return _ends_at_once(script, request)

    with watching(tmp_path, answer, awake_seconds=lambda: seconds[0]) as cluster:
        cluster.observe()
        seconds[0] = STALE_SECONDS + 1
        before = script.watches
        while script.watches < before + len(KINDS):  # watches begun after the clock moved
            cluster.wait_for_change(0.05)
        with pytest.raises(ObservationError, match=r"the watch ended after .* without an event"):
            cluster.observe()
        assert not cluster.synced


def test_quiet_watch_that_lasted_is_fresh(tmp_path: Path) -> None:
    """In a small cluster hours pass without a new StorageClass."""
    transport = connect(kubeconfig(tmp_path, "http://127.0.0.1:1"))
    seconds = [0.0]
    cache = Cache("Pod", ThreadedChangeSignal(), lambda: seconds[0])
    reflector = Reflector(KINDS[0], transport, cache, ObjectDecoder(), lambda: seconds[0])
    Lasting(seconds, 40.0).follow(reflector, transport)
    assert cache.silent_seconds() == 0.0
    with pytest.raises(Unavailable, match="without an event"):
        Lasting(seconds, 2.0).follow(reflector, transport)
    assert cache.silent_seconds() == 2.0
    transport.close()


def test_watch_after_an_interruption_ends_before_a_quiet_kind_is_stale(tmp_path: Path) -> None:
    """An API server that was away for 20 s would stop decisions for longer than that."""
    seconds = [0.0]
    transport = connect(kubeconfig(tmp_path, "http://127.0.0.1:1"))
    cache = Cache("Pod", ThreadedChangeSignal(), lambda: seconds[0])
    reflector = Reflector(KINDS[0], transport, cache, ObjectDecoder(), lambda: seconds[0])
    cache.note_answer()
    seconds[0] = 45.0
    lasting = Lasting(seconds, 10.0)
    lasting.follow(reflector, transport)
    assert lasting.asked["timeoutSeconds"] == "10"
    assert cache.silent_seconds() == 0.0
    transport.close()


@pytest.mark.parametrize("answer", [{}, {"metadata": {}, "items": []}, {"items": []}])
def test_answer_that_is_no_list_does_not_empty_the_cluster(
    tmp_path: Path, answer: dict[str, object]
) -> None:
    """A proxy that answers `200 {}` would make every node look gone."""
    with (
        watching(tmp_path, lambda _: json_answer(answer), sync_seconds=0.5) as cluster,
        pytest.raises(ObservationError, match=r"no list of any kind yet|no list of Pod"),
    ):
        cluster.observe()


def test_list_that_always_breaks_off_does_not_make_the_cache_look_fresh(tmp_path: Path) -> None:
    """After `410 Gone` each first page counted as an answer, although nothing of it was stored."""
    seconds, attempts, gone = [0.0], [0], [False]

    def answer(request: Request) -> Answer:
        pods = request.path.startswith("/api/v1/pods")
        if "watch=1" in request.path:
            if pods:
                gone[0] = True
                return json_answer({"code": 410, "message": "too old resource version"}, 410)
            return Answer(lines=(event("BOOKMARK", {"metadata": {"resourceVersion": "8"}}),))
        page = {"metadata": {"resourceVersion": "7"}, "items": [pod_json()] if pods else []}
        if pods and "continue=" in request.path and gone[0]:
            attempts[0] += 1
            return json_answer({"message": "etcdserver: request timed out"}, 504)
        if pods and "continue=" not in request.path:
            page["metadata"] = {"resourceVersion": "7", "continue": "x"}
        return json_answer(page)

    with watching(tmp_path, answer, awake_seconds=lambda: seconds[0]) as cluster:
        assert len(cluster.observe().pods) == 1
        for count in (1, 2, 3):
            waiting.until("it is listed again", lambda: attempts[0] >= count)  # noqa: B023
            seconds[0] += STALE_SECONDS / 2
        with pytest.raises(ObservationError, match="no answer about Pod for"):
            cluster.observe()
