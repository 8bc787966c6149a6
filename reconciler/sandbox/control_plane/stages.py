"""KWOK's configuration: how it acts as kubelets (stages.yaml), at the speeds of ClusterSettings."""

import json
from pathlib import Path
from typing import Any

import yaml

from reconciler.sandbox.cluster.settings import TERMINATION, ClusterSettings

_STAGES = Path(__file__).parent / "stages.yaml"
_TERMINATING = f'.metadata.annotations["{TERMINATION}"]'
_WORKERS = 4


def kwok_configuration(settings: ClusterSettings) -> str:
    """Return the file that KWOK is started with: it refuses to start without stages."""
    documents = list(yaml.safe_load_all(_STAGES.read_text(encoding="utf-8")))
    delays = {
        "node-ready": settings.node_ready_seconds,
        "node-silent": settings.node_monitor_grace_seconds,
        "pod-running": settings.pod_start_seconds,
        "pod-succeeded": settings.job_seconds,
        "pod-failed": settings.job_seconds,
    }
    for document in documents:
        seconds = delays.get(document["metadata"]["name"])
        if seconds is not None:
            document["spec"].setdefault("delay", {})["durationMilliseconds"] = round(seconds * 1000)
        if document["metadata"]["name"] == "pod-gone":
            _set_termination(document["spec"]["delay"]["durationFrom"]["jq"], settings)
    return "\n---\n".join(map(json.dumps, [*documents, _options()])) + "\n"


def _set_termination(expression: dict[str, Any], settings: ClusterSettings) -> None:
    """What a pod without the annotation takes, cut off at its grace period too."""
    default = f'({_TERMINATING} // "{settings.termination_seconds}")'
    expression["expression"] = expression["expression"].replace(_TERMINATING, default)


def _options() -> dict[str, Any]:
    """Return options: KWOK refuses to start with any parallelism at its default of 0."""
    return {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        "options": {
            "podPlayStageParallelism": _WORKERS,
            "nodePlayStageParallelism": _WORKERS,
            "nodeLeaseParallelism": _WORKERS,
            "podsOnNodeSyncParallelism": _WORKERS,
            "enablePodsOnNodeSyncStreamWatch": False,
        },
    }
