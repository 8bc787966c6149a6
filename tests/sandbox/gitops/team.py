"""Everything that a platform team has, running: a repository, a pipeline, both loops, EC2."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3

from reconciler.sandbox.aws.bootstrap import AccountIds, bootstrap_account
from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.cluster.settings import ClusterSettings
from reconciler.sandbox.joiner import JoinerSettings
from reconciler.sandbox.stack import Sandbox, SandboxSettings
from tests import command
from tests.git_remote import git, make_remote, write_and_push
from tests.sandbox.capacity.world import Program, World
from tests.sandbox.gitops.pipeline_on_aws import with_kept_provider
from tests.waiting import until

REGION = "us-west-2"
DEADLINE_SECONDS = 900.0
COMMAND_SECONDS = 600


def config(ids: AccountIds, url: str, sectors: str, *, top: str = "", ami: str = "") -> str:
    """The sector config of one cluster, with its state in S3."""
    subnets = ", ".join(f"{zone}: {subnet}" for zone, subnet in ids.subnet_ids.items())
    return (
        f"cluster: analytics\nregions: [{REGION}]\nsleep_interval: 1\ndefault_sector: primary\n"
        "config_refresh_interval: 1\nlisten: 127.0.0.1:0\nscale_in: {idle_threshold: 2s}\n"
        f"{top}terraform:\n  ami: {ami or ids.ami}\n"
        f"  security_group_id: {ids.security_group_id}\n"
        f"  private_subnet_ids: {{{subnets}}}\n"
        f"  backend: {{bucket: state, key: a.tfstate, region: {REGION}, endpoint: '{url}'}}\n"
        f"sectors:\n{sectors}"
    )


def sector(name: str, size: str, more: str = "") -> str:
    """A sector with one fleet."""
    fleet = f"{{size: {size}, min_capacity: 1, max_capacity: 5{more}}}"
    return f"  {name}:\n    kind: memory\n    fleets:\n    - {fleet}\n"


@dataclass
class Ci:
    """The team's pipeline: one run for each commit of main, and `ci finish` on a schedule."""

    work: Path
    environment: dict[str, str]
    said: list[str] = field(default_factory=list)
    """Errors of stages, oldest first."""
    applied: list[str] = field(default_factory=list)
    """Commits of which nothing is left to apply."""
    _seen: str = ""
    _ran: str = ""
    _over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Follow main until told to stop."""
        while not self._over.wait(0.5):
            git(self.work, "pull", "-q", "--rebase", "origin", "main")
            head = git(self.work, "rev-parse", "HEAD")
            if head == self._ran:
                if head not in self.applied and self._finished():
                    self.applied.append(head)
                continue
            # A config that renders to the same (allow_destroy alone) gets no commit of the loop.
            rendered = git(self.work, "log", "-1", "--format=%s").startswith("Render")
            if not rendered and self._seen != head:
                self._seen = head
                self._over.wait(4)
                continue
            self._ran = head
            planned = self._stage("plan", "--out", "../plan") is not None
            if planned and self._stage("apply", "--plan", "../plan") is not None:
                self.applied.append(head)

    def run_again(self) -> None:
        """A person starts the pipeline on main once more."""
        self._ran = ""

    def stop(self) -> None:
        """Take no further commit."""
        self._over.set()

    def _finished(self) -> bool:
        """The scheduled job; whether it carried out the last that was left."""
        said = self._stage("finish", "--output", "json")
        told = json.loads(said) if said else {}
        return bool(told.get("removed")) and not told["waiting"] and not told["others"]

    def _stage(self, stage: str, *options: str) -> str | None:
        """What a stage printed; None: it failed."""
        done = command.reconciler(
            *("ci", stage, "--dir", "terraform"),
            *options,
            cwd=self.work,
            env=with_kept_provider(self.environment),
            timeout_seconds=COMMAND_SECONDS,
        )
        if done.returncode:
            self.said.append(f"{stage}: {done.stderr.strip()}")
        return None if done.returncode else done.stdout


@dataclass(frozen=True, kw_only=True)
class Team:
    """Everything that a platform team has, running."""

    person: Path
    world: World
    program: Program
    ci: Ci
    ids: AccountIds

    def commit(self, text: str, subject: str) -> float:
        """A person's one deed; when it was done."""
        git(self.person, "pull", "-q", "--rebase", "origin", "main")
        began = time.monotonic()
        write_and_push(self.person, "sectors.yaml", text, subject)
        return began

    def config(self, *sectors: str, top: str = "", ami: str = "") -> str:
        """A config with these sectors."""
        url = self.world.sandbox.aws_url
        return config(self.ids, url, "".join(sectors), top=top, ami=ami)

    def until(self, look: Callable[[], object], what: str) -> None:
        """Wait for something to be seen."""

        def told() -> str:
            process, log = self.program.process, self.program.log_text[-3000:]
            status = self.status() if process.poll() is None else "no status: it ended"
            return f"{what}\n{self.ci.said[-3:]}\n{status}\n{log}"

        until(
            told,
            look,
            seconds=DEADLINE_SECONDS,
            look_seconds=0.2,
            process=self.program.process,
        )

    def status(self) -> dict[str, Any]:
        """`/api/status`, which `reconciler status` prints."""
        found: dict[str, Any] = json.loads(self.program.get("/api/status")[1])
        return found

    def is_live(self) -> bool:
        """Whether the head of main is rendered, applied and seen in EC2 by the capacity loop."""
        git(self.person, "fetch", "-q", "origin", "main")
        head = git(self.person, "rev-parse", "origin/main")
        stages = [each["stage"] for each in self.status()["progress"]]
        return bool(self.ci.applied) and self.ci.applied[-1] == head and stages == ["live"]

    def fleets(self) -> dict[str, dict[str, Any]]:
        """Living fleets by name."""
        found: Any = self.world.ec2.describe_fleets()["Fleets"]
        return {
            {t["Key"]: t["Value"] for t in fleet["Tags"]}["fleet"]: fleet
            for fleet in found
            if not fleet["FleetState"].startswith("deleted")
        }

    def groups(self) -> list[str]:
        """Names of the Auto Scaling groups."""
        with closing(_client("autoscaling", self.world.sandbox.aws_url)) as client:
            found = client.describe_auto_scaling_groups()["AutoScalingGroups"]
        return [each["AutoScalingGroupName"] for each in found]

    def last_plan(self) -> int:
        """Exit code of `ci plan --detailed-exitcode` at the head of main: 0 without changes."""
        git(self.person, "pull", "-q", "--rebase", "origin", "main")
        done = command.reconciler(
            *("ci", "plan", "--dir", "terraform", "--out", "../last", "--detailed-exitcode"),
            cwd=self.person,
            env=with_kept_provider(self.ci.environment),
            timeout_seconds=COMMAND_SECONDS,
        )
        return done.returncode

    def phase(self, name: str) -> str:
        """A pod's phase, empty when it is gone."""
        pods = self.world.core.list_namespaced_pod("default").items
        return next((str(p.status.phase) for p in pods if p.metadata.name == name), "")

    def nodes_of(self, name: str) -> list[str]:
        """Names of a fleet's nodes."""
        return [n.metadata.name for n in self.world.nodes() if n.metadata.labels["fleet"] == name]


