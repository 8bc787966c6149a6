"""The process itself: dry run, bad configs, ports, signals, its own commands beside it."""

import json
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from reconciler.sandbox.stack import Sandbox
from tests.git_remote import git, make_remote
from tests.sandbox.capacity.commands import reconciler
from tests.sandbox.capacity.world import CONFIG, DEADLINE_SECONDS, Program, World
from tests.slack_hook import slack_hook
from tests.waiting import until

pytestmark = pytest.mark.sandbox

NOW = "2026-01-31T12:00:00Z"

GRACE_SECONDS = 30
"""So long a kubelet waits before it kills; the program itself gives up a third of it earlier."""


def versions(world: World) -> dict[str, str]:
    """Resource versions of everything that the program could change."""
    objects = [*world.core.list_node().items, *world.core.list_pod_for_all_namespaces().items]
    return {each.metadata.name: each.metadata.resource_version for each in objects}


def leases(world: World) -> dict[str, str]:
    """Version of each Lease: other programs of this sandbox may have left one."""
    make: Any = client.CoordinationV1Api
    found = make(world.api).list_lease_for_all_namespaces().items
    return {each.metadata.name: each.metadata.resource_version for each in found}


def test_dry_run_makes_no_mutating_call(
    program: Callable[..., Program], world: World, sandbox: Sandbox
) -> None:
    """A dry run that buys or taints would break the one promise it makes."""
    sandbox.control.forget_calls()
    world.add_pods(["wish"], cpu="1500m")
    before, held = versions(world), leases(world)
    running = program("--dry-run")
    planned = running.until_event("action_planned", lambda e: e["action"] == "set-capacity")
    assert planned["after"] == 1
    running.until_event("cycle_ended", lambda e: e["cycle"] >= 3)
    _, status = running.get("/api/status")
    assert json.loads(status)["dry_run"] is True
    running.end()
    assert list(sandbox.control.calls(mutating="true")) == []
    assert {name: v for name, v in versions(world).items() if name in before} == before
    assert leases(world) == held


def test_invalid_config_at_start_is_refused_with_all_faults(
    program: Callable[..., Program], config_file: Path, sandbox: Sandbox
) -> None:
    """A start with half a config would act on the wrong half."""
    sandbox.control.forget_calls()
    config_file.write_text("cluster: analytics\nsleep_intervall: 3\nregions: 5\n")
    running = program()
    assert running.process.wait(DEADLINE_SECONDS) == 2
    faults = running.log_text.splitlines()
    assert [line.startswith(f"error: {config_file}:") for line in faults] == [True, True]
    assert "config/unknown-key" in running.log_text
    assert list(sandbox.control.calls()) == []


def test_taken_port_is_one_line_and_exit_code_1(program: Callable[..., Program]) -> None:
    """Without a clear line an operator would look for the fault in the cluster."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        running = program("--listen", f"127.0.0.1:{port}")
        assert running.process.wait(DEADLINE_SECONDS) == 1
    (line,) = running.log_text.splitlines()
    assert line.startswith(f"error: 127.0.0.1:{port}: cannot listen there: Address already in use")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_signal_ends_it_within_its_grace_period(
    interpreted: Callable[..., Program], number: signal.Signals, code: int
) -> None:
    """A slow end lets the kubelet kill it between a lowered target and its termination."""
    running = interpreted("--sleep", "60s")
    running.until_ready()
    ended_with, seconds = running.end(number)
    assert ended_with == code
    assert seconds < GRACE_SECONDS
    assert running.events("reconciler_stopped")


def test_signal_while_the_api_server_is_silent_ends_it_too(
    program: Callable[..., Program], config_file: Path
) -> None:
    """An unreachable API server must not keep the process from being replaced."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        kubeconfig = config_file.with_name("kubeconfig")
        server = f"http://127.0.0.1:{mute.getsockname()[1]}"
        kubeconfig.write_text(
            json.dumps(
                {
                    "current-context": "c",
                    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                    "clusters": [{"name": "c", "cluster": {"server": server}}],
                    "users": [{"name": "u", "user": {"token": "t"}}],
                }
            )
        )
        running = program("--kubeconfig", str(kubeconfig))
        running.until_event("reconciler_started", lambda _: True)
        assert running.get("/readyz")[0] == 503
        assert running.get("/healthz")[0] == 200
        code, seconds = running.end()
    assert code == 0
    assert seconds < GRACE_SECONDS


