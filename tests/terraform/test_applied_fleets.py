"""Rendered roots applied to the emulated AWS: what the next plan says and may not touch."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import boto3
import pytest

from reconciler.gitops.rendering.render import render
from reconciler.gitops.rendering.root_module import RootModule, S3Backend
from reconciler.gitops.rendering.write import write_rendered
from reconciler.sandbox.aws.bootstrap import AccountIds, bootstrap_account
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.aws.values import Delays
from tests.terraform.program import find_terraform, mirror_option
from tests.terraform.workspaces import Workspace

pytestmark = [pytest.mark.terraform, pytest.mark.sandbox]

_CLUSTERS = count()


@pytest.fixture(scope="module")
def server() -> Iterator[AwsServer]:
    """The emulated AWS, quick."""
    delays = Delays(launch_seconds=0.1, terminate_seconds=0.1, modify_seconds=0.1)
    with AwsServer(delays=delays) as running:
        yield running


@pytest.fixture(scope="module")
def ids(server: AwsServer) -> AccountIds:
    """What the account has in us-west-2."""
    return bootstrap_account(server.url)


def make_workspace(server: AwsServer, ids: AccountIds, folder: Path, ec2: Any) -> Workspace:
    """A spot fleet and an on-demand fleet of a cluster of their own, applied."""
    terraform = find_terraform()
    common = {
        "node_pool_kind": "memory",
        "initial_node_count": 1,
        "ami": ids.ami,
        "security_group_id": ids.security_group_id,
        "private_subnet_ids": dict(sorted(ids.subnet_ids.items())[:2]),
        "instance_profile_name": "",
        "tags": {"environment": "production", "note": '${file("/etc/passwd")} "q" ü'},
    }
    primary = {"sector_label": "primary", "node_pool_size": "small", "spot": True}
    coordinate = {"sector_label": "coordinate", "node_pool_size": "medium", "spot": False}
    root = RootModule(
        cluster_name=f"cluster-{next(_CLUSTERS)}",
        region="us-west-2",
        fleets={
            "primary-small": common | primary,
            "coordinate-medium": common | coordinate,
        },
    )
    write_rendered(render(root), folder)
    terraform.init(folder)
    workspace = Workspace(terraform=terraform, folder=folder, server=server, ec2=ec2, root=root)
    workspace.apply()
    return workspace


@pytest.fixture(scope="module")
def ec2(server: AwsServer) -> Iterator[Any]:
    """EC2 as the capacity loop sees it."""
    session = boto3.Session("test", "test", region_name="us-west-2")
    client = session.client("ec2", endpoint_url=server.url)
    yield client
    client.close()


@pytest.fixture
def applied(server: AwsServer, ids: AccountIds, tmp_path: Path, ec2: Any) -> Workspace:
    """A workspace of the test's own, to apply changes to."""
    return make_workspace(server, ids, tmp_path, ec2)


@pytest.fixture(scope="module")
def shared(
    server: AwsServer, ids: AccountIds, tmp_path_factory: pytest.TempPathFactory, ec2: Any
) -> Workspace:
    """A workspace that tests only plan with; each renders what it wants planned."""
    return make_workspace(server, ids, tmp_path_factory.mktemp("shared"), ec2)


def scale(workspace: Workspace, total: int) -> None:
    """What the capacity loop does all day."""
    for fleet in workspace.fleets().values():
        workspace.ec2.modify_fleet(
            FleetId=fleet["FleetId"],
            ExcessCapacityTerminationPolicy="no-termination",
            TargetCapacitySpecification={"TotalTargetCapacity": total},
        )


def targets(workspace: Workspace) -> dict[str, int]:
    """The target capacity of each fleet."""
    return {
        name: fleet["TargetCapacitySpecification"]["TotalTargetCapacity"]
        for name, fleet in workspace.fleets().items()
    }


def test_plan_after_apply_and_after_scaling_is_empty(shared: Workspace) -> None:
    """A plan that is never empty hides the change that matters, or rolls capacity back."""
    unchanged = shared.with_variables()
    unchanged.assert_no_changes()
    scale(unchanged, 5)
    unchanged.assert_no_changes()
    scale(unchanged, 0)
    unchanged.assert_no_changes()
    tags = {name: fleet["Tags"] for name, fleet in unchanged.fleets().items()}
    assert tags["primary-small"]["note"] == '${file("/etc/passwd")} "q" ü'
    assert tags["primary-small"]["Spot"] == "true"
    assert tags["coordinate-medium"]["Spot"] == "false"


