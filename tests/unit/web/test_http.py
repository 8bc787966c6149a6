"""Health checks, metrics, page and API over real HTTP."""

import json
import re
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.gitops.repository.status import ClusterProgress
from reconciler.model.actions import EvictPod
from reconciler.model.errors import ConfigError, Problem, ReconcilerError, Unavailable, UsageError
from reconciler.model.ids import NodeName, PodKey, Region
from reconciler.model.outcome import Outcome
from reconciler.model.plan import (
    DriftedNodes,
    NodesByKind,
)
from reconciler.ports.changes import HandledChanges
from reconciler.telemetry import metrics as names
from reconciler.web import server
from reconciler.web.client import ask_status
from reconciler.web.server import WebServer
from reconciler.web.view import ConfigInForce
from tests.builders import make_pod
from tests.unit.web.scene import (
    HEADROOM,
    MISSING,
    STAND_INS,
    UPDATE,
    Scene,
    bought,
    fleet,
    raised,
    unplaced,
)

PLANNED = ClusterProgress(
    config="a/sectors.yaml", cluster="a", stage="planned", detail="waits for its approval"
)
STAGE_VALUES = (("rendered", "0.0"), ("planned", "1.0"), ("live", "0.0"))
DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"


@pytest.fixture
def scene() -> Iterator[Scene]:
    """A server on a free port."""
    with Scene() as running:
        yield running


def test_health_follows_the_loop(scene: Scene) -> None:
    """A stuck loop must be restarted, one that fails its cycles must not."""
    assert scene.ask("/healthz")[0] == 200
    scene.cycle(error=Unavailable("api", "no answer"))
    scene.clock.advance(60)
    assert scene.ask("/healthz")[0] == 200
    scene.clock.advance(600)
    assert scene.ask("/healthz")[0] == 503
    scene.cycle()
    assert scene.ask("/healthz")[0] == 200


def test_slow_answers_of_ec2_keep_the_program_alive(scene: Scene) -> None:
    """It was restarted before its first plan, each time, while it only waited for a slow EC2."""
    for _ in range(40):
        scene.clock.advance(60)
        scene.board.answered()
        assert scene.ask("/healthz")[0] == 200
    scene.clock.advance(600)
    assert scene.ask("/healthz")[0] == 503


def test_readiness_follows_the_caches_and_the_first_plan(scene: Scene) -> None:
    """Stale caches decide nothing, nor does a program that EC2 never answered."""
    assert scene.ask("/readyz")[0] == 503
    scene.cycle(error=Unavailable("ec2", "no answer"))
    assert scene.ask("/readyz")[0] == 503
    scene.cycle()
    assert scene.ask("/readyz")[0] == 200
    scene.synced = False
    assert scene.ask("/readyz")[0] == 503


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/nothing", "GET", 404),
        ("/metrics/", "GET", 404),
        ("/healthz/../metrics", "GET", 404),
        ("/healthz?verbose", "GET", 200),
        ("/healthz", "POST", 405),
        ("/", "DELETE", 405),
        ("/", "BREW", 405),
        ("/nothing", "POST", 404),
        ("/healthz", "HEAD", 200),
    ],
)
def test_only_known_paths_and_reading_are_served(
    scene: Scene, path: str, method: str, status: int
) -> None:
    """Nothing that a stranger sends may have an effect or an error of ours."""
    answered, headers, body = scene.ask(path, method)
    assert answered == status
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Python" not in headers["Server"]
    assert body == "" or method != "HEAD"


def test_plan_is_the_contracts_json(scene: Scene) -> None:
    """Tools read the last plan as they read `reconciler plan`."""
    assert scene.ask("/api/plan")[0] == 503
    scene.cycle(fleets=(fleet(),))
    status, headers, body = scene.ask("/api/plan")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert json.loads(body)["fleets"][0]["target"] == 5


def test_status_names_actions_and_reasons(scene: Scene) -> None:
    """Why a pod waits and what was done must be answered in one place."""
    scene.cycle(raised(), unplaceable=(unplaced("giant", "max-capacity"),))
    status = json.loads(scene.ask("/api/status")[2])
    assert status["verdict"]["level"] == "limited"
    assert status["verdict"]["causes"][0]["kind"] == "budget-too-tight"
    (workload,) = status["workloads"]
    assert (workload["pods"], workload["state"]) == (1, "unplaceable")
    assert status["actions"][0]["because"] == "3 pending pods need 3 more nodes"
    assert status["plan"]["unplaceable"][0]["reasons"][0]["code"] == "max-capacity"
    assert status["plan"]["pods_pending"] == 1
    assert ask_status(scene.server.address) == status