def test_signal_while_ec2_is_silent_ends_it_too(program: Callable[..., Program]) -> None:
    """boto3 waits half a minute for an answer; the kubelet kills before that."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"http://127.0.0.1:{mute.getsockname()[1]}"
        running = program(AWS_ENDPOINT_URL=url)
        running.until_event("reconciler_started", lambda _: True)
        with mute.accept()[0]:
            code, seconds = running.end(signal.SIGINT)
    assert code == 130
    assert seconds < GRACE_SECONDS
    assert running.events("reconciler_stop_forced")


def test_config_that_turns_invalid_leaves_the_last_good_one_in_force(
    program: Callable[..., Program], config_file: Path, world: World
) -> None:
    """A typo in a ConfigMap must not stop scaling, and must be seen."""
    running = program("--dry-run")
    running.until_ready()
    config_file.write_text(CONFIG + "nonsense: 1\n")
    refused = running.until_event("config_refused", lambda _: True)
    assert refused["level"] == "error"
    world.add_pods(["after-typo"], cpu="1500m")
    running.until_event("action_planned", lambda e: e["action"] == "set-capacity")
    assert "fleet_reconciler_config_valid 0.0" in running.get("/metrics")[1]
    config = json.loads(running.get("/api/status")[1])["config"]
    assert (config["valid"], len(config["faults"])) == (False, 1)
    config_file.write_text(CONFIG.replace("max_capacity: 20", "max_capacity: 7"))
    running.until_event("config_reloaded", lambda _: True)

    def limits() -> set[int]:
        return {fleet["max"] for fleet in json.loads(running.get("/api/plan")[1])["fleets"]}

    until(lambda: f"limits stay {limits()}", lambda: limits() == {7}, process=running.process)
    assert len(running.events("config_refused")) == 1


def test_snapshot_plans_like_the_live_cluster_and_holds_no_secret(
    sandbox: Sandbox, world: World, config_file: Path, tmp_path: Path
) -> None:
    """A bug report must reproduce what the reporter saw, without telling their secrets."""
    world.add_pods(["seen-1", "seen-2"], cpu="1500m")
    container = {
        "name": "main",
        "image": "x:1",
        "env": [{"name": "PASSWORD", "value": "hunter2"}],
        "args": ["--token=hunter2"],
        "resources": {"requests": {"cpu": "500m"}},
    }
    spec = {"containers": [container]}
    world.core.create_namespaced_pod("default", {"metadata": {"name": "secret"}, "spec": spec})
    out = tmp_path / "seen"
    written = json.loads(
        reconciler(sandbox, "snapshot", "--config", str(config_file), "--out", str(out)).stdout
    )
    texts = [Path(each).read_text() for each in [*written["cluster"], *written["aws"]]]
    assert not [text for text in texts if "hunter2" in text or "UserData" in text]
    assert {Path(each).stat().st_mode & 0o077 for each in written["aws"]} == {0}
    common = ("plan", "--config", str(config_file), "--now", NOW, "--output", "json")
    files = ("--cluster", *written["cluster"], "--aws", *written["aws"])
    live = json.loads(reconciler(sandbox, *common).stdout)
    again = json.loads(reconciler(sandbox, *common, *files).stdout)
    assert again == live
    assert live["actions"][0]["action"] == "set-capacity"


def test_status_shows_plan_and_reasons(
    program: Callable[..., Program], sandbox: Sandbox, world: World
) -> None:
    """`why is this pod pending` must have an answer at the command line."""
    world.add_pods(["giant"], cpu="900")
    running = program()
    running.until_event("pod_unplaceable", lambda e: e["pod"] == "default/giant")
    listen = ("--listen", running.address())
    table = reconciler(sandbox, "status", *listen, "--output", "table").stdout
    assert "default/giant" in table
    assert "insufficient-cpu" in table
    status: dict[str, Any] = json.loads(reconciler(sandbox, "status", *listen).stdout)
    assert status["plan"]["unplaceable_by_code"] == {"insufficient-cpu": 1}
    assert len(running.events("pod_unplaceable")) == 1
    running.end()
    silent = reconciler(sandbox, "status", *listen, code=1)
    assert silent.stderr.startswith(f"error: {listen[1]}: nothing answers: Connection refused")


def test_slack_hook_hears_of_new_capacity_and_is_never_logged(
    program: Callable[..., Program], world: World
) -> None:
    """A notification nobody gets is a promise broken; a hook in a log is a leak."""
    with slack_hook() as hook:
        running = program("-vvv", RECONCILER_SLACK_HOOK=hook.url)
        running.until_ready()
        world.add_pods(["told"], cpu="1500m", seconds=1)
        while "1 pending pod needs" not in hook.posted.get(timeout=DEADLINE_SECONDS):
            pass  # of drift it may have reported before
        hook.status = 500
        world.until_pods(lambda phases: phases["told"] == "Succeeded")
        world.until_idle()
        running.until_event("notification_failed", lambda _: True)
        assert running.end()[0] == 0
    assert "services/T0" not in running.log_text


def test_once_takes_one_cycle(sandbox: Sandbox, config_file: Path) -> None:
    """A cron job that never ends would pile up."""
    done = reconciler(sandbox, "run", "--config", str(config_file), "--once", "--dry-run")
    events = [json.loads(line)["event"] for line in done.stderr.splitlines()]
    assert events.count("cycle_ended") == 1


def test_gitops_runs_beside_and_stops_with_it(
    program: Callable[..., Program], config_file: Path, tmp_path: Path
) -> None:
    """A second loop that outlives the first would push without anyone watching."""
    make_remote(tmp_path, {"sectors.yaml": config_file.read_text()})
    remote = str(tmp_path / "remote.git")
    running = program("--gitops", "--repository", remote, "--interval", "1")
    running.until_event("gitops_config_rendered", lambda e: e["state"] == "committed")
    running.until_ready()
    code, seconds = running.end()
    assert code == 0
    assert seconds < GRACE_SECONDS


def test_dry_run_commits_nothing(
    program: Callable[..., Program], config_file: Path, tmp_path: Path
) -> None:
    """A trial on a laptop would push to the branch that the pipeline applies."""
    make_remote(tmp_path, {"sectors.yaml": config_file.read_text()})
    remote = tmp_path / "remote.git"
    before = git(remote, "rev-parse", "main")
    running = program("--dry-run", "--gitops", "--repository", str(remote), "--interval", "1")
    running.until_ready()
    running.until_event("cycle_ended", lambda e: e["cycle"] >= 2)
    code, _ = running.end()
    assert code == 0
    assert git(remote, "rev-parse", "main") == before
