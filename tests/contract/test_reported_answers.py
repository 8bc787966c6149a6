"""AWS clients report each answered call as liveness, so that slow cycles are not restarted."""

from contextlib import closing

import pytest
from botocore.config import Config

from reconciler.adapters.aws import Clients, Ec2FleetCloud
from reconciler.model.errors import OutcomeUnknown
from reconciler.model.ids import FleetId, Region
from tests.contract.scripted import Answer, Request, scripted_server

HOME = Region("us-west-2")
IMPATIENT = Config(
    retries={"mode": "standard", "total_max_attempts": 1}, connect_timeout=1, read_timeout=1
)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(variable, "test")


def test_each_answer_is_reported_and_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that gets many slow answers is not stuck; one that gets none may be."""
    answers: list[None] = []

    def script(request: Request) -> Answer | None:
        if b"Action=ModifyFleet" in request.body:
            return None
        return Answer(body=b"<Response><requestId>r</requestId></Response>")

    clients = Clients(IMPATIENT, answered=lambda: answers.append(None))
    with (
        scripted_server(script) as url,
        closing(clients),
        closing(Ec2FleetCloud("analytics", clients)) as cloud,
    ):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        cloud.observe([HOME])
        assert len(answers) == 2  # about fleets, and about instances
        with pytest.raises(OutcomeUnknown):
            cloud.set_target_capacity(HOME, FleetId("fleet-1"), 3)
    assert len(answers) == 2


def test_answers_of_a_queue_are_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is polled beside the loop, so its answers say nothing about a loop that is stuck."""
    answers: list[None] = []
    queue = Clients(IMPATIENT, answered=lambda: answers.append(None))
    with scripted_server(lambda _: Answer(body=b"{}")) as url, closing(queue):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        queue.sqs(HOME).receive_message(QueueUrl=f"{url}/123456789012/notices")
    assert answers == []
