"""What an on-call engineer meets at night: page, terminal and JSON say it in their first line."""

import html
import io
import json
import re
from dataclasses import replace

import pytest
from rich.console import Console

from reconciler.cli.views.status import view_of
from reconciler.web.view import LeadershipView
from tests.unit.web.bad_states import STATES, State, ec2_silent, queue_denied
from tests.unit.web.scene import Scene


@pytest.mark.parametrize("state", STATES, ids=[state.name for state in STATES])
def test_bad_state_is_the_first_line_of_page_terminal_and_json(state: State) -> None:
    """A page that looks healthy while nothing works costs a night."""
    with Scene() as scene:
        state.make(scene)
        status = json.loads(scene.ask("/api/status")[2])
        assert status["verdict"]["level"] == state.level
        assert status["verdict"]["text"].startswith(f"{state.headline}: ")
        assert state.cause in status["verdict"]["text"]
        page = html.unescape(scene.ask("/")[2])
        (lead,) = re.findall(
            r'<p class="lead"><b>.*?</b>(.*?)</p>\s*<p class="cause">(.*?)</p>', page
        )
        assert lead[0] == state.headline
        assert state.cause in lead[1]
        out = io.StringIO()
        Console(file=out, width=400, markup=False).print(view_of(status))
        first = out.getvalue().splitlines()[0]
        assert first.startswith(f"{state.level.upper()}: {state.headline}: ")
        assert state.cause in first


def test_program_that_never_reached_ec2_is_not_ready_and_its_age_grows() -> None:
    """The shipped alert looks at the age, Kubernetes at the readiness."""
    with Scene() as scene:
        scene.clock.advance(400)
        ec2_silent(scene)
        status, _, body = scene.ask("/readyz")
        assert (status, "ReadTimeoutError" in body) == (503, True)
        assert scene.metric("fleet_reconciler_last_success_age_seconds") == 400


def test_queue_that_can_be_read_again_is_no_cause_any_more() -> None:
    """The alert sends whoever is on call to the status; both have to end together."""
    trouble = 'fleet_reconciler_trouble{kind="queue-unreadable"}'
    with Scene() as scene:
        queue_denied(scene)
        assert scene.metric(trouble) == 1
        scene.board.queue_troubled(None)
        assert json.loads(scene.ask("/api/status")[2])["verdict"]["level"] == "ok"
        assert scene.metric(trouble) == 0


def test_leader_is_not_reported_that_it_lost_the_lease_in_a_dry_run() -> None:
    """A dry run never leads, and that is no trouble."""
    with Scene() as scene:
        scene.leads = LeadershipView(enabled=True, leads=False, trouble="this is a dry run")
        scene.board.config_loaded(replace(scene.board.view.config, dry_run=True))
        scene.cycle()
        assert json.loads(scene.ask("/api/status")[2])["verdict"]["level"] == "ok"