def test_pod_that_asks_for_too_much_does_not_change_the_level(scene: Scene) -> None:
    """What one tenant asks for in vain is not a fault of the program or of the config."""
    scene.cycle(unplaceable=(unplaced("giant", "insufficient-cpu"),))
    verdict = json.loads(scene.ask("/api/status")[2])["verdict"]
    assert (verdict["level"], verdict["text"]) == ("ok", "No fleet can run 1 pod")


def test_refused_config_shows_on_page_and_in_metrics(scene: Scene) -> None:
    """Whoever pushed the typo looks at the page before the log."""
    problem = Problem(line=3, column=5, path="a", code="config/type", message="5 is not a list")
    scene.board.config_refused(ConfigError("sectors.yaml", (problem,)))
    scene.metrics.config_refused()
    assert "3:5: config/type: 5 is not a list" in scene.ask("/")[2]
    assert scene.metric("fleet_reconciler_config_valid") == 0
    assert scene.metric("fleet_reconciler_config_errors_total") == 1
    assert json.loads(scene.ask("/api/status")[2])["config"]["valid"] is False


def test_metrics_tell_fleets_pods_and_cost(scene: Scene) -> None:
    """Dashboards and alerts stand on these numbers."""
    pod = make_pod("new", created_at=scene.clock.now() - timedelta(seconds=0.6))
    scene.cycle(
        raised(),
        pods=(pod,),
        placements=(bought(pod),),
        unplaceable=(unplaced("a", "zone", "zone"), unplaced("b", "zone", "taint")),
        fleets=(fleet(),),
    )
    labels = '{fleet="primary-small",region="us-west-2"}'
    assert scene.metric(f"fleet_reconciler_fleet_target_nodes{labels}") == 5
    assert scene.metric(f"fleet_reconciler_fleet_current_nodes{labels}") == 2
    assert scene.metric("fleet_reconciler_pods_pending") == 3
    assert scene.metric('fleet_reconciler_pods_unplaceable{code="zone"}') == 2
    assert scene.metric('fleet_reconciler_pods_unplaceable{code="taint"}') == 1
    assert scene.metric("fleet_reconciler_cost_after_usd_per_hour") == 1.25
    done = 'action="set-capacity",outcome="applied",policy="scale-up"'
    assert scene.metric(f"fleet_reconciler_actions_total{{{done}}}") == 1
    assert scene.metric('fleet_reconciler_cycles_total{result="succeeded"}') == 1
    assert scene.metric('fleet_reconciler_cycle_seconds_sum{phase="plan"}') == 0.04
    assert scene.metric("fleet_reconciler_reaction_seconds_sum") == pytest.approx(0.6)


def test_wanted_requested_and_actual_are_three_figures(scene: Scene) -> None:
    """Target 5 where EC2 refused must not read as five nodes, nor as their cost."""
    labels = '{fleet="primary-small",region="us-west-2"}'
    denied = replace(raised("failed"), error="Forbidden", detail="UnauthorizedOperation")
    here = fleet(node_usd_per_hour=0.5, joined=1)
    for outcome, requested in ((denied, 2), (raised(), 5)):
        scene.cycle(outcome, fleets=(here,))
        assert scene.metric(f"fleet_reconciler_fleet_target_nodes{labels}") == 5
        assert scene.metric(f"fleet_reconciler_fleet_requested_nodes{labels}") == requested
        assert scene.metric(f"fleet_reconciler_fleet_joined_nodes{labels}") == 1
        assert scene.metric("fleet_reconciler_cost_requested_usd_per_hour") == requested * 0.5
        assert scene.metric('fleet_reconciler_trouble{kind="ec2-denied"}') == int(requested == 2)


def test_errors_of_cycles_are_counted_by_their_class(scene: Scene) -> None:
    """Which side is at fault must be seen on a dashboard."""
    name = "fleet_reconciler_cycle_errors_total"
    assert scene.metric(f'{name}{{error="Unavailable"}}') == 0
    scene.cycle(error=Unavailable("ec2", "no answer"))
    assert scene.metric(f'{name}{{error="Unavailable"}}') == 1
    assert scene.metric('fleet_reconciler_trouble{kind="ec2-silent"}') == 1


def test_batching_window_counts_only_before_cycles_that_had_one() -> None:
    """Cycles that the clock began would make windows look shorter than they are."""
    samples = 'fleet_reconciler_cycle_seconds_{}{{phase="gather"}}'
    with Scene() as scene:
        scene.cycle()
        scene.cycle(gathered_seconds=0.75)
        assert scene.metric(samples.format("sum")) == 0.75
        assert scene.metric(samples.format("count")) == 1


