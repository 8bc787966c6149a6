"""The node watch's clients over HTTP, with servers that answer well, badly and not at all."""

import json
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.memory import ManualClock
from reconciler.model.errors import (
    Conflict,
    Forbidden,
    NotFound,
    PortError,
    Throttled,
    Unavailable,
    UsageError,
)
from reconciler.node_watch.decision import NodeChange, OwnNode
from reconciler.node_watch.metadata import BODY_BYTES_MAX, InstanceMetadata
from reconciler.node_watch.own_node import ApiPlace, OwnNodeClient
from reconciler.sandbox.cluster.front.certificate import make_certificate
from tests.builders import NOW
from tests.contract.scripted import Answer, Request, json_answer, scripted_server

SPOT = "/latest/meta-data/spot/instance-action"
TOO_LONG = Answer(200, b"x" * (BODY_BYTES_MAX + 1))
ENDING = b'{"action": "terminate", "time": "2026-01-31T12:02:00Z"}'


class Service:
    """IMDSv2 as EC2 documents it, with what a test put into it."""

    def __init__(self, **documents: bytes) -> None:
        self.documents = {path.replace("__", "/"): body for path, body in documents.items()}
        self.answers: dict[str, Answer | None] = {}
        self.valid: set[str] = set()
        self.tokens = 0
        self.lasts_seconds = 21_600

    def __call__(self, request: Request) -> Answer | None:
        if request.path in self.answers:
            return self.answers[request.path]
        if request.path == "/latest/api/token":
            assert request.method == "PUT"
            assert request.headers["X-Aws-Ec2-Metadata-Token-Ttl-Seconds".lower()] == "21600"
            self.tokens += 1
            self.valid = {f"token-{self.tokens}=="}
            ttl = {"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": str(self.lasts_seconds)}
            return Answer(200, min(self.valid).encode(), ttl)
        if request.headers.get("X-aws-ec2-metadata-token") not in self.valid:
            return Answer(401)
        body = self.documents.get(request.path.removeprefix("/latest/meta-data/"))
        return Answer(404) if body is None else Answer(200, body)


@pytest.fixture
def service() -> Service:
    """Instance metadata with nothing announced."""
    return Service()


@pytest.fixture
def clock() -> ManualClock:
    """A clock that a test moves."""
    return ManualClock(NOW)


@pytest.fixture
def metadata(service: Service, clock: ManualClock) -> Iterator[InstanceMetadata]:
    """A client of the service."""
    with scripted_server(service) as url:
        client = InstanceMetadata(url, clock.monotonic_seconds)
        yield client
        client.close()


def test_nothing_announced_is_four_times_not_found(metadata: InstanceMetadata) -> None:
    """Instance metadata has no such document until there is something to say."""
    assert metadata.read().empty
    assert metadata.read().problems == ()


def test_everything_announced_is_read(service: Service, metadata: InstanceMetadata) -> None:
    """The four documents of the user guides."""
    service.documents = {
        "spot/instance-action": ENDING,
        "events/recommendations/rebalance": b'{"noticeTime": "2026-01-31T11:00:00Z"}',
        "events/maintenance/scheduled": b'[{"NotBefore": "1 Feb 2026 09:00:00 GMT",'
        b' "State": "active"}]',
        "autoscaling/target-lifecycle-state": b"Terminated",
        "instance-id": b"i-0a",
    }
    said = metadata.read()
    assert sorted(map(str, said.notices)) == [
        "rebalance-recommendation/2026-01-31T11:00:00Z",
        "scheduled-change/2026-02-01T09:00:00Z",
        "terminate/2026-01-31T12:02:00Z",
    ]
    assert said.group_terminates
    assert metadata.instance_id() == "i-0a"


def test_token_is_used_until_shortly_before_its_end(
    service: Service, metadata: InstanceMetadata, clock: ManualClock
) -> None:
    """A token per request would double the requests, and EC2 limits them."""
    service.lasts_seconds = 3600
    for _ in range(3):
        metadata.read()
    assert service.tokens == 1
    clock.advance(3600 - 300)
    metadata.read()
    assert service.tokens == 2


def test_token_that_is_refused_is_replaced_at_once(
    service: Service, metadata: InstanceMetadata
) -> None:
    """An instance that was stopped and started has other tokens."""
    metadata.read()
    service.valid = set()
    service.documents = {"spot/instance-action": ENDING}
    assert len(metadata.read().notices) == 1
    assert service.tokens == 2


