"""Bursts of pending pods: from the creation of each to the accepted ModifyFleet that serves it."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.benchmarks.e2e.objects import PODS_PATH, pod_body, pod_key, uid
from tests.benchmarks.e2e.process import Reconciler
from tests.benchmarks.e2e.waiting import until
from tests.benchmarks.e2e.windows import cycles, window_of
from tests.benchmarks.e2e.world import BULK, SOLO, World

_SERVED_SECONDS = 240.0
_PAUSE_SECONDS = 1.0
"""After a single pod: the cycles that its own raise sets off are to be over."""
_MORE_SECONDS = 4.0
"""After a burst: its nodes have been launched by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """How one burst is made."""

    pods: int
    size: str
    cpu: str
    at_once: bool
    """The API server learns of all at one moment; else it is asked to create one by one."""


WARM_UP = 5
"""Single pods that are not counted: EC2's emulator looks at each instance once more meanwhile."""
SINGLE = Burst(pods=1, size=SOLO, cpu="2", at_once=False)
"""Each takes a node of its own."""


def bursts(singles: int, largest: int) -> Iterator[Burst]:
    """The bursts that are measured, the smallest first."""
    yield from [SINGLE] * singles
    for pods, times in ((10, 6), (100, 4), (1000, 2), (largest, 1)):
        if pods <= largest:
            for _ in range(times):
                yield _burst(pods)


def _burst(pods: int) -> Burst:
    """Pods that need more nodes than the burst before left room on."""
    if pods < 100:
        return Burst(pods=pods, size=SOLO, cpu="2", at_once=False)
    return Burst(pods=pods, size=BULK, cpu="500m", at_once=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reacted:
    """What was seen of one burst; times in seconds."""

    burst: Burst
    beyond_window: tuple[float, ...]
    """Per pod, what is left of `from_creation` without the window of the cycle that served it."""
    from_creation: tuple[float, ...]
    """Per pod, from its creation to the accepted call."""
    window_seconds: float
    """The longest batching window of the cycles that served it, as the reconciler logged it."""
    raises: int
    """Accepted calls that it took: one when it was planned in one cycle."""


def measure(world: World, running: Reconciler, wanted: Sequence[Burst]) -> Iterator[Reacted]:
    """One burst after the other; all of their pods stay pending."""
    pending = 0
    for burst in wanted:
        names = [f"burst-{number:06d}" for number in range(pending, pending + burst.pods)]
        with world.others_held() if burst.at_once else nullcontext():
            created = _create(world, burst, names)
            pending += burst.pods
            until(f"{pending} pods have a place", _placing(running, pending), _SERVED_SECONDS)
        yield _served(world, running, burst, created)


def _placing(running: Reconciler, pods: int) -> Callable[[], bool]:
    """Whether a plan has a place for so many pending pods, and was carried out."""

    def placed() -> bool:
        found = running.events("cycle_ended")
        return bool(found) and found[-1]["pods_placed"] >= pods

    return placed


def _create(world: World, burst: Burst, names: Sequence[str]) -> list[float]:
    """Make the pods; wall-clock seconds at which each was asked for, in order."""
    selector = {"sector": "primary", "size": burst.size}
    if burst.at_once:
        pod = _writable(pod_body(names[0], burst.cpu, "1Gi", selector))
        return _put_at_once(world, pod, names)
    moments = []
    for name in names:
        body = pod_body(name, burst.cpu, "1Gi", selector)
        moments.append(time.time())  # noqa: TID251 - compared with EC2's log of calls
        world.api.expect("POST", PODS_PATH, body=_writable(body))
    return moments


def _put_at_once(world: World, pod: Mapping[str, Any], names: Sequence[str]) -> list[float]:
    """Straight into etcd while the API server is held: they are there when it goes on."""
    with world.encoder() as encoder:
        pattern = encoder.created(PODS_PATH, pod)
    with closing(world.etcd()) as etcd, world.api_server_held():
        etcd.put((pod_key(name), pattern.copy(name, uid())) for name in names)
        moment = time.time()  # noqa: TID251 - compared with EC2's log of calls
    return [moment] * len(names)


def _writable(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a client may send of a pod."""
    metadata = {k: v for k, v in body["metadata"].items() if k in {"name", "labels"}}
    return {"metadata": metadata, "spec": {**body["spec"], "serviceAccountName": "default"}}


def _served(world: World, running: Reconciler, burst: Burst, created: Sequence[float]) -> Reacted:
    """Wait until the fleet has been raised for every pod, and match pods with calls.

    Pods are equal: the share of a raise in all raises of the burst is its share of the pods.
    """
    raises = _all_raises(world, burst, created[0])
    start = raises[0].before
    whole = raises[-1].target - start
    windows = _windows(running, raises)
    beyond, since = [], []
    for number, moment in enumerate(created):
        share = (number + 1) / len(created)
        served = next(r for r in raises if r.target - start >= share * whole - 1e-9)
        since.append(served.at - moment)
        beyond.append(since[-1] - windows[served.at])
    return Reacted(
        burst=burst,
        beyond_window=tuple(beyond),
        from_creation=tuple(since),
        window_seconds=max(windows.values()),
        raises=len(raises),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Raise:
    """An accepted ModifyFleet."""

    at: float
    before: int
    target: int


def _windows(running: Reconciler, raises: Sequence[_Raise]) -> dict[float, float]:
    """The batching window before each raise, by its moment; waits until all are logged."""
    found: dict[float, float | None] = {}

    def logged() -> bool:
        known = cycles(running.events("cycle_ended"))
        found.update((each.at, window_of(known, each.at)) for each in raises)
        return None not in found.values()

    until("the cycles of all raises are logged", logged, _SERVED_SECONDS)
    return {at: window for at, window in found.items() if window is not None}


def _all_raises(world: World, burst: Burst, since: float) -> list[_Raise]:
    """The burst's raises, once no more of them come."""
    quiet = _PAUSE_SECONDS if burst.pods == 1 else _MORE_SECONDS
    fleet = world.fleets[burst.size]
    found: list[_Raise] = []

    def over() -> bool:
        found[:] = [r for r in _raises(world, fleet) if r.at >= since]
        return bool(found) and time.time() - found[-1].at > quiet  # noqa: TID251 - the log's clock

    until(f"the raises for {burst.pods} pods are over", over, _SERVED_SECONDS)
    return found


def _raises(world: World, fleet: str) -> list[_Raise]:
    """All accepted calls that raised the fleet's target."""
    found: list[_Raise] = []
    before = 0
    for call in world.aws.control.calls(service="ec2", action="ModifyFleet"):
        parameters = call["parameters"]
        if call["status"] != 200 or parameters.get("FleetId") != fleet:
            continue
        target = int(parameters["TargetCapacitySpecification.TotalTargetCapacity"])
        if target > before:
            at = datetime.fromisoformat(call["at"]).timestamp()
            found.append(_Raise(at=at, before=before, target=target))
        before = target
    return found