def test_reaction_of_a_pod_is_measured_once(scene: Scene) -> None:
    """A pod that waits for its node would otherwise make the reaction look slow."""
    pod = make_pod("new", created_at=scene.clock.now())
    for _ in range(3):
        scene.cycle(raised(), pods=(pod,), placements=(bought(pod),))
        scene.clock.advance(30)
    scene.cycle(raised("refused"), pods=(pod,), placements=(bought(pod),))
    assert scene.metric("fleet_reconciler_reaction_seconds_count") == 1


def test_fleet_that_is_gone_leaves_the_metrics(scene: Scene) -> None:
    """A dashboard must not show capacity of a fleet that no longer exists."""
    scene.cycle(fleets=(fleet(), fleet(fleet="old")))
    scene.cycle(fleets=(fleet(),))
    assert 'fleet="old"' not in scene.ask("/metrics")[2]


def test_longest_pause_is_what_the_age_of_a_success_is_measured_by(scene: Scene) -> None:
    """A loop that pauses for a quarter of an hour is not stalled after five minutes."""
    assert scene.metric("fleet_reconciler_longest_pause_seconds") == 20
    scene.board.config_loaded(ConfigInForce(file="sectors.yaml", sleep_seconds=900.0))
    assert scene.metric("fleet_reconciler_longest_pause_seconds") == 900


def test_age_of_the_last_success_grows_while_cycles_fail(scene: Scene) -> None:
    """The one number to alert on."""
    scene.clock.advance(400)
    assert scene.metric("fleet_reconciler_last_success_age_seconds") == 400
    assert json.loads(scene.ask("/api/status")[2])["last_success_age_seconds"] == 400
    scene.cycle()
    scene.clock.advance(90)
    scene.cycle(error=Unavailable("api", "no answer"))
    assert scene.metric("fleet_reconciler_last_success_age_seconds") == 90
    assert scene.metric("fleet_reconciler_errors_in_a_row") == 1


def test_drift_is_counted_and_shown_until_it_ends(scene: Scene) -> None:
    """A fleet that somebody deleted by hand must be visible where people look."""
    scene.board.drift_found((MISSING,))
    labels = 'fleet="primary-small",kind="fleet-missing",region="us-west-2"'
    assert f"fleet_reconciler_fleet_drift{{{labels}}} 1.0" in scene.ask("/metrics")[2]
    status = json.loads(scene.ask("/api/status")[2])
    assert [each["kind"] for each in status["drift"]] == ["fleet-missing"]
    scene.board.drift_found(())
    assert "fleet_reconciler_fleet_drift{" not in scene.ask("/metrics")[2]


def test_stage_of_a_config_is_counted_and_shown(scene: Scene) -> None:
    """`is my change live?` is asked of the status page and of a dashboard."""
    scene.board.second_loop_ended("at abc", (PLANNED,))
    scene.board.second_loop_ended("failed: the remote is away", failed=True)
    text = scene.ask("/metrics")[2]
    series = 'fleet_reconciler_gitops_stage{config="a/sectors.yaml",stage='
    assert [f'{series}"{stage}"}} {value}' in text for stage, value in STAGE_VALUES] == [True] * 3
    (shown,) = json.loads(scene.ask("/api/status")[2])["progress"]
    assert (shown["stage"], shown["detail"]) == ("planned", "waits for its approval")


def test_latency_of_changes_is_counted_by_source(scene: Scene) -> None:
    """A queue whose messages wait for minutes would look as quick as the watches."""
    handled = (
        HandledChanges(source="kubernetes/Pod", seconds=0.6),
        HandledChanges(source="queue", seconds=90),
    )
    scene.cycle(handled=handled)
    text = scene.ask("/metrics")[2]
    name = "fleet_reconciler_change_handled_seconds"
    assert f'{name}_sum{{source="queue"}} 90.0' in text
    assert f'{name}_count{{source="kubernetes/Pod"}} 1.0' in text


