"""The models by name: their settings, what they include and what they omit."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from reconciler.adapters.memory import MemoryWorld
from reconciler.model.demand import Demand
from reconciler.model.errors import UsageError
from reconciler.planner.settings import PlannerSettings
from reconciler.simulation.history import History
from reconciler.simulation.offers import offers_of
from reconciler.simulation.peers import cluster_autoscaler, karpenter
from reconciler.simulation.peers.access import Access
from reconciler.simulation.peers.cluster_autoscaler import (
    ClusterAutoscaler,
    ClusterAutoscalerSettings,
)
from reconciler.simulation.peers.groups import Groups, by_type_and_zone, by_zone
from reconciler.simulation.peers.karpenter import Karpenter, KarpenterSettings
from reconciler.simulation.peers.virtual_time import TimedModel
from reconciler.simulation.program import Program, ProgramMaker
from reconciler.simulation.simulation import Options, Result, Simulation

PeerName = Literal["cluster-autoscaler", "karpenter"]
VALUE_MAX = 10_000_000
AnySettings = ClusterAutoscalerSettings | KarpenterSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One model with its settings."""

    name: PeerName
    title: str
    """For people: it says that it is a model, and of what."""
    settings: AnySettings
    modelled: tuple[str, ...]
    left_out: tuple[str, ...]

    def shown(self) -> dict[str, Any]:
        """Return it as in reports."""
        stated = {field.name: getattr(self.settings, field.name) for field in fields(self.settings)}
        return {
            "name": self.name,
            "title": self.title,
            "settings": stated,
            "modelled": list(self.modelled),
            "left_out": list(self.left_out),
        }


MODELLED = ("pods that name no sector are bought for from the default sector, as the config does",)
LEFT_OUT = (
    (
        "regions but the first of the config, and everything that the config says beside fleets, "
        "sectors and reserved resources: over-subscription, headroom, limits of cost"
    ),
    "time that its own computing and calls take",
)
PEERS: Mapping[PeerName, Peer] = {
    "cluster-autoscaler": Peer(
        name="cluster-autoscaler",
        title="Cluster Autoscaler 1.36 (model)",
        settings=ClusterAutoscalerSettings(),
        modelled=(*cluster_autoscaler.MODELLED, *MODELLED),
        left_out=(*cluster_autoscaler.LEFT_OUT, *LEFT_OUT),
    ),
    "karpenter": Peer(
        name="karpenter",
        title="Karpenter 1.14 (model)",
        settings=KarpenterSettings(),
        modelled=(*karpenter.MODELLED, *MODELLED),
        left_out=(*karpenter.LEFT_OUT, *LEFT_OUT),
    ),
}


def peers_of(texts: Sequence[str]) -> list[Peer]:
    """Return the models; titles of one program's say what distinguishes them.

    Raises:
        UsageError: As `peer_of`, or one comes twice.
    """
    peers = [peer_of(text) for text in texts]
    titles = Counter(peer.title for peer in peers)
    found: list[Peer] = []
    for text, peer in zip(texts, peers, strict=True):
        if any(peer.settings == other.settings for other in peers[: len(found)]):
            raise UsageError("--peer", f"{text!r} comes twice")
        stated = text.partition(",")[2].strip() or "its defaults"
        named = f"{peer.title}, {stated}" if titles[peer.title] > 1 else peer.title
        found.append(replace(peer, title=named))
    return found


def peer_of(text: str) -> Peer:
    """Return a model from `NAME[,SETTING=VALUE…]`.

    Raises:
        UsageError: There is no such model or setting, or the value is invalid.
    """
    name, *settings = (word.strip() for word in text.split(","))
    found = next((peer for peer in PEERS.values() if peer.name == name), None)
    if found is None:
        raise UsageError("--peer", f"there is no model {name!r}", f"models: {', '.join(PEERS)}")
    return replace(found, settings=_with(found.settings, settings)) if settings else found


