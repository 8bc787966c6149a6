"""The steps of the demo; each one checks its result and fails the demo otherwise."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from subprocess import Popen
from typing import Any

from reconciler.bootstrap.planning.planning import live
from reconciler.config.catalogue import load_catalogue
from reconciler.config.loader import parse_config
from reconciler.demo.account import Account, LiveFleet
from reconciler.demo.commands import environment, reconciler, start_reconciler
from reconciler.demo.config_repository import ConfigRepository
from reconciler.demo.follower import Follower, described, wall_clock
from reconciler.demo.kube import apply_objects, delete_objects
from reconciler.demo.measures import costs, percentile, reaction, spending
from reconciler.demo.narrator import Narrator
from reconciler.demo.pipeline import Pipeline
from reconciler.demo.plots import draw_svg, draw_text
from reconciler.demo.report import Result, show, write_json, write_svg
from reconciler.demo.workloads import DemoProvider, Wave, example_config, expected_pods
from reconciler.model.errors import InputError, ToolError
from reconciler.sandbox.joiner import JoinerSettings
from reconciler.sandbox.processes import stop_child
from reconciler.sandbox.stack import Sandbox, SandboxSettings

CLUSTER = "analytics"
REGION = "us-west-2"
_SHOWN = 23
"""How many characters of an id are shown."""
WORK_SECONDS = 150.0
"""The longest time for the pods to run and end."""
IDLE_SECONDS = 90.0
"""The longest time until the idle nodes are removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gathered:
    """What the steps of the story left for its result."""

    repository: ConfigRepository
    planned: str
    """What the plan did, in a line."""
    applied: str
    """What applying it did, in a line."""
    account: Account
    follower: Follower
    started_with: Mapping[str, int]
    """The target of each fleet before pods came."""
    log: Path
    """Of the capacity loop."""
    last_plan_empty: bool