def test_service_that_refuses_new_tokens_too_is_an_error(
    service: Service, metadata: InstanceMetadata
) -> None:
    """Asking for ever would be a busy loop on every node."""
    service.answers[SPOT] = Answer(401)
    with pytest.raises(Forbidden):
        metadata.read()
    assert service.tokens == 2


@pytest.mark.parametrize(
    "answer",
    [
        None,
        Answer(403),
        Answer(429),
        Answer(500),
        Answer(200, b""),
        Answer(200, b"line\nbreak"),
        TOO_LONG,
        Answer(302, b"", {"Location": "http://127.0.0.1:1/"}),
    ],
    ids=lambda each: "none" if each is None else str(each.status),
)
def test_no_token_is_an_error(
    service: Service, metadata: InstanceMetadata, answer: Answer | None
) -> None:
    """Behind a hop limit of 1, or where instance metadata is off, there is none."""
    service.answers["/latest/api/token"] = answer
    with pytest.raises(PortError):
        metadata.read()


@pytest.mark.parametrize(
    "answer",
    [Answer(500), Answer(503), Answer(429), Answer(200, b"{"), None, TOO_LONG],
    ids=["500", "503", "429", "malformed", "none", "too long"],
)
def test_one_document_that_cannot_be_read_does_not_hide_the_others(
    service: Service, metadata: InstanceMetadata, answer: Answer | None
) -> None:
    """It is named, and nothing is taken back until it can be read."""
    service.documents = {"spot/instance-action": ENDING}
    service.answers["/latest/meta-data/events/maintenance/scheduled"] = answer
    said = metadata.read()
    assert len(said.notices) == 1
    assert len(said.problems) == 1


def test_document_that_is_too_long_is_not_read(
    service: Service, metadata: InstanceMetadata
) -> None:
    """Something that answers in EC2's place must not fill the memory of a node."""
    service.answers[SPOT] = Answer(200, ENDING + b" " * BODY_BYTES_MAX)
    said = metadata.read()
    assert said.notices == frozenset()
    assert "longer than" in said.problems[0]
    del service.answers[SPOT]
    assert metadata.read().empty


def test_service_that_is_down_is_an_error_and_comes_back(clock: ManualClock) -> None:
    """The connection that broke is not used again."""
    answers: list[bool] = [True]
    service = Service()

    def script(request: Request) -> Answer | None:
        return service(request) if answers[0] else None

    with scripted_server(script) as url:
        metadata = InstanceMetadata(url, clock.monotonic_seconds)
        assert metadata.read().empty
        answers[0] = False
        with pytest.raises(Unavailable):
            metadata.read()
        answers[0] = True
        assert metadata.read().empty
        metadata.close()
    with pytest.raises(Unavailable):
        metadata.read()


