"""The Cluster port over the API server: watched caches for reading, a few verbs for changing."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import Raw

from reconciler.adapters.kubernetes.cache import Cache
from reconciler.adapters.kubernetes.confirmation import CONFIRM_SECONDS
from reconciler.adapters.kubernetes.kinds import KINDS, lease_kind
from reconciler.adapters.kubernetes.listing import read_list
from reconciler.adapters.kubernetes.namespace import DEFAULT_HOME, LeaseHome
from reconciler.adapters.kubernetes.reflector import Reflector
from reconciler.adapters.kubernetes.signal import ThreadedChangeSignal
from reconciler.adapters.kubernetes.transport import Transport
from reconciler.adapters.kubernetes.verbs import Verbs
from reconciler.machine.garbage import garbage_collection_paused
from reconciler.model.cluster import Node, Taint
from reconciler.model.errors import ObservationError
from reconciler.model.ids import NodeName, PodKey
from reconciler.model.snapshot import ClusterState
from reconciler.ports.changes import ChangeSignal, HandledChanges, Window
from reconciler.ports.clock import RemoteClock
from reconciler.records.kubernetes import ObjectDecoder, assemble

STALE_SECONDS = 60.0
SYNC_SECONDS = 60.0
JOIN_SECONDS = 10.0
REASONS_MAX = 3
"""How many different reasons an error names."""
COUNTED_TWICE = frozenset({"Pod", "Node"})
"""Kinds whose lists decide whether the safety stop applies."""


class KubernetesCluster:
    """A cluster behind its API server; starts to watch at once.

    Args:
        transport: How to reach the server.
        lease_home: Where the Lease `fleet-reconciler` is kept.
        stale_seconds: How long the server may send nothing about any kind.
        sync_seconds: How long the first observation waits for the first lists.
        lease_touched: Called when that Lease changed; must return at once.
        confirm_seconds: From the first full list of a kind to the second one.
        awake_seconds: A clock that never jumps, and also runs while the machine is suspended, so
            that older knowledge expires.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        lease_home: LeaseHome = DEFAULT_HOME,
        stale_seconds: float = STALE_SECONDS,
        sync_seconds: float = SYNC_SECONDS,
        confirm_seconds: float = CONFIRM_SECONDS,
        lease_touched: Callable[[], None] = lambda: None,
        awake_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._transport = transport
        self._server_clock = RemoteClock(awake_seconds)
        transport.listen_to_dates(self._server_clock.tell)
        self._verbs = Verbs(transport, lease_home, self._version_of_node)
        self._stale_seconds = stale_seconds
        self._sync_seconds = sync_seconds
        self._signal = ThreadedChangeSignal()
        decoder = ObjectDecoder()
        caches = {kind: Cache(kind.name, self._signal, awake_seconds) for kind in KINDS}
        lease = lease_kind(lease_home.namespace)
        caches[lease] = Cache(lease.name, self._signal, awake_seconds, touched=lease_touched)
        self._nodes = next(cache for kind, cache in caches.items() if kind.name == "Node")
        self._reflectors = [
            Reflector(kind, transport, cache, decoder, confirm_seconds=confirm_seconds)
            for kind, cache in caches.items()
        ]
        self._closed = False
        for reflector in self._reflectors:
            reflector.start()

    @property
    def synced(self) -> bool:
        """Return whether every kind was listed once and none has been silent for too long."""
        return not self._missing()

    def observe(self) -> ClusterState:
        """Return the caches' content, sorted; wait for the first lists after start.

        Raises:
            ObservationError: Nothing was received about a kind for 60 s; the reason is named.
        """
        self._wait_for_first_lists()
        missing = self._missing()
        if missing:
            raise ObservationError(
                self._transport.host,
                "; ".join(missing),
                "check kubeconfig and network; nothing is decided until the API server answers",
            )
        self._signal.clear()
        caches = [reflector.cache for reflector in self._reflectors]
        with garbage_collection_paused():
            read = {cache.kind: cache.read() for cache in caches}
            decoded = [each for found, _ in read.values() for each in found]
            state = assemble(
                (each.value for each in decoded if each.value is not None),
                [each.ignored for each in decoded if each.ignored is not None],
                relists=min(lists for kind, (_, lists) in read.items() if kind in COUNTED_TWICE),
            )
        counted = (cache for cache in caches if cache.kind in COUNTED_TWICE)
        return replace(
            state,
            server_time=self._server_clock.now(),
            heard_again=any(cache.heard_again for cache in counted),
        )

    def wait_for_change(self, timeout_seconds: float) -> bool:
        """Wait until something that matters changed since the last `observe`."""
        return self._signal.wait(timeout_seconds)

    def demand_waits(self) -> bool:
        """Return whether a pod without a node was created since the last `observe`."""
        return self._signal.demand

    def gather(self, window: Window) -> float:
        """Collect a burst of changes; return the length of its window in seconds."""
        return self._signal.gather(window)

    def acknowledge(self) -> tuple[HandledChanges, ...]:
        """See ports.changes."""
        return self._signal.acknowledge()

    @property
    def signal(self) -> ChangeSignal:
        """Return the signal of the watches, so that other sources can notify it too."""
        return self._signal

    def wake(self) -> None:
        """End all waits: the program is to stop."""
        self._signal.close()
        self._transport.skip_pauses()
        for reflector in self._reflectors:
            reflector.cache.stop_waiting()

    def taint_node(self, node: NodeName, taint: Taint) -> bool:
        """Put the taint on the node and keep all others."""
        return self._verbs.taint_node(node, taint)

    def untaint_node(self, node: NodeName, key: str) -> bool:
        """Remove every taint with this key from the node."""
        return self._verbs.untaint_node(node, key)

    def annotate_node(self, node: NodeName, annotations: Mapping[str, str | None]) -> None:
        """Set annotations; None removes one."""
        self._verbs.annotate_node(node, annotations)

    def evict_pod(self, pod: PodKey, grace_seconds: int) -> bool:
        """Ask the Eviction API to end exactly this pod."""
        return self._verbs.evict_pod(pod, grace_seconds)

    def delete_pod(self, pod: PodKey, grace_seconds: int) -> bool:
        """Delete exactly this pod, regardless of any budget."""
        return self._verbs.delete_pod(pod, grace_seconds)

    def counted_pods_on(self, node: NodeName) -> tuple[PodKey, ...]:
        """Return the pods that count on a node, read now."""
        return self._verbs.counted_pods_on(node)

    def nodes(self) -> tuple[Node, ...]:
        """Return all nodes, read now."""
        return self._verbs.nodes()

    def delete_node(self, node: NodeName, uid: str) -> bool:
        """Delete the Node object."""
        return self._verbs.delete_node(node, uid)

    def remember(self, annotations: Mapping[str, str | None]) -> None:
        """Save annotations on the Lease; it is created when there is none."""
        self._verbs.remember(annotations)

    def raw(self) -> Iterator[dict[str, Any]]:
        """Yield every object of the watched kinds, read now, with its kind filled in."""
        for reflector in self._reflectors:
            kind = reflector.kind
            items: list[Raw] = []
            read_list(self._transport, kind, items.clear, items.extend)
            version = {"apiVersion": kind.api_version, "kind": kind.name}
            for item in items:
                yield version | msgspec.json.decode(item)

    def close(self) -> None:
        """Stop watching, wait for the threads to end, and close connections."""
        if self._closed:
            return
        self._closed = True
        self._signal.close()
        for reflector in self._reflectors:
            reflector.stop()
        for reflector in self._reflectors:
            reflector.join(JOIN_SECONDS)
        self._transport.close()

    def _wait_for_first_lists(self) -> None:
        """Wait for the first lists; all kinds together get `sync_seconds`."""
        deadline = time.monotonic() + self._sync_seconds
        for reflector in self._reflectors:
            reflector.cache.wait_synced(max(0.0, deadline - time.monotonic()))

    def _version_of_node(self, node: NodeName) -> str:
        return self._nodes.version_of(("", node))

    def _missing(self) -> list[str]:
        """Return the kinds that are unknown or too old, grouped by reason."""
        unlisted: dict[str, list[Cache]] = {}
        silent: dict[str, list[Cache]] = {}
        for reflector in self._reflectors:
            cache = reflector.cache
            if not cache.synced:
                unlisted.setdefault(cache.trouble, []).append(cache)
            elif cache.silent_seconds() > self._stale_seconds:
                silent.setdefault(cache.trouble, []).append(cache)
        missing = [
            f"no list of {self._named(caches)} yet{_because(trouble)}"
            for trouble, caches in unlisted.items()
        ]
        for trouble, caches in silent.items():
            seconds = round(max(cache.silent_seconds() for cache in caches))
            missing.append(
                f"no answer about {self._named(caches)} for {seconds} s{_because(trouble)}"
            )
        more = len(missing) - REASONS_MAX
        return [*missing[:REASONS_MAX], f"{more} more"] if more > 0 else missing

    def _named(self, caches: Sequence[Cache]) -> str:
        if len(caches) == len(self._reflectors):
            return "any kind"
        return ", ".join(cache.kind for cache in caches)


def _because(trouble: str) -> str:
    return f" ({trouble})" if trouble else ""
