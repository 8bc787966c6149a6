"""Writes bad moments as snapshot files, which `reconciler plan --explain` reads."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from shlex import quote

import orjson

from reconciler.model.cluster import Namespace
from reconciler.model.snapshot import Snapshot
from reconciler.records.aws.encoding import (
    encode_activities,
    encode_fleets,
    encode_groups,
    encode_history,
    encode_instances,
)
from reconciler.records.kubernetes.encoding import (
    encode_budget,
    encode_daemon_set,
    encode_node,
    encode_pod,
)
from reconciler.records.kubernetes.storage_encoding import (
    encode_claim,
    encode_csi_node,
    encode_storage_class,
    encode_volume,
)
from reconciler.records.snapshot import CLUSTER_FILE, Json

STANDARD_INPUT = "CONFIG"
"""Replaces the file of a config that was read from standard input."""
FORM = orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentOpener:
    """Builds the command that shows a bad moment, for the folder where the simulation started."""

    folder: str = ""
    """The report's folder, relative to that folder."""
    flags: Mapping[str, object] = field(default_factory=dict)
    """Options of the simulation that the plan needs too, without unset ones."""

    def command(self, config: str, moment: Json) -> str:
        """Return the `reconciler plan` command, quoted for a shell."""
        place = quote(str(PurePosixPath(self.folder, moment["snapshot"])))
        flags = [f"--{name} {quote(str(value))}" for name, value in self.flags.items() if value]
        files = f"--cluster {place}/{CLUSTER_FILE} --aws {place}/aws-*.json"
        words = ["reconciler plan --config", quote(config), *flags, files, "--now", moment["at"]]
        explained = ["--explain", quote(moment["pod"])] if moment["pod"] else []
        given = [f"< {STANDARD_INPUT}"] if config == "-" else []
        return " ".join([*words, *explained, *given])


def snapshot_files(snapshot: Snapshot) -> dict[str, bytes]:
    """Return the files of a snapshot by name: the cluster's, and those of each region of EC2."""
    cluster = snapshot.cluster
    items = [
        *map(encode_node, cluster.nodes),
        *map(encode_pod, cluster.pods),
        *map(encode_budget, cluster.budgets),
        *map(encode_daemon_set, cluster.daemon_sets),
        *map(_namespace, cluster.namespaces),
        *map(encode_storage_class, cluster.storage_classes),
        *map(encode_claim, cluster.claims),
        *map(encode_volume, cluster.volumes),
        *map(encode_csi_node, cluster.csi_nodes),
    ]
    files = {CLUSTER_FILE: _dump({"apiVersion": "v1", "kind": "List", "items": items})}
    return files | dict(_cloud_files(snapshot))


def _cloud_files(snapshot: Snapshot) -> Iterator[tuple[str, bytes]]:
    cloud = snapshot.cloud
    if cloud is None:
        return
    for region in sorted(cloud.regions):
        there = [each for each in cloud.fleets if each.region == region]
        groups = [each for each in there if each.provider == "asg"]
        fleets = [each for each in there if each.provider == "ec2-fleet"]
        instances = [instance for instance in cloud.instances if instance.region == region]
        answer = {"Region": region, **encode_fleets(fleets)}
        answer |= encode_instances(instances, {group.id for group in groups})
        if groups:
            answer |= encode_groups(groups, instances) | encode_activities(groups)
        yield f"aws-{region}.json", _dump(answer)
        for fleet in fleets:
            history = {"Region": region, **encode_history(fleet)}
            yield f"aws-{region}-{fleet.id}-history.json", _dump(history)


def _namespace(namespace: Namespace) -> Json:
    metadata = {"name": namespace.name, "uid": namespace.uid, "labels": dict(namespace.labels)}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _dump(value: Json) -> bytes:
    return orjson.dumps(value, option=FORM) + b"\n"