_BY_FLAG: Mapping[str, str] = {
    "scan-interval": "scan_interval_seconds",
    "scale-down-unneeded-time": "scale_down_unneeded_seconds",
    "scale-down-delay-after-add": "scale_down_delay_after_add_seconds",
    "scale-down-utilization-threshold": "scale_down_utilization_threshold",
    "balance-similar-node-groups": "balance_similar_node_groups",
    "batch-idle-duration": "batch_idle_seconds",
    "batch-max-duration": "batch_max_seconds",
    "consolidate-after": "consolidate_after_seconds",
    "budget": "budget_percent",
}
"""By the names of the real programs' flags."""


_LEAST: Mapping[str, float] = {"scan-interval": cluster_autoscaler.PASS_SECONDS}
"""The minimum where 0, or less than a pass takes, would let no time pass."""


def _with(settings: AnySettings, words: Sequence[str]) -> AnySettings:
    known = {flag: name for flag, name in _BY_FLAG.items() if hasattr(settings, name)}
    changed: dict[str, Any] = {}
    for word in words:
        flag, _, text = word.partition("=")
        if flag not in known:
            raise UsageError(
                "--peer", f"there is no setting {flag!r}", f"known: {', '.join(known)}"
            )
        try:
            value = _value(flag, text, getattr(settings, known[flag]))
        except ValueError:
            hint = f"for example {flag}={_EXAMPLES.get(flag, '30s')}"
            raise UsageError("--peer", f"{word!r}: the value cannot be read", hint) from None
        if value < _LEAST.get(flag, 0):
            raise UsageError("--peer", f"{word!r}: at least {_LEAST[flag]:g}s is needed")
        changed[known[flag]] = value
    return replace(settings, **changed)


_THRESHOLD = "scale-down-utilization-threshold"
_EXAMPLES: Mapping[str, str] = {
    "balance-similar-node-groups": "true",
    "budget": "10%",
    _THRESHOLD: "0.5",
}
"""Of the settings that are no durations."""


def _value(flag: str, text: str, like: object) -> bool | int | float:
    """Return a value in the form that the real program reads: `true`, `10%`, `0.5`, `30s`, `2h`.

    A budget without `%` is a number of nodes to Karpenter, and Cluster Autoscaler's threshold is a
    share: read otherwise, they would compare something else.
    """
    if isinstance(like, bool):
        if text not in {"true", "false"}:
            raise ValueError(text)
        return text == "true"
    if isinstance(like, int):
        percent = int(text.removesuffix("%"))
        if not text.endswith("%") or not 0 <= percent <= 100:
            raise ValueError(text)
        return percent
    if flag == _THRESHOLD:
        share = float(text)
        if not 0 <= share <= 1:
            raise ValueError(text)
        return share
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(text[-1:], 0.0)
    number = float(text[:-1]) * unit if unit else float(text)
    if not 0 <= number < VALUE_MAX:
        raise ValueError(text)
    return number


def played(
    peer: Peer,
    demand: Demand,
    settings: PlannerSettings,
    options: Options,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Simulate a demand with the model, on the fleets of a config."""
    groups = _groups(peer, settings)
    program = on_world(peer, groups)
    result = Simulation(demand, groups.settings, options, progress, program, groups.fleet_of).run()
    return replace(
        result,
        settings=settings,
        offers=tuple(offers_of(settings, demand.lines)),
        launches=tuple(
            replace(launch, fleet=groups.fleet_of[launch.fleet]) for launch in result.launches
        ),
        targets={},
    )


def on_world(peer: Peer, groups: Groups | None = None) -> ProgramMaker:
    """Return what starts the model on a world.

    Args:
        peer: The model.
        groups: What the world's fleets are; None: the fleets of the settings, of one zone each.
    """

    def make(world: MemoryWorld, settings: PlannerSettings, history: History) -> Program:
        access = Access(world, groups or _groups(peer, settings), history)
        if isinstance(peer.settings, KarpenterSettings):
            return TimedModel(access, Karpenter(access, peer.settings))
        return TimedModel(access, ClusterAutoscaler(access, peer.settings))

    return make


def _groups(peer: Peer, settings: PlannerSettings) -> Groups:
    return by_type_and_zone(settings) if peer.name == "karpenter" else by_zone(settings)
