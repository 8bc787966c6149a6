"""Explanations and remedies of the running loop's last plan."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.cli.main import run
from reconciler.model.errors import InputError, Unavailable, UsageError
from reconciler.model.snapshot import ClusterState, Snapshot
from reconciler.planner.planner import plan
from reconciler.web.asking import ask_explanations
from reconciler.web.metrics import Metrics
from reconciler.web.routes import Routes
from reconciler.web.server import WebServer
from tests.builders import NOW, make_fleet_settings, make_pod, make_settings
from tests.unit.web.scene import Scene

SETTINGS = make_settings(make_fleet_settings(max_capacity=0))
POD = make_pod("api-1", sector="primary")


@pytest.fixture
def address() -> Iterator[str]:
    """A server whose board has a plan that leaves one pod waiting."""
    snapshot = Snapshot(at=NOW, cluster=ClusterState(pods=(POD,)))
    board = Scene().board
    board.plan_made(snapshot, plan(snapshot, SETTINGS))
    metrics = Metrics(board, Scene().clock, "1")
    routes = Routes(board, metrics, settings=lambda: SETTINGS)
    with WebServer("127.0.0.1:0", routes) as server:
        yield server.address
        routes.explainer.wait(30)


def test_running_loop_explains_pods_nodes_and_fleets(address: str) -> None:
    """The same answer as from the APIs, without a second list of the cluster."""
    found = ask_explanations(address, {"pod": ["ns/api-1"], "fleet": ["primary-small"]})
    (pod,) = found["pods"]
    assert (pod["verdict"], pod["fleets"][0]["code"]) == ("unplaceable", "max-capacity")
    assert pod["change"] == ["raise max_capacity of primary-small to 1"]
    assert [each["fleet"] for each in found["fleets"]] == ["primary-small"]


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


def test_program_without_a_plan_says_so() -> None:
    """Right after the start."""
    with Scene() as scene, pytest.raises(Unavailable, match="there is no plan yet"):
        ask_explanations(scene.server.address, {"pod": ["ns/a"]})
