"""A new image comes by a commit: every node is replaced, or none where it does not boot."""

import time
from typing import Any

import pytest

from reconciler.sandbox.faults.script import FaultScript
from tests.full_proofs import rounds
from tests.sandbox.gitops.team import Team, sector
from tests.sandbox.gitops.workloads import deploy, limit_disruptions
from tests.terraform.needs import needs_provider, real_terraform

pytestmark = real_terraform
NODES, BATCH = rounds(3, 40), rounds(2, 4)
REPLICAS = 2 * NODES
FLEET = "web-small"
TOP = f"""\
instance_init_time: 30s
disruption_budgets: [{{nodes: {BATCH}}}]
rolling_update: {{enabled: true, max_batch: {BATCH}, pause: 0s, canary_time: 2s}}
"""
WEB = f"""\
  web:
    kind: memory
    fleets:
    - {{size: small, min_capacity: {NODES}, max_capacity: {2 * NODES}}}
"""
SECTORS = (sector("primary", "small"), WEB)


class Service:
    """A Deployment with a budget, and the fewest nodes and pods of it that were ever seen."""

    def __init__(self, team: Team) -> None:
        self._team = team
        self.fewest_nodes = NODES
        self.fewest_pods = REPLICAS

    def start(self) -> None:
        """Create it, and wait until all of its pods run."""
        team = self._team
        web = {"sector": "web"}
        deploy(team, "web", web, cpu="1300m", memory="64Mi", replicas=REPLICAS)
        limit_disruptions(team, "web", BATCH)
        team.until(lambda: self._running() == REPLICAS, f"{REPLICAS} pods never ran")

    def look(self) -> set[str]:
        """Images of the fleet's running instances; the fewest in service are noted."""
        self.fewest_nodes = min(self.fewest_nodes, self._in_service())
        self.fewest_pods = min(self.fewest_pods, self._running())
        return self.images()

    def images(self) -> set[str]:
        """Images of the fleet's running instances."""
        found = self._team.world.ec2.describe_instances(
            Filters=[
                {"Name": "tag:fleet", "Values": [FLEET]},
                {"Name": "instance-state-name", "Values": ["running"]},
            ]
        )["Reservations"]
        return {instance["ImageId"] for part in found for instance in part["Instances"]}

    def is_whole(self, image: str) -> bool:
        """Whether all nodes have the image and all pods run; what is seen is noted."""
        return self.look() == {image} and self._running() == REPLICAS

    def _running(self) -> int:
        pods = self._team.world.core.list_namespaced_pod("default").items
        return sum(1 for pod in pods if pod.status.phase == "Running")

    def _in_service(self) -> int:
        nodes = [n for n in self._team.world.nodes() if n.metadata.labels["fleet"] == FLEET]
        return sum(1 for node in nodes if _takes_pods(node))


def _takes_pods(node: Any) -> bool:
    ready = any(c.type == "Ready" and c.status == "True" for c in node.status.conditions or ())
    return ready and not any(t.effect == "NoSchedule" for t in node.spec.taints or ())


def _config(team: Team, image: str) -> str:
    made = team.config(*SECTORS, top=TOP, ami=image)
    return made.replace("idle_threshold: 2s", "idle_threshold: 2s, settle_time: 1s")


def _images(team: Team) -> list[str]:
    """Linux images that the account knows, the first of them that of the first config."""
    found = team.world.ec2.describe_images(Owners=["amazon"])["Images"]
    fitting = [
        each["ImageId"]
        for each in found
        if each.get("Architecture") == "x86_64" and each.get("Platform") != "windows"
    ]
    return sorted(fitting)


@pytest.mark.nightly
@needs_provider
def test_commit_rolls_a_new_image_out_and_halts_a_broken_one(
    team: Team, closing_lines: list[str]
) -> None:
    """A commit, and nothing by hand; the service has its nodes and its pods at every moment."""
    old, new, broken, fixed = _images(team)[:4]
    team.until(team.is_live, "the first config never became live")
    team.commit(_config(team, old), "A service")
    team.until(lambda: team.is_live() and len(team.nodes_of(FLEET)) == NODES, "nodes not there")
    service = Service(team)
    service.start()

    began = team.commit(_config(team, new), "A new image")
    team.until(lambda: service.is_whole(new) and team.is_live(), "the image was not rolled out")
    took_seconds = time.monotonic() - began
    assert service.fewest_nodes >= NODES
    assert service.fewest_pods >= REPLICAS - BATCH
    assert _states(team)[-1] != "halted"

    team.world.sandbox.put_faults(
        FaultScript.model_validate({"aws": {"launches": [{"joins": False, "image": broken}]}})
    )
    ended = len(_ended(team))
    team.commit(_config(team, broken), "An image that does not boot")
    team.until(lambda: _states(team)[-1] == "halted", "the update was not halted")
    team.until(lambda: service.look() == {new}, "the node that never joined was not ended")
    team.until(lambda: team.world.targets()[FLEET] == NODES, "the target is not as it was")
    assert len(_ended(team)) == ended + 1, "more than the canary went"
    assert service.fewest_nodes >= NODES

    team.commit(_config(team, fixed), "A fixed image")
    team.until(lambda: service.is_whole(fixed), "the next image was not rolled out")
    assert service.fewest_nodes >= NODES
    assert service.fewest_pods >= REPLICAS - BATCH
    closing_lines.append(
        f"new image for {NODES} nodes in batches of {BATCH}, from the commit to the last node: "
        f"{took_seconds:.0f} s; at least {service.fewest_nodes} nodes and {service.fewest_pods} of "
        f"{REPLICAS} pods in service; a broken image halted after one node"
    )


def _states(team: Team) -> list[str]:
    events = [e for e in team.program.events("rolling_update") if e["fleet"] == FLEET]
    return [str(event["state"]) for event in events] or [""]


def _ended(team: Team) -> list[dict[str, Any]]:
    applied = [e for e in team.program.events("action_applied") if e.get("fleet") == FLEET]
    return [each for each in applied if each["action"] == "terminate-instance"]
