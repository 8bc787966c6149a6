"""Explanations and remedies of the running loop's last plan."""

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from http.client import HTTPConnection
from itertools import islice
from pathlib import Path

import pytest

from reconciler.cli.main import run
from reconciler.config.loader import program_named
from reconciler.loops.workloads import pending_by_workload
from reconciler.model.errors import InputError, Unavailable, UsageError
from reconciler.model.snapshot import ClusterState, Snapshot
from reconciler.planner.planner import plan
from reconciler.planner.settings import PlannerSettings
from reconciler.web import explaining, server
from reconciler.web.client import ask_explanations
from reconciler.web.explaining import (
    QUESTIONS_MAX,
    SEARCHED_AGAIN_AFTER,
    SHOWN_FOR,
    WORKLOADS_AT_ONCE,
    Explainer,
)
from reconciler.web.metrics import Metrics
from reconciler.web.routes import Routes
from reconciler.web.server import WebServer
from tests.builders import NOW, make_fleet_settings, make_pod, make_settings
from tests.unit.web.scene import Scene

SETTINGS = make_settings(make_fleet_settings(max_capacity=0))
POD = make_pod("api-1", sector="primary")


@contextmanager
def serving(settings: Callable[[], PlannerSettings]) -> Iterator[str]:
    """A server whose board has a plan that leaves one pod waiting."""
    snapshot = Snapshot(at=NOW, cluster=ClusterState(pods=(POD,)))
    scene = Scene()
    scene.cycle()
    scene.board.plan_made(snapshot, plan(snapshot, SETTINGS))
    metrics = Metrics(scene.board, scene.clock, "1")
    routes = Routes(scene.board, metrics, settings=settings)
    with WebServer("127.0.0.1:0", routes) as serves:
        yield serves.address
        routes.explainer.wait(30)


@pytest.fixture
def address() -> Iterator[str]:
    """Such a server."""
    with serving(lambda: SETTINGS) as found:
        yield found


class Held:
    """Settings that an explanation waits for, as for a plan of a large cluster."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.released = threading.Event()

    def __call__(self) -> PlannerSettings:
        """Return the settings once they are released."""
        self.asked.set()
        assert self.released.wait(60)
        return SETTINGS


@pytest.fixture
def held() -> Iterator[Held]:
    """Released at the end, whatever happened."""
    found = Held()
    yield found
    found.released.set()


def get(address: str, path: str) -> tuple[int, bytes]:
    """Status and body of one answer."""
    connection = HTTPConnection(address, timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_questions_beyond_a_few_are_refused_at_once(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them had a thread wait, until there was none left for the kubelet's probes."""
    monkeypatch.setattr(explaining, "WAIT_SECONDS", 600.0)
    refused_count = 20
    with serving(held) as found, ThreadPoolExecutor(QUESTIONS_MAX + refused_count) as pool:
        asked = [
            pool.submit(get, found, "/api/explain?pod=ns/api-1")
            for _ in range(QUESTIONS_MAX + refused_count)
        ]
        answers = (each.result()[0] for each in as_completed(asked, timeout=60))
        try:
            assert set(islice(answers, refused_count)) == {429}
        finally:
            held.released.set()
        assert set(answers) == {200}