@dataclass(slots=True)
class Demo:
    """One run of the demo."""

    narrator: Narrator
    waves: Sequence[Wave]
    out: Path
    programs: Path | None = None
    """Programs of a real control plane; None: the simulated cluster."""
    provider: DemoProvider = "ec2-fleet"
    _began: datetime = field(default_factory=wall_clock)

    def run(self) -> Result:
        """Run the demo; its result is shown and written.

        Raises:
            ReconcilerError: A step failed.
        """
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            what = f"cannot be written: {error.strerror}"
            raise InputError(str(self.out), what, "name another folder with --out") from error
        with ExitStack() as stack:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reconciler-")))
            kind = "a cluster" if self.programs is None else "a real Kubernetes control plane"
            with self.narrator.step(f"Starting the sandbox: AWS and {kind} on loopback"):
                settings = SandboxSettings(
                    joiner=JoinerSettings(cluster=CLUSTER), region=REGION, programs=self.programs
                )
                sandbox = stack.enter_context(Sandbox(settings))
            return self._in_sandbox(sandbox, scratch, stack)

    def _in_sandbox(self, sandbox: Sandbox, scratch: Path, stack: ExitStack) -> Result:
        env = environment(sandbox.environment())
        account = Account(sandbox, REGION)
        account.make_state_bucket()
        repository = ConfigRepository(scratch / "remote.git", scratch / "platform-team", env)
        repository.make()
        config_text = account.config_for(example_config(self.provider))
        self._commit_and_render(repository, config_text, scratch, env)
        pipeline = Pipeline(repository.remote, scratch, env)
        planned, applied = self._plan_and_apply(pipeline)
        fleets = account.fleets(CLUSTER)
        started_with = account.targets(CLUSTER)
        self._show_fleets(fleets)
        log = self.out / "reconciler.log"
        config_file = scratch / "sectors.yaml"
        config_file.write_text(config_text)
        config = parse_config(
            config_text.replace("cluster: analytics", f"cluster: {CLUSTER}", 1)
        ).model_copy(update={"kubeconfig": str(sandbox.kubeconfig)})
        ports = stack.enter_context(live(config))
        follower = Follower(ports.cluster)
        stack.enter_context(_following(follower))
        with self.narrator.step("Starting the capacity loop (reconciler run)"):
            stack.enter_context(_capacity_loop(config_file, scratch, env, log))
            self._await_minimum(follower, started_with)
        self._run_pods(sandbox, follower)
        self._await_idle(sandbox, follower, started_with)
        result = self._result(
            _Gathered(
                repository=repository,
                planned=planned,
                applied=applied,
                account=account,
                follower=follower,
                started_with=started_with,
                log=log,
                last_plan_empty=self._last_plan(pipeline),
            )
        )
        self._publish(result, follower)
        return result

    def _commit_and_render(
        self, repository: ConfigRepository, config: str, scratch: Path, env: Mapping[str, str]
    ) -> None:
        with self.narrator.step("A platform engineer commits the sector config to git"):
            commit = repository.commit("sectors.yaml", config, "Sectors platform, batch and data")
            self.narrator.detail(f"{commit} sectors.yaml -> origin/main")
        with self.narrator.step("The second loop renders it (reconciler gitops --once)"):
            reconciler(["gitops", "--once", "--repository", str(repository.remote)], scratch, env)
            commit = repository.pull()
            files = repository.files_of_head()
            self.narrator.detail(f"{commit} {len(files)} files, fleets.auto.tfvars.json among them")
            if not any(file.endswith("fleets.auto.tfvars.json") for file in files):
                raise ToolError("reconciler gitops", "rendered no fleets.auto.tfvars.json")

    def _plan_and_apply(self, pipeline: Pipeline) -> tuple[str, str]:
        with self.narrator.step("CI plans it (reconciler ci plan)"):
            checkout = pipeline.checkout("ci")
            report = pipeline.plan(checkout)
            planned = _planned(report)
            self.narrator.detail(planned)
        with self.narrator.step("CI applies exactly that plan (reconciler ci apply)"):
            applied = pipeline.apply(checkout)
            self.narrator.detail(applied)
        return planned, applied

    def _show_fleets(self, fleets: Mapping[str, LiveFleet]) -> None:
        self.narrator.say("[bold]The fleets exist in EC2, found by their tags[/]")
        for name, fleet in sorted(fleets.items()):
            spot = "spot" if fleet.tags.get("Spot") == "true" else "on-demand"
            shown = fleet.id if len(fleet.id) <= _SHOWN else f"{fleet.id[:_SHOWN]}…"
            self.narrator.detail(f"{name:16} {shown:24} {spot}, target {fleet.target}")
        if len(fleets) < 4:
            raise ToolError("terraform apply", f"made {len(fleets)} fleets, the config has 6")

    def _await_minimum(self, follower: Follower, targets: Mapping[str, int]) -> None:
        """Wait for the first nodes of the fleets with a minimum."""
        wanted = sum(targets.values())
        with self.narrator.watching() as live_line:
            if not follower.wait_until(
                lambda m: sum(m.nodes.values()) >= wanted, IDLE_SECONDS, live_line
            ):
                raise ToolError("sandbox", f"did not bring {wanted} nodes in {IDLE_SECONDS:.0f} s")

    def _run_pods(self, sandbox: Sandbox, follower: Follower) -> None:
        wanted = expected_pods(self.waves)
        self.narrator.say(f"[bold]{wanted} pods arrive in {len(self.waves)} waves[/]")
        ending = sum(
            int(o["spec"].get("completions", 1))
            for w in self.waves
            for o in w.objects
            if o["kind"] == "Job"
        )
        began = wall_clock()
        with self.narrator.watching() as live_line:
            for wave in self.waves:
                follower.wait_until(
                    lambda _, w=wave: (wall_clock() - began).total_seconds() >= w.after_seconds,  # type: ignore[misc]
                    60.0,
                    live_line,
                )
                apply_objects(sandbox.kubeconfig, wave.objects)
            done = follower.wait_until(
                lambda m: m.finished >= ending and m.pending == 0, WORK_SECONDS, live_line
            )
        if not done:
            last = follower.moments[-1]
            raise ToolError(
                "capacity loop",
                f"after {WORK_SECONDS:.0f} s {last.pending} pods are pending and "
                f"{ending - last.finished} have not ended",
                f"its log is {self.out / 'reconciler.log'}",
            )
        self.narrator.detail(f"{ending} pods of Jobs ended, {wanted - ending} keep running")

    def _await_idle(self, sandbox: Sandbox, follower: Follower, targets: Mapping[str, int]) -> None:
        with self.narrator.step("The Deployments are scaled away; idle nodes go"):
            deployments = [o for w in self.waves for o in w.objects if o["kind"] == "Deployment"]
            delete_objects(sandbox.kubeconfig, deployments)
            wanted = sum(targets.values())
            with self.narrator.watching() as live_line:
                gone = follower.wait_until(
                    lambda m: sum(m.nodes.values()) <= wanted, IDLE_SECONDS, live_line
                )
            if not gone:
                left = follower.moments[-1].nodes
                raise ToolError("capacity loop", f"idle nodes are still there: {left}")
            self.narrator.detail(described(follower.moments[-1]))

    def _last_plan(self, pipeline: Pipeline) -> bool:
        with self.narrator.step("A last terraform plan, after all that scaling"):
            clean = pipeline.is_clean(pipeline.checkout("last"))
            self.narrator.detail("no changes" if clean else "the plan is not empty")
        if not clean:
            raise ToolError("terraform plan", "is not empty after scaling")
        return clean

    def _result(self, gathered: _Gathered) -> Result:
        account, follower = gathered.account, gathered.follower
        raises = account.raises(CLUSTER, gathered.started_with)
        measured = reaction(follower.lives.values(), raises)
        if percentile(measured.raised, 0.99) >= 2.0:
            self.narrator.say(
                "[yellow]pending to a raised target took 2 s or more at the 99th percentile[/]"
            )
        return Result(
            commits=tuple(gathered.repository.log()),
            planned=gathered.planned,
            applied=gathered.applied,
            fleets=tuple(sorted(account.targets(CLUSTER))),
            pods=len(follower.lives),
            nodes_most=max(sum(m.nodes.values()) for m in follower.moments),
            raises=len(raises),
            reaction=measured,
            spending=spending(gathered.log),
            prices=str(load_catalogue().prices),
            last_plan_empty=gathered.last_plan_empty,
            seconds=self.narrator.elapsed_seconds(),
        )

    def _publish(self, result: Result, follower: Follower) -> None:
        log = self.out / "reconciler.log"
        draw_svg(follower.moments, costs(log), self.out / "nodes.svg")
        write_json(result, self.out / "report.json")
        drawing = draw_text(follower.moments, self._began, self.narrator.console.width)
        write_svg(result, self.out / "report.svg")
        show(self.narrator.console, result, drawing)
        self.narrator.say(f"written to {self.out}: report.json, report.svg, nodes.svg")


def _planned(report: Mapping[str, Any]) -> str:
    """Return what the plan does, in a line."""
    counts = ", ".join(f"{n} to {step}" for step, n in sorted(report["counts"].items()))
    cost = report["cost"]["hourly_usd_min"]
    minimum = "" if cost is None else f"; {cost:.3f} USD per hour at the minima"
    return f"{len(report['fleets'])} fleets, {counts}{minimum}; digest {report['digest'][:12]}"


@contextmanager
def _following(follower: Follower) -> Iterator[None]:
    follower.start()
    try:
        yield
    finally:
        follower.stop()


@contextmanager
def _capacity_loop(
    config: Path, where: Path, env: Mapping[str, str], log: Path
) -> Iterator[Popen[bytes]]:
    process = start_reconciler(
        ["run", "--config", str(config), "--listen", "127.0.0.1:0"], where, env, log
    )
    try:
        yield process
    finally:
        stop_child(process)
