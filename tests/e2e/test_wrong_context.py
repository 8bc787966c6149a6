"""Two control planes: the fleets' nodes live in one, the program has the other's kubeconfig."""

import json
import os
import subprocess
import sys
from pathlib import Path

from reconciler.sandbox.control_plane.plane import ControlPlane
from tests.e2e.audited import AuditedPlane
from tests.e2e.installed import CONFIG
from tests.e2e.sandbox import OnRealCluster
from tests.sandbox.capacity.fleets import create_fleet
from tests.sandbox.capacity.world import Program, World
from tests.waiting import until

ADMINISTRATOR = "e2e-admin"


def lists(plane: AuditedPlane) -> dict[str, int]:
    """How often the program read the full lists of nodes and pods."""
    found = {"nodes": 0, "pods": 0}
    for entry in plane.entries(ADMINISTRATOR):
        if entry.asked.verb == "list" and entry.asked.resource in found:
            found[entry.asked.resource] += 1
    return found


def first_line_of_status(address: str) -> str:
    """What `reconciler status` prints first."""
    done = subprocess.run(
        [sys.executable, "-m", "reconciler", "status", "--listen", address, "--output", "table"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "NO_COLOR": "1"},  # noqa: TID251 - a child inherits ours
    )
    return done.stdout.splitlines()[0]


def test_wrong_context_on_two_control_planes_ends_nothing(
    plane: ControlPlane, programs: Path, tmp_path: Path
) -> None:
    """After the second list every instance with its pods would be ended."""
    config = tmp_path / "sectors.yaml"
    config.write_text(
        CONFIG.replace("{namespace: fleet-reconciler}", "{namespace: kube-system}")
        + "instance_init_time: 1\n"
    )
    with OnRealCluster(plane) as sandbox, AuditedPlane(programs, tmp_path / "b") as wrong:
        world = World(sandbox)
        create_fleet(sandbox.aws_url, "medium")
        create_fleet(sandbox.aws_url, "small", target=4)
        until("the nodes join their own cluster", lambda: len(world.nodes()) == 4)
        with Program(sandbox, config, "--kubeconfig", str(wrong.kubeconfig)) as program:
            program.until_ready()
            before = lists(wrong)
            until(
                "both lists were read again",
                lambda: all(count > before[kind] for kind, count in lists(wrong).items()),
            )
            number = program.events("cycle_ended")[-1]["cycle"]
            program.until_event("cycle_ended", lambda e: e["cycle"] > number + 1)
            (told,) = {e["verdict"] for e in program.events("cluster_binding")} - {"pending"}
            assert told == "unproven"
            line = first_line_of_status(program.address())
            assert line.startswith("FAILING: Not proven that this cluster runs"), line
            binding = json.loads(program.get("/api/status")[1])["binding"]
            assert (binding["verdict"], binding["removals_allowed"]) == ("unproven", False)
            assert program.events("action_applied") == []
            assert program.end()[0] == 0
        assert world.instance_states() == ["running"] * 4
        assert len(world.nodes()) == 4
        world.remove_fleets("primary")
        until("the nodes are gone", lambda: not world.nodes())
        world.close()
