"""NodeVolumeLimits for volumes that several pods use: a node attaches each of them once.

Volumes of a single pod are amounts in the resource matrix. A shared one takes a slot of its
driver's column on a row while any of its pods is there, so it is counted per volume and row.

Source: kube-scheduler plugins/nodevolumelimits/csi.go: attached and new volumes are sets.
"""

from collections.abc import Sequence

import numpy as np

from reconciler.planner.placement.arrays import UNLIMITED, IntArray, grown
from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.dimensions import Dimensions
from reconciler.planner.placement.volume_needs import SharedVolume


class SharedAttachments:
    """How many pods on each row use each shared volume."""

    def __init__(self, dimensions: Dimensions) -> None:
        self._dimensions = dimensions
        self._users: dict[SharedVolume, IntArray] = {}

    def limited(self, pod_class: PodClass, free: IntArray, room: IntArray) -> IntArray:
        """Return `room`, only on rows with slots for the class's volumes not attached there."""
        for driver in sorted({volume.driver for volume in pod_class.volumes.shared}):
            column = self._dimensions.attachments(driver)
            volumes = [v for v in pod_class.volumes.shared if v.driver == driver]
            missing = np.zeros(len(free), dtype=np.int64)
            for volume in volumes:
                missing += self._of(volume, len(free)) == 0
            left = free[:, column] - missing
            own = int(pod_class.requests[column])
            new = np.maximum(left // own, 0) if own else np.where(left >= 0, UNLIMITED, 0)
            # Volumes that are attached already need no slot, however full the node is.
            room = np.where((missing == 0) & (own == 0), room, np.minimum(room, new))
        return room

    def take(
        self, volumes: Sequence[SharedVolume], free: IntArray, rows: IntArray, amounts: IntArray
    ) -> None:
        """Count `amounts` more users (fewer if negative) on `rows`; update `free` accordingly."""
        for volume in volumes:
            users = self._of(volume, len(free))
            before = users[rows] > 0
            users[rows] += amounts
            change = (users[rows] > 0).astype(np.int64) - before
            free[rows, self._dimensions.attachments(volume.driver)] -= change

    def _of(self, volume: SharedVolume, rows: int) -> IntArray:
        known = self._users.get(volume, np.zeros(0, dtype=np.int64))
        self._users[volume] = grown(known, rows)
        return self._users[volume][:rows]
