"""The real program over Auto Scaling groups and EC2 Fleets of one cluster."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from reconciler.sandbox.stack import Sandbox
from tests.sandbox.capacity.commands import reconciler
from tests.sandbox.capacity.fleets import REGION, create_group
from tests.sandbox.capacity.world import CONFIG, Program, World
from tests.waiting import until

pytestmark = pytest.mark.sandbox
GROUP = "analytics-grouped-small"
MIXED = f"""\
{CONFIG}
  grouped:
    kind: memory
    fleets:
    - {{size: small, max_capacity: 20, provider: asg, auto_scaling_group: {GROUP}}}
"""


@pytest.fixture(scope="module")
def groups(sandbox: Sandbox) -> Iterator[Any]:
    """The client of Auto Scaling, which has one group of the cluster."""
    create_group(sandbox.aws_url, "small", sector="grouped")
    session = boto3.Session("sandbox", "sandbox", region_name=REGION)
    client = session.client("autoscaling", endpoint_url=sandbox.aws_url)
    yield client
    client.close()


def sizes(groups: Any) -> tuple[int, int]:
    """What the group is to hold, and what it holds."""
    (found,) = groups.describe_auto_scaling_groups()["AutoScalingGroups"]
    return found["DesiredCapacity"], len(found["Instances"])


def test_group_grows_for_pods_and_shrinks_by_the_nodes_that_are_chosen(
    sandbox: Sandbox,
    world: World,
    groups: Any,
    config_file: Path,
    program: Callable[..., Program],
) -> None:
    """Lowering its desired capacity would end whichever node it likes, running jobs and all."""
    config_file.write_text(MIXED)
    running = program()
    running.until_ready()
    world.add_pods(["fleet-1"], cpu="1500m", seconds=3)
    world.add_pods(["group-1", "group-2"], cpu="1500m", seconds=3, sector="grouped")
    wanted = {"fleet-1", "group-1", "group-2"}
    world.until_pods(lambda p: {n for n, s in p.items() if s == "Succeeded"} >= wanted)
    world.until_idle()
    until(lambda: f"group of {sizes(groups)}", lambda: sizes(groups) == (0, 0))
    assert running.process.poll() is None
    raises = sandbox.control.calls(service="autoscaling", action="SetDesiredCapacity")
    assert raises
    assert all(int(each["parameters"]["DesiredCapacity"]) > 0 for each in raises)
    action = "TerminateInstanceInAutoScalingGroup"
    ends = sandbox.control.calls(service="autoscaling", action=action)
    assert ends
    assert {each["parameters"]["ShouldDecrementDesiredCapacity"] for each in ends} == {"true"}


def test_snapshot_of_groups_plans_like_the_live_ones(
    sandbox: Sandbox, world: World, groups: Any, config_file: Path, tmp_path: Path
) -> None:
    """A bug report about a group must show it."""
    assert sizes(groups)[0] == 0
    config_file.write_text(MIXED)
    world.add_pods(["waits"], cpu="1500m", sector="grouped")
    reconciler(sandbox, "snapshot", "--config", str(config_file), "--out", str(tmp_path / "s"))
    files = ("--cluster", str(tmp_path / "s/cluster.json"), "--aws", *_aws_files(tmp_path / "s"))
    plan = ("plan", "--config", str(config_file), "-o", "json")
    offline = json.loads(reconciler(sandbox, *plan, *files).stdout)
    live = json.loads(reconciler(sandbox, *plan).stdout)
    assert offline["fleets"] == live["fleets"]
    raised = [a for a in live["actions"] if a["action"] == "set-capacity"]
    assert [(a["id"], a["provider"], a["to"]) for a in raised] == [(GROUP, "asg", 1)]


def _aws_files(directory: Path) -> list[str]:
    return [str(each) for each in sorted(directory.glob("aws-*.json"))]


def test_config_without_sectors_finds_the_group_by_its_tags(
    sandbox: Sandbox, groups: Any, config_file: Path
) -> None:
    """Whoever comes from Cluster Autoscaler begins without a sector config."""
    groups.create_or_update_tags(
        Tags=[
            {
                "ResourceId": GROUP,
                "ResourceType": "auto-scaling-group",
                "Key": f"k8s.io/cluster-autoscaler/{key}",
                "Value": "true",
                "PropagateAtLaunch": False,
            }
            for key in ("enabled", "analytics")
        ]
    )
    config_file.write_text("cluster: analytics\nregions: [us-west-2]\n")
    made = json.loads(
        reconciler(sandbox, "plan", "--config", str(config_file), "-o", "json").stdout
    )
    assert [(f["fleet"], f["max"]) for f in made["fleets"]] == [("grouped-small", 20)]