def test_probes_get_in_while_one_client_asks_for_explanations_without_end(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its connections were closed to make room, but their threads went on waiting."""
    monkeypatch.setattr(explaining, "WAIT_SECONDS", 600.0)
    with serving(held) as address, ExitStack() as stack:
        host, port = address.split(":")
        for _ in range(3 * server.CONNECTIONS_MAX):
            asking = stack.enter_context(socket.create_connection((host, int(port))))
            asking.sendall(b"GET /api/explain?pod=ns/api-1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        try:
            assert get(address, "/healthz")[0] == 200
        finally:
            held.released.set()


def test_connection_is_not_closed_while_its_answer_is_made(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An explanation of a large cluster that took over 15 s never reached who had asked for it."""
    monkeypatch.setattr(server, "CONNECTION_SECONDS", 3.0)
    with serving(held) as address, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(get, address, "/api/explain?pod=ns/api-1")
        assert held.asked.wait(60)
        host, port = address.split(":")
        with socket.create_connection((host, int(port)), timeout=60) as younger:
            assert younger.recv(1) == b"", "it is closed because of its age"
        held.released.set()
        status, body = answer.result(60)
    assert (status, json.loads(body)["pods"][0]["pod"]) == (200, "api-1")


def test_running_loop_explains_pods_nodes_and_fleets(address: str) -> None:
    """The same answer as from the APIs, without a second list of the cluster."""
    found = ask_explanations(address, {"pod": ["ns/api-1"], "fleet": ["primary-small"]})
    (pod,) = found["pods"]
    assert (pod["verdict"], pod["fleets"][0]["code"]) == ("unplaceable", "max-capacity")
    assert pod["change"] == ["raise max_capacity of primary-small to 1"]
    assert [fleet["fleet"] for fleet in found["fleets"]] == ["primary-small"]


def test_what_does_not_exist_and_what_is_elsewhere_are_different_errors(address: str) -> None:
    """A typo must not send people to another cluster's answer."""
    with pytest.raises(UsageError, match="did you mean ns/api-1"):
        ask_explanations(address, {"pod": ["ns/api-2"]})
    with pytest.raises(InputError, match="the reconciler there runs analytics"):
        ask_explanations(address, {"pod": ["ns/api-1"]}, cluster="other")


def test_command_asks_the_running_loop(
    address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`explain` needs no credentials where the reconciler answers."""
    monkeypatch.setattr(sys, "argv", ["reconciler"])
    asked = ["explain", "pod", "ns/api-1", "--status-url", f"http://{address}"]
    assert run([*asked, "--output", "table"]) == 0
    told = capsys.readouterr()
    assert "Smallest change that would place it: raise max_capacity" in told.out
    assert told.err == f"from the last plan of the reconciler at {address}\n"
    assert run([*asked, "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["pods"][0]["pod"] == "api-1"


@pytest.mark.parametrize("command", [("status",), ("explain", "pod", "ns/api-1")], ids=str)
def test_program_is_asked_although_the_config_has_a_fault(
    address: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, command: tuple[str, ...]
) -> None:
    """The loop runs on with the last valid config, and says so to whoever can ask it."""
    file = tmp_path / "sectors.yaml"
    file.write_text(f"cluster: analytics\nlisten: {address}\nmax_capacty: 1\n")
    assert run([*command, "--config", str(file), "--output", "json"]) == 0
    told = capsys.readouterr()
    assert "api-1" in told.out
    assert told.err.startswith(f"warning: {file}:3:1: config/unknown-key: ")


def test_named_program_is_asked_although_the_config_is_no_yaml(
    address: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Only the name of the cluster is missing then, and that is a safeguard."""
    file = tmp_path / "sectors.yaml"
    file.write_text("cluster: analytics\n  - : [\n")
    asked = ["explain", "pod", "ns/api-1", "--config", str(file), "--status-url", address]
    assert run(asked) == 0
    assert capsys.readouterr().err.startswith(f"warning: {file}:2:")


def test_cluster_and_listen_are_each_read_of_a_config_with_faults() -> None:
    """One wrong value must not send the question elsewhere than the others say."""
    text = b"cluster: analytics\nlisten: nowhere\nlisten_token_file: token\nsectors: 5\n"
    found = program_named(text)
    assert (found.cluster, found.listen) == ("analytics", "127.0.0.1:9235")
    assert found.listen_token_file == "token"


def test_command_says_that_the_named_program_does_not_answer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """With --status-url another source would be a wrong answer."""
    assert run(["explain", "pod", "ns/a", "--status-url", "127.0.0.1:1"]) == 1
    assert "nothing answers" in capsys.readouterr().err


def test_page_shows_the_tested_remedy_after_it_was_found(address: str) -> None:
    """The smallest change, not the usual advice."""
    board = Scene().board
    snapshot = Snapshot(at=NOW, cluster=ClusterState(pods=(POD,)))
    board.plan_made(snapshot, plan(snapshot, SETTINGS))
    routes = Routes(board, Metrics(board, Scene().clock, "1"), settings=lambda: SETTINGS)
    assert b"not tested" in routes.answer("/").body
    routes.explainer.wait(30)
    body = routes.answer("/").body
    assert b"raise max_capacity of primary-small to 1" in body
    assert b"not tested" not in body


@pytest.mark.parametrize("config_is_new", [True, False])
def test_page_shows_no_remedy_of_another_config_or_of_long_ago(*, config_is_new: bool) -> None:
    """It might name a value that is in force already."""
    scene = Scene()
    board = scene.board
    snapshot = Snapshot(at=NOW, cluster=ClusterState(pods=(POD,)))
    made = plan(snapshot, SETTINGS)
    board.plan_made(snapshot, made)
    routes = Routes(board, Metrics(board, scene.clock, "1"), settings=lambda: SETTINGS)
    routes.answer("/")
    routes.explainer.wait(30)
    assert b"not tested" not in routes.answer("/").body
    if config_is_new:
        board.config_loaded(replace(board.view.config, commit="newer"))
    else:
        board.plan_made(replace(snapshot, at=NOW + SHOWN_FOR + timedelta(seconds=1)), made)
    assert b"not tested" in routes.answer("/").body
    routes.explainer.wait(30)
    assert b"not tested" not in routes.answer("/").body


def test_remedies_never_searched_for_come_before_those_to_be_searched_again() -> None:
    """With many workloads the last ones would never get one."""
    count = WORKLOADS_AT_ONCE + 5
    pods = tuple(make_pod(f"w-{number:02}", cpu=3, sector="primary") for number in range(count))
    snapshot = Snapshot(at=NOW, cluster=ClusterState(pods=pods))
    made = plan(snapshot, SETTINGS)
    board = Scene().board
    explainer = Explainer(board, lambda: SETTINGS)
    pending = pending_by_workload(snapshot, made)
    for at in (NOW, NOW + SEARCHED_AGAIN_AFTER + timedelta(seconds=1)):
        board.plan_made(replace(snapshot, at=at), made)
        explainer.remedies(pending)
        explainer.wait(30)
    assert len(explainer.remedies(pending)) == count
    explainer.wait(30)


def test_program_without_a_plan_says_so() -> None:
    """Right after the start."""
    with Scene() as scene, pytest.raises(Unavailable, match="there is no plan yet"):
        ask_explanations(scene.server.address, {"pod": ["ns/a"]})
