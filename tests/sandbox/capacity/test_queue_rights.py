"""The rights on the interruption queue that terraform/reconciler grants: exactly enough."""

import json
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import boto3
import pytest

from reconciler.adapters.aws import Clients, SqsNotices, notices
from reconciler.install.iam import QUEUE_ACTIONS
from reconciler.model.errors import PortError
from reconciler.model.ids import Region
from reconciler.sandbox.aws.front.control_client import ControlClient
from reconciler.sandbox.aws.server import AwsServer
from tests.waiting import until

pytestmark = pytest.mark.sandbox
REGION = Region("us-west-2")
USER = "queue-reader"
_NUMBERS = count(1)
MODULE = Path(__file__).parents[3] / "terraform" / "reconciler" / "interruptions.tf"


def granted() -> list[str]:
    """The actions that the module's role may take on the queue."""
    own = MODULE.read_text().partition('resource "aws_iam_role_policy" "interruptions"')[2]
    found = re.search(r"Action\s*=\s*(\[.*?\])", own)
    assert found is not None
    actions = sorted(json.loads(found[1]))
    assert actions == sorted(QUEUE_ACTIONS), "manifest --iam-policy grants something else"
    return actions


class Reader:
    """The adapter with the keys of one user, on a queue of its own."""

    def __init__(self, server: AwsServer, patch: pytest.MonkeyPatch) -> None:
        session: Any = boto3.Session("sandbox", "sandbox", region_name=REGION)
        self.control = ControlClient(server.url)
        self.sqs = session.client("sqs", endpoint_url=server.url)
        self.iam = session.client("iam", endpoint_url=server.url)
        self.url: str = self.sqs.create_queue(QueueName=f"notices-{next(_NUMBERS)}")["QueueUrl"]
        names = ["QueueArn"]
        facts = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)
        self.arn = facts["Attributes"]["QueueArn"]
        self.iam.create_user(UserName=USER)
        key = self.iam.create_access_key(UserName=USER)["AccessKey"]
        patch.setenv("AWS_ENDPOINT_URL", server.url)
        patch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
        patch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
        # What is held is extended after each poll.
        patch.setattr(notices, "EXTEND_AFTER_SECONDS", 0.0)
        patch.setattr(notices, "POLL_SECONDS", 1)
        self.troubles: list[PortError | None] = []

    def grant(self, actions: list[str]) -> None:
        """Give the user these rights on the queue, and no others."""
        # SQS asks for the right of the single call where a batch is sent; moto for the batch's.
        also = [f"{action}Batch" for action in actions]
        statement = {"Effect": "Allow", "Action": [*actions, *also], "Resource": self.arn}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        self.control.enforce_iam(enforced=False)
        self.iam.put_user_policy(UserName=USER, PolicyName="it", PolicyDocument=document)
        self.sqs.send_message(QueueUrl=self.url, MessageBody="no event")
        self.control.enforce_iam(enforced=True)
        self.control.forget_calls()

    def asked(self) -> dict[str, int]:
        """The actions that were asked for since the last `grant`, with their last status."""
        calls = self.control.calls(service="sqs", user_agent="fleet-reconciler")
        return {str(call["action"]).removesuffix("Batch"): int(call["status"]) for call in calls}

    def _answered(self, action: str) -> bool:
        """Whether this was done, or something was refused and the adapter has said so."""
        return self.asked().get(action) == 200 or any(self.troubles)

    def run(self) -> None:
        """Receive a message, hold it for a while, and have it deleted."""
        clients = Clients()
        queue = SqsNotices(
            lambda: self.url,
            clients,
            home=REGION,
            may_receive=lambda: True,
            arrived=lambda _: None,
            troubled=self.troubles.append,
        )
        try:
            queue.settle([])
            until(
                lambda: f"held long enough: {self.asked()}",
                lambda: self._answered("ChangeMessageVisibility"),
                seconds=30,
            )
            queue.settle([notice.message for notice in queue.held()])
            until(
                lambda: f"deleted: {self.asked()}",
                lambda: self._answered("DeleteMessage"),
                seconds=30,
            )
        finally:
            queue.close()
            clients.close()


@pytest.fixture(scope="module")
def server() -> Iterator[AwsServer]:
    """An AWS that can enforce IAM."""
    with AwsServer() as running:
        yield running


@pytest.fixture
def reader(server: AwsServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """A user without rights."""
    made = Reader(server, monkeypatch)
    yield made
    made.control.enforce_iam(enforced=False)
    made.iam.delete_user_policy(UserName=USER, PolicyName="it")
    for key in made.iam.list_access_keys(UserName=USER)["AccessKeyMetadata"]:
        made.iam.delete_access_key(UserName=USER, AccessKeyId=key["AccessKeyId"])
    made.iam.delete_user(UserName=USER)
    made.sqs.close()
    made.iam.close()


def test_what_the_module_grants_is_what_is_used(reader: Reader) -> None:
    """A right too few leaves messages in the queue, a right too many is someone else's."""
    reader.grant(granted())
    reader.run()
    assert reader.troubles == []
    assert sorted(f"sqs:{action}" for action in reader.asked()) == granted()
    assert set(reader.asked().values()) == {200}


@pytest.mark.parametrize("action", granted())
def test_no_right_can_be_taken_away(reader: Reader, action: str) -> None:
    """Each for itself: the refusal is reported, and names the action."""
    reader.grant([each for each in granted() if each != action])
    reader.run()
    assert any(action.removeprefix("sqs:") in str(trouble) for trouble in reader.troubles)
