"""Volumes made by hand (local disks): whether they serve the claims of one pod.

`volumes` decides which volumes are asked about, and from where they can be reached.
"""

from collections.abc import Iterable, Sequence

from reconciler.model.volumes import PersistentVolume, PersistentVolumeClaim


def serve(volumes: Iterable[PersistentVolume], claims: Sequence[PersistentVolumeClaim]) -> bool:
    """Return whether each claim finds a volume of its own, preferring one that is reserved for it.

    Source: kube-scheduler volumebinding findMatchingVolumes: claim by claim, the smallest first,
    each gets the smallest volume that is large enough; there is no backtracking.
    """
    left = sorted(volumes, key=lambda v: (v.claim is None, v.capacity_bytes, v.name))
    for claim in sorted(claims, key=lambda claim: (claim.request_bytes, claim.name)):
        persistent_volume = next((volume for volume in left if _suits(volume, claim)), None)
        if persistent_volume is None:
            return False
        left.remove(persistent_volume)
    return True


def _suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume may be bound to a claim.

    A volume that is reserved for the claim need not match its selector.
    """
    reserved = volume.claim == (claim.namespace, claim.name)
    chosen = reserved or claim.selector is None or claim.selector.matches(volume.labels)
    return (
        (reserved or volume.claim is None)
        and chosen
        and volume.capacity_bytes >= claim.request_bytes
        and volume.block == claim.block
        and set(claim.access_modes) <= set(volume.access_modes)
    )
