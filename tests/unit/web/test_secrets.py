"""What other sides said is shown without secrets, as in the log."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from reconciler.gitops.repository.status import ClusterProgress
from reconciler.model.errors import (
    ConfigError,
    Forbidden,
    ObservationError,
    Problem,
    ReconcilerError,
    Unavailable,
)
from reconciler.web.view import ConfigInForce, LeadershipView
from tests.unit.web.scene import Scene, raised

SECRET = "hunter2Sup3rS3cretValue"
ADDRESS = f"https://user:{SECRET}@127.0.0.1:9"
ECHO = f"401 token Bearer {SECRET} is bad"
PATHS = ("/", "/api/status", "/readyz", "/metrics")


@pytest.fixture
def scene() -> Iterator[Scene]:
    """A server on a free port."""
    with Scene() as running:
        yield running


def shown(scene: Scene) -> str:
    """All that the server says."""
    return "".join(scene.ask(path)[2] for path in PATHS)


@pytest.mark.parametrize(
    "error",
    [
        ObservationError("cluster", f"{ADDRESS}: connection refused"),
        Unavailable(ADDRESS, "connection refused"),
        Forbidden("GET /api", ECHO, f"look at {ADDRESS}"),
    ],
    ids=["what", "where", "hint"],
)
def test_error_of_a_cycle_is_shown_without_secrets(scene: Scene, error: ReconcilerError) -> None:
    """The status page is open to more people than the kubeconfig."""
    scene.cycle(error=error)
    text = shown(scene)
    assert SECRET not in text
    assert "***" in text


def test_trouble_of_the_election_is_shown_without_secrets(scene: Scene) -> None:
    """A server that echoes the token in its 401."""
    scene.leads = LeadershipView(enabled=True, leads=False, trouble=f"GET /apis: {ECHO}")
    text = shown(scene)
    assert SECRET not in text
    assert "401 token Bearer ***" in text


def test_failed_action_is_shown_without_secrets(scene: Scene) -> None:
    """Its detail is what the other side answered."""
    scene.cycle(replace(raised("failed"), detail=f"{ADDRESS}: {ECHO}"))
    text = shown(scene)
    assert SECRET not in text
    assert "is bad" in text


def test_faults_of_a_config_and_the_second_loop_are_shown_without_secrets(scene: Scene) -> None:
    """An address in the config, and that of the repository, may hold a password."""
    problem = Problem(line=1, column=1, path="a", code="config/syntax", message=ADDRESS)
    progress = ClusterProgress(config="a", cluster="a", stage="planned", detail=ADDRESS)
    scene.board.second_loop_ended(f"failed: {ADDRESS}", (progress,))
    scene.board.config_refused(ConfigError("sectors.yaml", (problem,)))
    assert SECRET not in shown(scene)
    scene.board.config_loaded(ConfigInForce(file="sectors.yaml", faults=(ADDRESS,)))
    assert SECRET not in shown(scene)


def test_error_without_secrets_keeps_its_kind(scene: Scene) -> None:
    """The kind decides which remedy is shown."""
    problem = Problem(line=1, column=1, path="a", code="config/syntax", message=ADDRESS)
    scene.cycle(error=ConfigError("sectors.yaml", (problem,)))
    report = scene.board.view.last_cycle
    assert report is not None
    assert isinstance(report.error, ConfigError)