@pytest.mark.nightly
def test_apply_of_tags_and_image_leaves_capacity_and_nodes_alone(applied: Workspace) -> None:
    """Rolling out an image must not undo a month of scaling, nor replace a fleet with nodes."""
    scale(applied, 3)
    before = {name: fleet["FleetId"] for name, fleet in applied.fleets().items()}
    changed = applied.with_variables(
        ami="ami-0123456789abcdef0", node_labels={"tier": "x"}, tags={"team": "data"}
    )
    assert set(map(tuple, changed.planned_actions().values())) == {("update",)}
    applied.server.calls.clear()
    changed.apply()
    assert applied.server.calls.calls(action="ModifyFleet") == ()
    changed.assert_no_changes()
    assert targets(changed) == {"primary-small": 3, "coordinate-medium": 3}
    assert {name: fleet["FleetId"] for name, fleet in changed.fleets().items()} == before
    assert changed.fleets()["primary-small"]["Tags"]["team"] == "data"


@pytest.mark.nightly
def test_apply_of_another_subnet_modifies_with_the_live_capacity(
    applied: Workspace, ids: AccountIds
) -> None:
    """The provider sends a capacity with every change: it must be the one that is in force."""
    scale(applied, 4)
    subnets = dict(sorted(ids.subnet_ids.items())[:1])
    changed = applied.with_variables(private_subnet_ids=subnets)
    assert changed.planned_actions() == {
        "aws_ec2_fleet primary-small": ["update"],
        "aws_ec2_fleet coordinate-medium": ["update"],
    }
    changed.apply()
    assert targets(changed) == {"primary-small": 4, "coordinate-medium": 4}
    changed.assert_no_changes()


def test_another_allocation_strategy_is_a_warning_not_a_replacement(shared: Workspace) -> None:
    """EC2 cannot change it on a living fleet, and the provider would replace fleet and nodes."""
    changed = shared.with_variables(spot_allocation_strategy="capacity-optimized")
    printed = " ".join(changed.assert_no_changes().split())
    assert "is not the one it was created with" in printed


def test_change_between_spot_and_on_demand_is_shown_as_a_replacement(shared: Workspace) -> None:
    """EC2 has no such change: a plan that hides the replacement would surprise with new nodes."""
    changed = shared.with_variables(spot=False)
    assert changed.planned_actions() == {
        "aws_ec2_fleet primary-small": ["create", "delete"],
        "aws_launch_template primary-small": ["update"],
    }


@pytest.mark.nightly
def test_destroyed_fleet_leaves_its_nodes_running(applied: Workspace) -> None:
    """A fleet that goes must be drained by the capacity loop, never take its pods along."""
    fleet = applied.fleets()["primary-small"]
    remaining = {n: f for n, f in applied.root.fleets.items() if n != "primary-small"}
    root = replace(applied.root, fleets=remaining)
    write_rendered(render(root), applied.folder)
    applied.server.calls.clear()
    applied.apply()
    (deleted,) = applied.server.calls.calls(action="DeleteFleets")
    assert deleted.parameters["TerminateInstances"] == "false"
    assert deleted.parameters["FleetId.1"] == fleet["FleetId"]
    assert list(applied.fleets()) == ["coordinate-medium"]


def test_state_and_its_lock_are_in_the_bucket(applied: Workspace, tmp_path: Path) -> None:
    """Two pipelines without a common lock would apply over each other."""
    session = boto3.Session("test", "test", region_name="us-west-2")
    s3 = session.client("s3", endpoint_url=applied.server.url)
    s3.create_bucket(Bucket="states", CreateBucketConfiguration={"LocationConstraint": "us-west-2"})
    s3.close()
    key = "odd ${path.root} key.tfstate"
    backend = S3Backend(bucket="states", key=key, region="us-west-2", endpoint=applied.server.url)
    write_rendered(render(replace(applied.root, backend=backend)), applied.folder)
    code, printed = applied.call("init", "-migrate-state", "-force-copy", *mirror_option())
    assert code == 0, printed
    (tmp_path / "terraform.tfstate").unlink(missing_ok=True)
    applied.server.calls.clear()
    applied.assert_no_changes()
    locks = [
        (call.action, call.parameters["Path"])
        for call in applied.server.calls.calls(service="s3", mutating=True)
    ]
    assert locks == [
        ("PUT", f"/states/{key}.tflock"),
        ("DELETE", f"/states/{key}.tflock"),
    ]
