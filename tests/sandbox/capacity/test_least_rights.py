"""The capacity loop's IAM policy on an AWS that enforces it: exactly enough."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from reconciler.adapters.aws import Ec2FleetCloud
from reconciler.install.iam import policy
from reconciler.model.errors import Forbidden
from reconciler.model.ids import InstanceId, Region
from reconciler.model.snapshot import CloudState
from reconciler.sandbox.aws.front.control_client import ControlClient
from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.cluster.settings import ClusterSettings
from reconciler.sandbox.joiner import JoinerSettings
from reconciler.sandbox.stack import Sandbox, SandboxSettings
from tests.sandbox.capacity.fleets import REGION as REGION_NAME
from tests.sandbox.capacity.fleets import SIZES, create_fleet
from tests.sandbox.capacity.world import CONFIG, Program, World
from tests.waiting import until

pytestmark = pytest.mark.sandbox
USER = "reconciler"
REGION = Region(REGION_NAME)
Document = dict[str, Any]


def shipped() -> Document:
    """The policy for the tests' cluster."""
    found: Document = json.loads(
        policy("capacity-loop", {"cluster": "analytics", "regions": [REGION]})
    )
    return found


def actions_of(document: Document) -> list[str]:
    """Every action that it allows."""
    found: list[str] = []
    for statement in document["Statement"]:
        actions = statement["Action"]
        found += [actions] if isinstance(actions, str) else actions
    return sorted(found)


def without(action: str) -> Document:
    """The policy without one action."""
    statements = []
    for each in shipped()["Statement"]:
        actions = [each["Action"]] if isinstance(each["Action"], str) else each["Action"]
        left = [name for name in actions if name != action]
        if left:
            statements.append({**each, "Action": left})
    return {"Version": "2012-10-17", "Statement": statements}


class Account:
    """An emulated AWS that enforces IAM, with one user of ours in it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.control = ControlClient(sandbox.aws_url)
        self._iam = self._client("iam")
        self._ec2 = self._client("ec2")
        self._iam.create_user(UserName=USER)
        key = self._iam.create_access_key(UserName=USER)["AccessKey"]
        self.keys = {
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        }

    def _client(self, service: str) -> Any:
        session: Any = boto3.Session("sandbox", "sandbox", region_name=REGION)
        return session.client(service, endpoint_url=self.sandbox.aws_url)

    def grant(self, document: Document) -> None:
        """Give the user this policy and no other."""
        self.control.enforce_iam(enforced=False)
        self._iam.put_user_policy(
            UserName=USER, PolicyName="it", PolicyDocument=json.dumps(document)
        )
        self.control.enforce_iam(enforced=True)
        self.control.forget_calls()

    def used(self) -> set[str]:
        """What programs of ours asked for so far; nothing of it was refused."""
        calls = self.control.calls(service="ec2", user_agent="fleet-reconciler")
        assert [call for call in calls if call["status"] == 403] == []
        return {f"ec2:{call['action']}" for call in calls}

    def refused(self) -> set[str]:
        """What programs of ours asked for since the last `grant` and were not allowed to do."""
        calls = self.control.calls(service="ec2", user_agent="fleet-reconciler")
        return {f"ec2:{call['action']}" for call in calls if call["status"] == 403}

    def close(self) -> None:
        """Leave AWS as open as it was."""
        self.control.enforce_iam(enforced=False)
        self._iam.close()
        self._ec2.close()


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    """Two fleets; the medium one never gets an instance."""
    settings = SandboxSettings(
        delays=Delays(launch_seconds=0.5, terminate_seconds=0.5, modify_seconds=0.2),
        cluster=ClusterSettings(job_seconds=3.0),
        joiner=JoinerSettings(join_seconds=0.3, remove_seconds=0.3),
    )
    with Sandbox(settings) as sandbox:
        for size in ("small", "medium"):
            create_fleet(sandbox.aws_url, size)
        made = Account(sandbox)
        for name in SIZES["medium"]:
            made.control.limit_capacity(instance_type=name, remaining=0)
        yield made
        made.close()


def test_policy_is_exactly_what_the_main_job_uses(account: Account, tmp_path: Path) -> None:
    """A right too few is an outage, a right too many is someone else's."""
    config = tmp_path / "sectors.yaml"
    config.write_text(CONFIG)
    account.grant(shipped())
    world = World(account.sandbox)
    with Program(account.sandbox, config, **account.keys) as program:
        program.until_ready()
        # 7 CPUs fit the medium fleet alone, which gets none: its history is read.
        world.add_pods(["large"], cpu="6")
        world.add_pods(["small"], cpu="1500m")
        world.until_pods(lambda phases: phases.get("small") == "Running")
        until(lambda: program.log_text, lambda: "ec2:DescribeFleetHistory" in account.used())
        world.remove_pods()
        program.until_event("action_applied", lambda e: e["action"] == "terminate-instance")
        until(lambda: program.log_text, lambda: not world.nodes())
        assert program.end()[0] == 0
    world.close()
    print(f"\nused and granted: {sorted(account.used())}")  # noqa: T201 - the proof
    assert sorted(account.used()) == actions_of(shipped())


