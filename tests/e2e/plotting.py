"""Pods, nodes and cost of a scene over time: a plot where the environment asks for one."""

import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from reconciler.demo.follower import Moment
from reconciler.demo.plots import Cost, draw_svg
from reconciler.model.cluster import Pod
from reconciler.model.snapshot import ClusterState
from tests.e2e.scene import Scene

VARIABLE = "RECONCILER_PLOTS"
"""Names the folder that plots are written to; none is drawn without it."""


class Plot:
    """Notes what a scene looks like at each change that the test looks at.

    Args:
        scene: Whose nodes and pods count.
        name: Of the file, without `.svg`.
    """

    def __init__(self, scene: Scene, name: str) -> None:
        self._scene = scene
        self._name = name
        self._moments: list[Moment] = []

    def note(self, state: ClusterState) -> None:
        """Note one observation."""
        pods = [each for each in state.pods if each.key.namespace == self._scene.name]
        nodes = Counter(
            node.labels["fleet"].removeprefix(f"{self._scene.name}-")
            for node in state.nodes
            if node.ready and node.labels.get("sector") == self._scene.name
        )
        self._moments.append(
            Moment(
                at=datetime.now(UTC),  # noqa: TID251 - beside the program's own log
                nodes=dict(nodes),
                pending=sum(pod.node_name is None for pod in pods),
                running=sum(map(_runs, pods)),
                finished=0,
            )
        )

    def draw(self) -> None:
        """Write the plot, if the environment names a folder."""
        folder = os.environ.get(VARIABLE, "")  # noqa: TID251 - a switch of the tests alone
        if not folder:
            return
        costs = [
            Cost(
                at=datetime.fromisoformat(event["at"]),
                hourly_usd=event["hourly_usd_after"],
                lower_bound_usd=event["hourly_usd_lower_bound"],
            )
            for event in self._scene.events("cycle_ended")
            if "hourly_usd_after" in event
        ]
        draw_svg(self._moments, costs, Path(folder) / f"{self._name}.svg")


def _runs(pod: Pod) -> bool:
    return pod.phase == "Running" and not pod.deleting
