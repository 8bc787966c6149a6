"""Follows the instances and makes the nodes follow them."""

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reconciler.config.catalogue import load_catalogue
from reconciler.model.errors import InputError, ReconcilerError
from reconciler.model.fleet import InstanceType
from reconciler.sandbox.aws.front.control_client import ControlClient
from reconciler.sandbox.joiner.node_object import InstanceFacts, node_object
from reconciler.sandbox.joiner.nodes import Nodes
from reconciler.sandbox.joiner.user_data import read_user_data

_LOG = logging.getLogger(__name__)
_WAIT_SECONDS = 2.0
"""Longest wait for news, so that `stop` is noticed."""
_RETRY_SECONDS = 0.5
_CLUSTER_TAG = "cluster"
_OWNED_TAG = "kubernetes.io/cluster/"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinerSettings:
    """How nodes join and leave."""

    cluster: str = ""
    """Only instances whose tags and user data name this cluster; empty: any."""
    join_seconds: float = 1.0
    """From a running instance to its Node object (real ones: 40 to 90 s)."""
    remove_seconds: float = 1.0
    """From a terminated instance to the end of its Node object."""
    disk_bytes: int = 50 * 2**30
    """Size of a node's disk."""


@dataclass(slots=True)
class _Member:
    """An instance that joins the cluster, is in it, or leaves it."""

    name: str = ""
    join_at: float | None = None
    remove_at: float | None = None
    silenced: bool = False
    never_joins: bool = False
    """Whether it can never join: by its user data or type, or because its node was refused."""


class Joiner:
    """Registers a node for each running instance, and removes it with the instance; a thread."""

    def __init__(
        self, aws_url: str, kubeconfig: Path, settings: JoinerSettings | None = None
    ) -> None:
        self._settings = settings or JoinerSettings()
        self._control = ControlClient(aws_url)
        self._nodes = Nodes(kubeconfig)
        self._types: Mapping[str, InstanceType] = load_catalogue()
        self._members: dict[str, _Member] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="joiner")

    def start(self) -> None:
        """Adopt the existing nodes, then follow the instances."""
        for instance, name in self._nodes.by_instance().items():
            self._members[instance] = _Member(name=name)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; nodes stay as they are."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._nodes.close()

    def _run(self) -> None:
        change = -1
        while not self._stopping.is_set():
            try:
                change, found = self._control.instances(
                    since=change, wait_seconds=self._wait_seconds()
                )
                self._follow({each.instance_id: each for each in map(InstanceFacts.of, found)})
            except ReconcilerError as error:
                _LOG.info("joiner_retries error=%s", error)
                change = -1  # look at everything again, not only at the next change
                self._stopping.wait(_RETRY_SECONDS)

    def _wait_seconds(self) -> float:
        now = time.monotonic()
        due = [
            at - now
            for member in self._members.values()
            for at in (member.join_at, member.remove_at)
            if at is not None
        ]
        return max(0.0, min([*due, _WAIT_SECONDS]))

    def _follow(self, instances: Mapping[str, InstanceFacts]) -> None:
        members = self._members
        for instance_id, facts in instances.items():
            if facts.state == "running" and facts.joins and self._is_ours(facts):
                self._join(facts, members.setdefault(instance_id, _Member()))
            elif instance_id in members and facts.state != "pending":
                self._leave(members[instance_id], gone=facts.state == "terminated")
        for instance_id in set(members) - set(instances):
            self._leave(members[instance_id], gone=True)
        for instance_id in [i for i, m in members.items() if m.silenced and not m.name]:
            if instance_id not in instances:
                del members[instance_id]

    def _is_ours(self, facts: InstanceFacts) -> bool:
        wanted, tags = self._settings.cluster, facts.tags
        if wanted:
            return tags.get(_CLUSTER_TAG) == wanted or f"{_OWNED_TAG}{wanted}" in tags
        return _CLUSTER_TAG in tags or any(key.startswith(_OWNED_TAG) for key in tags)

    def _join(self, facts: InstanceFacts, member: _Member) -> None:
        if member.name or member.never_joins:
            return
        now = time.monotonic()
        if member.join_at is None:
            member.join_at = now + self._settings.join_seconds
        if member.join_at > now:
            return
        try:
            config = read_user_data(facts.user_data, cluster=self._settings.cluster)
            node = node_object(facts, config, self._types, self._settings.disk_bytes)
            self._nodes.register(node)
        except InputError as error:
            _LOG.warning("instance_never_joins instance=%s error=%s", facts.instance_id, error)
            member.never_joins, member.join_at = True, None
            return
        member.name, member.join_at = facts.private_dns_name, None

    def _leave(self, member: _Member, *, gone: bool) -> None:
        """Stop the kubelet at once, and delete the Node object later once the instance is gone."""
        member.join_at = None
        if member.name and not member.silenced:
            self._nodes.silence(member.name)
        member.silenced = True
        if not gone or not member.name:
            return
        now = time.monotonic()
        if member.remove_at is None:
            member.remove_at = now + self._settings.remove_seconds
        if member.remove_at <= now:
            self._nodes.remove(member.name)
            member.name, member.remove_at = "", None