@pytest.fixture
def scenario(account: Account, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Everything that the cloud side of the loop does, once, with the user's keys."""
    for name, value in {**account.sandbox.environment(), **account.keys}.items():
        monkeypatch.setenv(name, value)
    clouds: list[Ec2FleetCloud] = []

    def run() -> None:
        clouds.append(Ec2FleetCloud("analytics"))
        cloud = clouds[-1]
        seen = _until(account, cloud, lambda state: state.fleets, "no fleet is seen")
        before = {fleet.name: fleet for fleet in seen.fleets}
        small, medium = before["primary-small"], before["primary-medium"]
        assert small.launch_template_version == "1", "needed to know which nodes are outdated"
        cloud.set_target_capacity(REGION, medium.id, 1)
        cloud.set_target_capacity(REGION, small.id, 1)
        _until(account, cloud, lambda state: _errors(state, medium.id), "its errors are not seen")
        state = _until(
            account, cloud, lambda state: _members(state, small.id), "no instance is seen"
        )
        cloud.set_target_capacity(REGION, small.id, 0)
        cloud.set_target_capacity(REGION, medium.id, 0)
        cloud.terminate_instances(REGION, _members(state, small.id))

    yield run
    for ec2_fleet_cloud in clouds:
        ec2_fleet_cloud.close()


class RefusedCall(Exception):
    """A call was refused, which the adapter reports in another way than by an error."""


def _errors(state: CloudState, fleet_id: str) -> list[object]:
    return [error for f in state.fleets if f.id == fleet_id for error in f.launch_errors]


def _members(state: CloudState, fleet_id: str) -> list[InstanceId]:
    return [
        instance.id
        for instance in state.instances
        if instance.fleet_id == fleet_id and not instance.gone
    ]


def _until(
    account: Account, cloud: Ec2FleetCloud, holds: Callable[[CloudState], object], what: str
) -> CloudState:
    """The first state of which something holds; RefusedCall as soon as a call was refused."""
    found: list[CloudState] = []

    def look() -> bool:
        found.append(cloud.observe([REGION]))
        if account.refused():
            raise RefusedCall(f"{account.refused()}: {what}")
        return bool(holds(found[-1]))

    until(what, look)
    return found[-1]


def test_scenario_succeeds_with_the_whole_policy(
    account: Account, scenario: Callable[[], None]
) -> None:
    """Otherwise the refusals below would prove nothing."""
    account.grant(shipped())
    scenario()


@pytest.mark.parametrize("action", actions_of(shipped()))
def test_no_action_can_be_taken_away(
    account: Account, scenario: Callable[[], None], action: str
) -> None:
    """Each for itself: without it something that the loop needs fails."""
    account.grant(without(action))
    with pytest.raises((Forbidden, RefusedCall)):
        scenario()
    assert account.refused() == {action}


def test_fleets_and_instances_of_other_clusters_are_out_of_reach(
    account: Account, scenario: Callable[[], None]
) -> None:
    """One account holds several clusters: a bug of ours must not empty another's."""
    account.grant(json.loads(policy("capacity-loop", {"cluster": "another", "regions": [REGION]})))
    with pytest.raises(Forbidden):
        scenario()


def test_cluster_of_the_same_name_in_another_region_is_refused(
    account: Account, scenario: Callable[[], None]
) -> None:
    """Names of EKS clusters are unique in one Region only."""
    values = {"cluster": "analytics", "regions": ["eu-west-1", "us-east-1"]}
    account.grant(json.loads(policy("capacity-loop", values)))
    with pytest.raises(Forbidden):
        scenario()