def test_proxies_of_the_environment_are_not_asked(
    service: Service, metadata: InstanceMetadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy would be given the token, and answers for another machine."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert metadata.read().empty
    assert service.tokens == 1


@pytest.mark.parametrize(
    "url", ["https://169.254.169.254", "http://", "ftp://x", "http://x/path", "http://x:port", "x"]
)
def test_address_that_is_none_is_wrong_usage(url: str) -> None:
    """The hint has the address of EC2's own."""
    with pytest.raises(UsageError):
        InstanceMetadata(url, lambda: 0.0)


NODE: dict[str, Any] = {
    "metadata": {"name": "a", "resourceVersion": "7", "annotations": {"k": "v"}},
    "spec": {"providerID": "aws:///z/i-0a", "taints": [{"key": "t", "effect": "NoSchedule"}]},
}


class Api:
    """An API server with one node, which keeps what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked: list[Request] = []
        self.answer: Callable[[Request], Answer | None] = lambda _request: json_answer(NODE)
        certificate = make_certificate(datetime.now(UTC))  # noqa: TID251 - TLS checks the real day
        self.context: ssl.SSLContext = certificate.server_context()
        (folder / "ca.crt").write_bytes(certificate.certificate)
        (folder / "token").write_text("first\n")

    def __call__(self, request: Request) -> Answer | None:
        self.asked.append(request)
        return self.answer(request)


@pytest.fixture
def api(tmp_path: Path) -> Api:
    """An API server with one node."""
    return Api(tmp_path)


@pytest.fixture
def own(api: Api) -> Iterator[OwnNodeClient]:
    """A client of the API server."""
    with scripted_server(api, api.context) as url:
        yield OwnNodeClient(ApiPlace(url=url, account=api.folder), "a")


def test_node_is_read_and_patched_as_it_was_read(api: Api, own: OwnNodeClient) -> None:
    """Without its resourceVersion the patch would take away a taint that came in between."""
    node = own.read()
    assert node == OwnNode(
        resource_version="7",
        provider_id="aws:///z/i-0a",
        annotations={"k": "v"},
        taints=({"key": "t", "effect": "NoSchedule"},),
    )
    own.write(
        node, NodeChange(annotations={"x": "1", "y": None}, taints=(*node.taints, {"key": "u"}))
    )
    request = api.asked[-1]
    assert (request.method, request.path) == ("PATCH", "/api/v1/nodes/a")
    assert request.headers["Content-Type"] == "application/merge-patch+json"
    assert json.loads(request.body) == {
        "metadata": {"resourceVersion": "7", "annotations": {"x": "1", "y": None}},
        "spec": {"taints": [{"key": "t", "effect": "NoSchedule"}, {"key": "u"}]},
    }
    own.write(node, NodeChange(annotations={"x": "1"}))
    assert "spec" not in json.loads(api.asked[-1].body)


def test_token_file_is_read_for_each_request(api: Api, own: OwnNodeClient) -> None:
    """The kubelet replaces it every hour."""
    own.read()
    (api.folder / "token").write_text("second")
    own.read()
    assert [request.headers["Authorization"] for request in api.asked] == [
        "Bearer first",
        "Bearer second",
    ]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, Forbidden),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (422, Forbidden),
        (429, Throttled),
        (500, Unavailable),
        (503, Throttled),
        (302, Unavailable),
    ],
)
def test_refusal_is_the_error_that_it_means(
    api: Api, own: OwnNodeClient, status: int, kind: type[PortError]
) -> None:
    """The loop waits after each of them; the server's words are in the log."""
    api.answer = lambda _request: json_answer({"message": "because"}, status)
    with pytest.raises(kind, match="because"):
        own.read()


@pytest.mark.parametrize(("told", "seconds"), [("7", 7.0), ("100000", None), ("99999", 60.0)])
def test_pause_that_is_asked_for_is_reported(
    api: Api, own: OwnNodeClient, told: str, seconds: float | None
) -> None:
    """It is kept within bounds: a node has two minutes."""
    api.answer = lambda _request: json_answer({}, 429, Retry_After=told)
    with pytest.raises(Throttled) as caught:
        own.read()
    assert caught.value.retry_after_seconds == seconds


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"{}", b"[" * 100_000, b'{"metadata": [], "spec": {}}', b"null"),
        b'{"metadata": {"resourceVersion": "1", "annotations": {"a": 1}}, "spec": {}}',
    ],
)
def test_answer_that_is_no_node_is_an_error(api: Api, own: OwnNodeClient, body: bytes) -> None:
    """A load balancer may answer in the API server's place."""
    api.answer = lambda _request: Answer(200, body)
    with pytest.raises(Unavailable):
        own.read()


def test_server_of_another_authority_gets_no_token(api: Api, own: OwnNodeClient) -> None:
    """Whoever answers on the API server's address could patch the node with it."""
    other = make_certificate(datetime.now(UTC))  # noqa: TID251 - TLS checks the real day
    (api.folder / "ca.crt").write_bytes(other.certificate)
    with pytest.raises(Unavailable):
        own.read()
    assert api.asked == []


@pytest.mark.parametrize("missing", ["token", "ca.crt"])
def test_missing_files_of_the_account_are_an_error(
    api: Api, own: OwnNodeClient, missing: str
) -> None:
    """The kubelet may be about to replace them."""
    (api.folder / missing).unlink()
    with pytest.raises(Unavailable):
        own.read()


@pytest.mark.parametrize("name", ["", "../pods", "A", "a/b", "a?x"])
def test_name_that_is_none_of_a_node_is_wrong_usage(tmp_path: Path, name: str) -> None:
    """It becomes a part of a path."""
    with pytest.raises(UsageError):
        OwnNodeClient(ApiPlace(url="https://127.0.0.1:1", account=tmp_path), name)


def test_turn_that_hangs_ends_the_process() -> None:
    """The kubelet starts it again; as the first process of a container it gets no SIGALRM."""
    code = (
        "import threading\n"
        "from reconciler.bootstrap.node_watch import end_after\n"
        "end_after(0.2)\n"
        "threading.Event().wait(60)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=False, timeout=50
    )
    assert done.returncode == 1
