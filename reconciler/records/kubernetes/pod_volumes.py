"""What a pod's volumes say: claims, EBS volumes, and whether moving the pod would lose data."""

from reconciler.records.kubernetes.fields import ElasticBlockStoreWire, PresentWire, Wire
from reconciler.records.kubernetes.limits import NAME_MAX, VOLUMES_MAX, beyond


class _EmptyDirWire(Wire):
    medium: str | None = None


class _ClaimWire(Wire):
    claim_name: str = ""


class VolumeWire(Wire):
    """A volume of a pod or a pod template."""

    name: str = ""
    empty_dir: _EmptyDirWire | None = None
    host_path: PresentWire | None = None
    persistent_volume_claim: _ClaimWire | None = None
    ephemeral: PresentWire | None = None
    aws_elastic_block_store: ElasticBlockStoreWire | None = None


def is_local_storage(volume: VolumeWire) -> bool:
    """Return whether moving loses data; an emptyDir in memory is lost at restarts too."""
    if volume.host_path is not None:
        return True
    return volume.empty_dir is not None and volume.empty_dir.medium != "Memory"


def excess_of(volumes: tuple[VolumeWire, ...]) -> str:
    """Return what the volumes have too much of to be planned for, in words; usually nothing."""
    if not volumes:
        return ""
    claims = (volume.persistent_volume_claim for volume in volumes)
    longest = max((len(claim.claim_name) for claim in claims if claim is not None), default=0)
    what = "characters in the name of a claim"
    return beyond(len(volumes), VOLUMES_MAX, "volumes") or beyond(longest, NAME_MAX, what)


def claims_of(pod_name: str, volumes: tuple[VolumeWire, ...]) -> tuple[str, ...]:
    """Return claims by name; a generic ephemeral volume's claim is named after pod and volume.

    One that can never exist is left out: such a pod is not planned for (`excess_of`).
    """
    names = []
    for volume in volumes:
        if volume.persistent_volume_claim is not None:
            name = volume.persistent_volume_claim.claim_name
            names += [name] if len(name) <= NAME_MAX else []
        elif volume.ephemeral is not None:
            names.append(f"{pod_name}-{volume.name}")
    return tuple(names)
