"""What page, terminal and JSON leave out of a long list is counted, and found where they say."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from reconciler.cli.views.status import console, view_of
from reconciler.gitops.repository.status import ClusterProgress
from reconciler.model.errors import ConfigError, Problem
from tests.unit.web.scene import UPDATE, Scene, fleet

CAUSES = 43
"""More than a page lists."""


@pytest.fixture
def scene() -> Iterator[Scene]:
    """Rolling updates of many fleets that are halted."""
    names = [f"sector{number}-small" for number in range(CAUSES)]
    with Scene() as running:
        running.cycle(fleets=[fleet(fleet=n, update=replace(UPDATE, fleet=n)) for n in names])
        yield running


def test_json_has_the_causes_that_the_page_says_it_has(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page sent people to a JSON that ended at the same place, without a word."""
    assert "and 23 more: reconciler status --output json" in scene.ask("/")[2]
    status = json.loads(scene.ask("/api/status")[2])
    assert len(status["verdict"]["causes"]) == len(status["verdict"]["problems"]) == CAUSES
    assert status["verdict"]["causes_total"] == CAUSES
    console().print(view_of(status))
    said = capsys.readouterr().out
    assert said.count("  also: ") == 19
    assert "  and 23 more (--output json lists 43)\n" in said
    del status["verdict"]["causes_total"]  # an older program
    console().print(view_of(status))
    assert "  and 23 more (" in capsys.readouterr().out


def test_page_counts_the_faults_and_configs_that_it_leaves_out(scene: Scene) -> None:
    """Whoever mends the twenty faults that are shown believes to be done."""
    faults = tuple(
        Problem(line=n, column=1, code="config/type", message="must be a list", path="a")
        for n in range(1, 31)
    )
    scene.board.config_refused(ConfigError("sectors.yaml", faults))
    configs = tuple(
        ClusterProgress(config=f"{n}/sectors.yaml", cluster=f"c{n}", stage="planned", detail="")
        for n in range(60)
    )
    scene.board.second_loop_ended("at 4f2c1e9: committed", configs)
    body = scene.ask("/")[2]
    assert "and 10 more: reconciler status --output json" in body
    assert "and 10 more configs" in body