@contextmanager
def running_team(tmp_path: Path) -> Iterator[Team]:
    """A repository, a pipeline, both loops, AWS and a cluster; nothing in EC2 yet."""
    settings = SandboxSettings(
        delays=Delays(launch_seconds=0.5, terminate_seconds=0.5, modify_seconds=0.2),
        cluster=ClusterSettings(job_seconds=3.0),
        joiner=JoinerSettings(join_seconds=0.3, remove_seconds=0.3),
    )
    with Sandbox(settings) as sandbox:
        ids = bootstrap_account(sandbox.aws_url, REGION)
        with closing(_client("s3", sandbox.aws_url)) as s3:
            where = {"LocationConstraint": REGION}
            s3.create_bucket(Bucket="state", CreateBucketConfiguration=where)
        first = config(ids, sandbox.aws_url, sector("primary", "small"))
        ignored = ".terraform/\n.terraform.lock.hcl\n"
        person = make_remote(tmp_path, {"sectors.yaml": first, ".gitignore": ignored})
        git(tmp_path, "clone", "-q", "remote.git", "runner")
        inherited = os.environ  # noqa: TID251 - a child inherits ours
        environment = {**inherited, **sandbox.environment()}
        ci = Ci(work=tmp_path / "runner", environment=environment)
        world = World(sandbox)
        second = ("--gitops", "--repository", str(tmp_path / "remote.git"), "--interval", "1")
        with Program(sandbox, tmp_path / "none", *second) as program:
            thread = threading.Thread(target=ci.run)
            thread.start()
            try:
                yield Team(person=person, world=world, program=program, ci=ci, ids=ids)
            finally:
                ci.stop()
                thread.join(timeout=2 * COMMAND_SECONDS)
                world.close()


def _client(service: str, url: str) -> Any:
    session: Any = boto3.Session("sandbox", "sandbox", region_name=REGION)
    return session.client(service, endpoint_url=url)
