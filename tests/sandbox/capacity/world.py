"""One sandbox for the tests of this folder, and the real program as a process in it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self

import boto3
from kubernetes import client, config, watch

from reconciler.sandbox.stack import Sandbox
from tests import command
from tests.fork_server import Forked
from tests.growing import complete_lines
from tests.sandbox.capacity.fleets import REGION
from tests.waiting import until

DEADLINE_SECONDS = 180.0
CONFIG = """\
cluster: analytics
regions: [us-west-2]
sleep_interval: 1
default_sector: primary
max_logging_interval: 5
listen: 127.0.0.1:0
scale_in: {idle_threshold: 2s}
sectors:
  primary:
    kind: memory
    fleets:
    - {size: small, min_capacity: 0, max_capacity: 20}
    - {size: medium, min_capacity: 0, max_capacity: 20}
"""


class Program:
    """`reconciler run` as a process of its own; its log is read as it comes."""

    process: "Forked | subprocess.Popen[bytes]"

    def __init__(
        self, sandbox: Sandbox, config_file: Path, *arguments: str, **variables: str
    ) -> None:
        """Start it; without `--config` when there is no such file."""
        self._address = ""
        self._log_path = config_file.parent / f"log-{time.monotonic_ns()}.jsonl"
        inherited = os.environ  # noqa: TID251 - a child inherits ours
        environment = {**inherited, **sandbox.environment(), "NO_COLOR": "1", **variables}
        options = ("--config", str(config_file)) if config_file.exists() else ()
        self.process = self._started([*options, *arguments], environment)

    def _started(
        self, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> "Forked | subprocess.Popen[bytes]":
        self._log_path.touch()
        return command.start("run", *arguments, env=environment, error=self._log_path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    @property
    def log_text(self) -> str:
        """Everything on stderr so far."""
        return self._log_path.read_text()

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        """The log's events so far."""
        lines = complete_lines(self._log_path)
        named = "" if name is None else json.dumps(name)  # a line that lacks it is not parsed
        found = [json.loads(line) for line in lines if line.startswith("{") and named in line]
        return [each for each in found if name is None or each["event"] == name]

    def until_event(self, name: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first event of this name that satisfies `holds`."""

        def look() -> dict[str, Any] | None:
            return next((event for event in self.events(name) if holds(event)), None)

        found = self._until(look, f"no event {name} in time")
        assert isinstance(found, dict)
        return found

    def address(self) -> str:
        """Where it listens."""
        if not self._address:
            self._address = self.until_event("reconciler_started", lambda _: True)["listen"]
        return self._address

    def get(self, path: str) -> tuple[int, str]:
        """An HTTP GET of the running program."""
        connection = HTTPConnection(self.address(), timeout=60)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def until_ready(self) -> None:
        """Wait for the first plan."""
        self.until_event("cycle_ended", lambda _: True)

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Signal it; its exit code and how long it took."""
        began = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(timeout=DEADLINE_SECONDS)
        return code, time.monotonic() - began

    def _until(self, look: Callable[[], Any], complaint: str) -> Any:
        return until(lambda: f"{complaint}\n{self.log_text[-4000:]}", look, process=self.process)


class InterpretedProgram(Program):
    """The same, started as a user starts it: a new Python process that imports everything."""

    def _started(
        self, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> "subprocess.Popen[bytes]":
        with self._log_path.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "reconciler", "run", *arguments],
                env=environment,
                stderr=log,
                stdout=subprocess.DEVNULL,
            )


class World:
    """The sandbox seen by its users: pods through kubectl's API, fleets through EC2's."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        make: Any = config.new_client_from_config
        self.api: Any = make(config_file=str(sandbox.kubeconfig))
        self.core: Any = client.CoreV1Api(self.api)
        session = boto3.Session("sandbox", "sandbox", region_name=REGION)
        self.ec2 = session.client("ec2", endpoint_url=sandbox.aws_url)

    def close(self) -> None:
        """Give the connections back."""
        self.api.rest_client.pool_manager.clear()
        self.ec2.close()

    def targets(self) -> dict[str, int]:
        """Target capacity by fleet."""
        return {
            _tag(fleet["Tags"], "fleet"): fleet["TargetCapacitySpecification"][
                "TotalTargetCapacity"
            ]
            for fleet in self.ec2.describe_fleets()["Fleets"]
        }

    def remove_fleets(self, sector: str) -> None:
        """Delete the fleets of a sector and end their instances."""
        fleets = self.ec2.describe_fleets()["Fleets"]
        ids = [f["FleetId"] for f in fleets if _tag(f["Tags"], "sector") == sector]
        if ids:
            self.ec2.delete_fleets(FleetIds=ids, TerminateInstances=True)

    def instance_states(self) -> list[str]:
        """The state of every instance that EC2 still shows."""
        pages = self.ec2.describe_instances()["Reservations"]
        return [i["State"]["Name"] for page in pages for i in page["Instances"]]

    def nodes(self) -> list[Any]:
        """Node objects."""
        return list(self.core.list_node().items)

    def add_pods(
        self,
        names: Sequence[str],
        cpu: str,
        seconds: int | None = None,
        sector: str | None = None,
    ) -> None:
        """Pods without a controller, which end by themselves after `seconds`."""
        selector = {} if sector is None else {"nodeSelector": {"sector": sector}}
        for name in names:
            annotations = (
                {} if seconds is None else {"sandbox.fleet-reconciler.io/duration": str(seconds)}
            )
            container = {
                "name": "main",
                "image": "batch:1",
                "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}},
            }
            body = {
                "metadata": {"name": name, "annotations": annotations},
                "spec": {"containers": [container], "restartPolicy": "Never", **selector},
            }
            self.core.create_namespaced_pod("default", body)

    def until_pods(self, holds: Callable[[Mapping[str, Any]], bool]) -> None:
        """Watch pods until their phases by name satisfy `holds`."""
        listed = self.core.list_namespaced_pod("default")
        phases = {pod.metadata.name: pod.status.phase for pod in listed.items}
        make: Any = watch.Watch
        stream = make()
        if holds(phases):
            return
        version = listed.metadata.resource_version
        for event in stream.stream(
            self.core.list_namespaced_pod,
            "default",
            resource_version=version,
            timeout_seconds=int(DEADLINE_SECONDS),
        ):
            pod = event["object"]
            phases[pod.metadata.name] = pod.status.phase
            if holds(phases):
                stream.stop()
                return
        raise AssertionError(f"pods: {phases}")

    def until_idle(self) -> None:
        """Wait until there is no node, no living instance and every target is 0."""

        def idle() -> bool:
            living = [s for s in self.instance_states() if s != "terminated"]
            return not self.nodes() and not living and not any(self.targets().values())

        until(lambda: f"{self.targets()} {self.instance_states()} {len(self.nodes())} nodes", idle)

    def remove_pods(self) -> None:
        """Delete every pod of the default namespace."""
        self.core.delete_collection_namespaced_pod("default", grace_period_seconds=0)


def _tag(tags: Sequence[Any], key: str) -> str:
    return next(str(tag["Value"]) for tag in tags if tag["Key"] == key)


Start = Callable[..., Program]


def programs(sandbox: Sandbox, config_file: Path, kind: type[Program] = Program) -> Iterator[Start]:
    """Yield what starts `reconciler run`; what still runs afterwards is killed."""
    started: list[Program] = []

    def start(*arguments: str, **variables: str) -> Program:
        started.append(kind(sandbox, config_file, *arguments, **variables))
        return started[-1]

    yield start
    for program in started:
        program.__exit__()