def test_every_metric_is_documented_and_served(scene: Scene) -> None:
    """An alert on a name that does not exist never fires."""
    pod = make_pod("new", created_at=scene.clock.now())
    unplaceable = (unplaced("a", "zone"),)
    scene.cycle(
        raised(),
        pods=(pod,),
        unplaceable=unplaceable,
        fleets=(replace(fleet(), update=UPDATE),),
        nodes_by_kind=(NodesByKind(kind="spot", nodes=2, pods=5),),
        raise_nodes_left=7,
        drifted=(
            DriftedNodes(
                fleet="primary-small",
                region=Region("us-west-2"),
                reason="launch-template-version",
                nodes=4,
            ),
        ),
        stand_ins=(STAND_INS,),
        headroom=(HEADROOM,),
        handled=(HandledChanges(source="queue", seconds=2.5),),
    )
    scene.board.drift_found((MISSING,))
    scene.board.second_loop_ended("at abc", (PLANNED,))
    scene.board.config_loaded(ConfigInForce(file="sectors.yaml@abc", commit="abc"))
    text, documented = scene.ask("/metrics")[2], DOCS.read_text()
    for name in names.ALL:
        assert re.search(rf"^{name}(_bucket|_count)?[ {{]", text, re.MULTILINE), name
        assert f"`{name}`" in documented, name
    served = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
    # The client library adds a gauge `_created` beside each counter unless it is told not to.
    own = {n for n in served if "_process_" not in n}
    assert own == set(names.ALL)


def test_failures_are_measured(scene: Scene) -> None:
    """An alert needs to see throttling, runaways and orphans as they happen."""
    throttled = replace(raised("refused"), error="Throttled")
    lost = fleet(fleet="primary-large", unavailable="EC2 does not answer in its region")
    scene.cycle(throttled, throttled, fleets=(fleet(), lost), quarantined=2, orphans=3)
    prefix, place = "fleet_reconciler_", 'region="us-west-2"'
    assert (
        scene.metric(f'{prefix}action_errors_total{{action="set-capacity",error="Throttled"}}') == 2
    )
    assert scene.metric(f'{prefix}fleet_unavailable{{fleet="primary-small",{place}}}') == 0
    assert scene.metric(f'{prefix}fleet_unavailable{{fleet="primary-large",{place}}}') == 1
    assert scene.metric(f"{prefix}demand_quarantined") == 2
    assert scene.metric(f"{prefix}orphan_instances") == 3


def test_clients_that_say_nothing_hold_nobody_up(scene: Scene) -> None:
    """A port scanner must not make the kubelet kill the process."""
    silent = [
        socket.create_connection(("127.0.0.1", scene.port))
        for _ in range(server.CONNECTIONS_MAX + 20)
    ]
    try:
        assert scene.ask("/healthz")[0] == 200
        silent[-1].sendall(b"GET / HT")
        assert scene.ask("/healthz")[0] == 200
    finally:
        for each in silent:
            each.close()


def test_stop_leaves_no_thread_and_no_port() -> None:
    """A leak would keep the process, or its port, after SIGTERM."""
    before = set(threading.enumerate())
    with Scene() as running:
        port = running.port
        idle = socket.create_connection(("127.0.0.1", port))
        assert running.ask("/healthz")[0] == 200
    idle.close()
    assert set(threading.enumerate()) <= before
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port))


def test_taken_port_is_one_clear_line(scene: Scene) -> None:
    """Two processes on one port: the second must say so and end."""
    second = WebServer(scene.server.address, Scene().server._routes)
    with pytest.raises(ReconcilerError, match="cannot listen there: Address already in use") as e:
        second.start()
    assert e.value.exit_code == 1
    second.stop()


@pytest.mark.parametrize("listen", ["9235", "localhost", "host:port", "1.2.3.4:99999", ""])
def test_address_that_is_none_is_wrong_usage(listen: str) -> None:
    """A typo in --listen must not be an error of the network."""
    with pytest.raises(UsageError, match="HOST:PORT"):
        WebServer(listen, Scene().server._routes).start()


def test_asking_where_nothing_listens_says_so() -> None:
    """`reconciler status` beside no program."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Unavailable, match="nothing answers: Connection refused"):
        ask_status(f"127.0.0.1:{port}")


def test_evictions_of_the_descheduler_are_counted_by_policy_and_result(scene: Scene) -> None:
    """`actions_total` knows one policy for all ten."""
    action = EvictPod(
        pod=PodKey(namespace="ns", name="old"),
        node=NodeName("a"),
        grace_seconds=30,
        policy="deschedule",
        because="PodLifeTime: it is old",
        pod_policy="PodLifeTime",
    )
    scene.metrics.action_ended(Outcome(action=action, kind="refused", error="Refused"))
    scene.metrics.action_ended(Outcome(action=replace(action, pod_policy=None), kind="applied"))
    name = "fleet_reconciler_descheduler_evictions_total"
    assert scene.metric(f'{name}{{policy="PodLifeTime",result="refused"}}') == 1
    assert scene.metric(f'{name}{{policy="PodLifeTime",result="applied"}}') == 0
