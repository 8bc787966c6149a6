"""An account that enforces IAM, and the policies that ship for its pipelines."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3

from reconciler.install.iam import PolicyName, policy, state_values
from reconciler.sandbox.aws.bootstrap import bootstrap_account
from reconciler.sandbox.aws.server import AwsServer
from reconciler.sandbox.aws.values import Delays
from tests.sandbox.gitops.pipeline_on_aws import BUCKET, KEY, REGION, Account, make_bucket

TEAM = "least"
Document = dict[str, Any]


def shipped(name: PolicyName, *, groups: bool = False) -> Document:
    """A policy for the test's cluster and state, with the rights to groups when it has some."""
    values = {
        "cluster": f"{TEAM}-cluster",
        **state_values(BUCKET, [KEY]),
        "node_role_arn": "arn:aws:iam::123456789012:role/node",
        **({"groups": "true"} if groups else {}),
    }
    found: Document = json.loads(policy(name, values))
    return found


def actions_of(document: Document, *services: str) -> set[str]:
    """Every action that it allows, or those of some services."""
    found: set[str] = set()
    for statement in document["Statement"]:
        actions = statement["Action"]
        found |= {actions} if isinstance(actions, str) else set(actions)
    return {each for each in found if not services or each.startswith(services)}


def without(document: Document, action: str) -> Document:
    """The policy without one action."""
    statements = []
    for each in document["Statement"]:
        actions = [each["Action"]] if isinstance(each["Action"], str) else each["Action"]
        left = [name for name in actions if name != action]
        if left:
            statements.append({**each, "Action": left})
    return {**document, "Statement": statements}


@dataclass(frozen=True, slots=True, kw_only=True)
class Enforced(Account):
    """An account whose user has one policy."""

    server: AwsServer
    keys: tuple[str, str]

    @property
    def environment(self) -> dict[str, str]:
        """What a pipeline gets to see: the user's keys."""
        own = {"AWS_ACCESS_KEY_ID": self.keys[0], "AWS_SECRET_ACCESS_KEY": self.keys[1]}
        return {**Account.environment.fget(self), **own}  # type: ignore[attr-defined]

    def grant(self, document: Document) -> None:
        """Give the user this policy and no other."""
        self.free()
        iam = self.client("iam")
        iam.put_user_policy(UserName="ci", PolicyName="it", PolicyDocument=json.dumps(document))
        iam.close()
        self.server.control.enforce_iam(enforced=True)

    def free(self) -> None:
        """Let the test do as it likes."""
        self.server.control.enforce_iam(enforced=False)

    def user(self, service: str) -> Any:
        """A boto3 client with the user's keys."""
        session: Any = boto3.Session(*self.keys, region_name=REGION)
        return session.client(service, endpoint_url=self.url)

    def used(self) -> set[str]:
        """Actions of Terraform and of our own program so far; none was refused."""
        calls = [
            call
            for service in ("ec2", "autoscaling")
            for call in self.server.control.calls.calls(service=service)
            if "Terraform" in call.user_agent or "fleet-reconciler" in call.user_agent
        ]
        assert [call for call in calls if call.status == 403] == []
        return {f"{call.service}:{call.action}" for call in calls}


@contextmanager
def enforcing() -> Iterator[Enforced]:
    """An account with an empty bucket for state."""
    delays = Delays(launch_seconds=0.1, terminate_seconds=0.1, modify_seconds=0.1)
    with AwsServer(delays=delays) as server:
        session: Any = boto3.Session("sandbox", "sandbox", region_name=REGION)
        iam = session.client("iam", endpoint_url=server.url)
        iam.create_user(UserName="ci")
        key = iam.create_access_key(UserName="ci")["AccessKey"]
        iam.close()
        made = Enforced(
            url=server.url,
            ids=bootstrap_account(server.url, REGION),
            server=server,
            keys=(key["AccessKeyId"], key["SecretAccessKey"]),
        )
        make_bucket(made)
        yield made
        made.free()
