"""The flags of k8s-spot-rescheduler and the descheduler, and what replaces them here.

Sources: pusher/k8s-spot-rescheduler rescheduler.go, read 2026-11; kubernetes-sigs/descheduler
cmd/descheduler/app/options/options.go, read 2026-11. The pages docs/spot-rescheduler.md and
docs/descheduler.md have the same tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

SPOT_NAME: Final = "spot-rescheduler"
"""The program's name in the image or the command."""
DESCHEDULER_NAME: Final = "descheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """Describes one flag of another program."""

    key: str = ""
    """The key of the section that replaces it; empty when none does."""
    note: str = ""
    """What to know if nothing replaces it."""
    switch: bool = False
    """Whether it has no value."""
    holds_back: bool = False
    """Whether the program only looks while it is set, so that its section must not be enabled."""


_CONNECTION = Flag(note="not needed, `reconciler run` has --kubeconfig or the pod's account")
_LOGS = Flag(note="no such setting; `reconciler run` logs JSON, -v to -vvv say more")
_ELECTION = Flag(note="not needed, leader_election holds for the whole program")
_LISTEN = Flag(
    note="metrics are served by `reconciler run --listen`, with those of everything else"
)
_TLS = Flag(note="metrics are served without TLS; a proxy has to add it")
_TRACES = Flag(
    note="set `tracing: {endpoint: …}`: whole cycles are traced, evictions are part of them"
)
SPOT_DEFAULT_LABELS: Final[Mapping[str, str]] = {
    "on_demand_node_label": "kubernetes.io/role=worker",
    "spot_node_label": "kubernetes.io/role=spot-worker",
}
"""The program's defaults when no flag is given."""
SPOT_FLAGS: Final[Mapping[str, Flag]] = {
    "housekeeping-interval": Flag(key="housekeeping_interval"),
    "node-drain-delay": Flag(key="node_drain_delay"),
    "pod-eviction-timeout": Flag(key="pod_eviction_timeout"),
    "max-graceful-termination": Flag(key="max_graceful_termination"),
    "on-demand-node-label": Flag(key="on_demand_node_label"),
    "spot-node-label": Flag(key="spot_node_label"),
    "delete-non-replicated-pods": Flag(key="delete_non_replicated_pods", switch=True),
    "listen-address": _LISTEN,
    "running-in-cluster": Flag(note=_CONNECTION.note, switch=True),
    "namespace": Flag(note="not needed, the Lease is in the program's own namespace"),
    "kube-api-content-type": _CONNECTION,
    "version": Flag(note="not needed", switch=True),
    "v": _LOGS,
    "vmodule": _LOGS,
    "log_dir": _LOGS,
    "log_backtrace_at": _LOGS,
    "stderrthreshold": _LOGS,
    "logtostderr": Flag(note=_LOGS.note, switch=True),
    "alsologtostderr": Flag(note=_LOGS.note, switch=True),
}
DESCHEDULER_FLAGS: Final[Mapping[str, Flag]] = {
    "descheduling-interval": Flag(key="interval"),
    "policy-config-file": Flag(note="the policy is read where a file or a ConfigMap has it"),
    "dry-run": Flag(
        note="nothing is evicted with it, so enabled is false here; `reconciler plan` with a config"
        " that says true shows what would be evicted, and changes nothing",
        switch=True,
        holds_back=True,
    ),
    "kubeconfig": _CONNECTION,
    "client-connection-kubeconfig": _CONNECTION,
    "client-connection-qps": _CONNECTION,
    "client-connection-burst": _CONNECTION,
    "disable-metrics": Flag(note=_LISTEN.note, switch=True),
    "bind-address": _LISTEN,
    "secure-port": _LISTEN,
    "enable-http2": Flag(note=_TLS.note, switch=True),
    "cert-dir": _TLS,
    "tls-cert-file": _TLS,
    "tls-private-key-file": _TLS,
    "tls-cipher-suites": _TLS,
    "tls-min-version": _TLS,
    "leader-elect": Flag(note=_ELECTION.note, switch=True),
    "leader-elect-lease-duration": _ELECTION,
    "leader-elect-renew-deadline": _ELECTION,
    "leader-elect-retry-period": _ELECTION,
    "leader-elect-resource-lock": _ELECTION,
    "leader-elect-resource-name": _ELECTION,
    "leader-elect-resource-namespace": _ELECTION,
    "otel-collector-endpoint": _TRACES,
    "otel-transport-ca-cert": _TRACES,
    "otel-service-name": _TRACES,
    "otel-trace-namespace": _TRACES,
    "otel-sample-rate": _TRACES,
    "otel-fallback-no-op-on-error": Flag(note=_TRACES.note, switch=True),
    "feature-gates": Flag(note="features of that program; none of them is known here"),
    "logging-format": _LOGS,
    "v": _LOGS,
    "vmodule": _LOGS,
}
