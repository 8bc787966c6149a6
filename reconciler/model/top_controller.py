"""The controllers above those that pods name: Deployments of ReplicaSets, CronJobs of Jobs.

They are derived from names, as a pod names only its nearest controller.
"""

import re
from typing import Final

from reconciler.model.cluster import Owner
from reconciler.model.frozen import Labels

HASH_LABEL: Final = "pod-template-hash"
_RUN: Final = re.compile(r"-\d{8,}$")
"""What a CronJob appends to its own name for each run: the minute it was due, as a number."""


def deployment_of(owner: Owner, labels: Labels) -> str | None:
    """Return the name of the Deployment of a pod's ReplicaSet; None for other controllers.

    A Deployment's ReplicaSets are named after it and the hash of their template, which is a label
    of their pods.
    """
    template = labels.get(HASH_LABEL)
    if owner.kind != "ReplicaSet" or not template or not owner.name.endswith(f"-{template}"):
        return None
    return owner.name.removesuffix(f"-{template}")


def cron_job_of(owner: Owner) -> str | None:
    """Return the name of the CronJob of a pod's Job; None for other controllers."""
    if owner.kind != "Job" or not _RUN.search(owner.name):
        return None
    return _RUN.sub("", owner.name)
