"""KWOK's configuration at the speeds of ClusterSettings."""

from typing import Any

import yaml

from reconciler.sandbox.cluster.settings import ClusterSettings
from reconciler.sandbox.control_plane.stages import kwok_configuration


def _documents(settings: ClusterSettings) -> dict[str, dict[str, Any]]:
    """By name; KWOK's own options by their kind."""
    found = yaml.safe_load_all(kwok_configuration(settings))
    return {
        each.get("metadata", each)["name" if "metadata" in each else "kind"]: each for each in found
    }


def test_settings_become_delays_of_stages() -> None:
    """`--job-seconds` that changes nothing on the real control plane would mislead."""
    settings = ClusterSettings(pod_start_seconds=1.5, job_seconds=7, node_ready_seconds=2)
    stages = _documents(settings)
    delays = {
        name: stages[name]["spec"]["delay"]["durationMilliseconds"]
        for name in ("pod-running", "pod-succeeded", "pod-failed", "node-ready")
    }
    assert delays == {
        "pod-running": 1500,
        "pod-succeeded": 7000,
        "pod-failed": 7000,
        "node-ready": 2000,
    }


def test_slow_termination_of_all_pods_is_cut_off_at_their_grace() -> None:
    """A pod that outlives its grace period exists in no cluster."""
    stages = _documents(ClusterSettings(termination_seconds=9))
    expression = stages["pod-gone"]["spec"]["delay"]["durationFrom"]["jq"]["expression"]
    assert '// "9"' in expression
    assert "min" in expression


def test_kwok_gets_the_options_that_it_does_not_start_without() -> None:
    """With a parallelism of 0 it ends at once."""
    options = _documents(ClusterSettings())["KwokConfiguration"]["options"]
    assert all(options[name] > 0 for name in options if name.endswith("Parallelism"))
