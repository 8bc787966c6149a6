"""The stages that pipelines call, over ports: plan, apply exactly that plan, report drift."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from reconciler.gitops.applying.apply import Applied, Apply, FinishedRemovals, SetPools
from reconciler.gitops.applying.left_behind import (
    LeftBehind,
    clear_imports,
    imported,
    imported_as,
    left_behind,
)
from reconciler.gitops.applying.remaining_nodes import Clouds, nodes_of
from reconciler.gitops.drift.drift import Drift, DriftReport, drift_report, fleet_drift
from reconciler.gitops.rendering.render import TFVARS
from reconciler.gitops.terraform_plan.config_facts import ConfigFacts
from reconciler.gitops.terraform_plan.directory import PlanDirectory, file_sha256, tree_sha256
from reconciler.gitops.terraform_plan.finding import Finding, refusal, refused, warning
from reconciler.gitops.terraform_plan.guard import GuardPolicy, guard, hidden_programs
from reconciler.gitops.terraform_plan.import_blocks import done_imports
from reconciler.gitops.terraform_plan.inputs import PlanInputs, essence
from reconciler.gitops.terraform_plan.planned import (
    PlannedFleet,
    fleets,
    held_ids,
    provider_region,
    resources,
)
from reconciler.gitops.terraform_plan.pod_impact import PodImpact
from reconciler.gitops.terraform_plan.replay import Replay
from reconciler.gitops.terraform_plan.report import STALE, PlanReport
from reconciler.gitops.terraform_plan.root_files import assert_only_ours, foreign_files
from reconciler.model.errors import Conflict, ObservationError, PortError, Refused, ToolError
from reconciler.model.ids import Region
from reconciler.ports.repository import Checkout
from reconciler.ports.terraform import SavedPlan, StateVersion, Terraform, TerraformPlanJson


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSettings:
    """Says which root module of a checkout the stages work on, and what they may do."""

    module: Path
    plans: PlanDirectory
    backend_config: tuple[str, ...] = ()
    facts: ConfigFacts = field(default_factory=ConfigFacts)
    config_fault: str = ""
    """Why the config next to the root module cannot be read, for stages that continue without
    it."""
    allow_destroy: frozenset[str] = frozenset()
    """Fleets that may be removed in addition to those of the config."""
    allow_types: frozenset[str] = frozenset()
    allow_files: Mapping[str, str] = field(default_factory=dict)
    """Digests by path of files allowed next to the rendered ones; empty: any content."""
    impacts: Callable[[Sequence[PlannedFleet]], tuple[PodImpact, ...]] | None = None
    """What a plan means for the pods that run now; None: the cluster was not read."""
    replay: Callable[[], Replay] | None = None
    """Simulates a recorded demand with the old and the new config; None: none was given."""
    untouched_since: Callable[[str], bool] | None = None
    """Whether nothing of this root changed since a commit; None: every newer commit counts."""

    def policy(self, nodes: Mapping[str, tuple[str, ...]]) -> GuardPolicy:
        """Return what the guard allows."""
        return GuardPolicy(
            allow_destroy=self.allow_destroy | self.facts.allow_destroy,
            allow_types=self.allow_types,
            nodes=nodes,
        )


class Pipeline:
    """Plans, applies and reports drift of one root module.

    `cloud` opens EC2 for a cluster's name, only when a plan touches one of its live fleets: other
    plans do not need EC2.
    """

    def __init__(
        self,
        terraform: Terraform,
        cloud: Clouds,
        checkout: Checkout,
        settings: PipelineSettings,
        left_behind: LeftBehind | None = None,
        set_pools: SetPools | None = None,
    ) -> None:
        self._left_behind = left_behind
        self._set_pools = set_pools
        self._terraform = terraform
        self._cloud = cloud
        self._checkout = checkout
        self._settings = settings

    def plan(self) -> PlanReport:
        """Make, check and keep a plan; change nothing but the plan directory.

        Files that Terraform must not read are refused before Terraform is started.

        Raises:
            ToolError: Terraform is missing, failed, or calls the module invalid.
        """
        plans = self._settings.plans
        plans.prepare()
        clear_imports(self._settings.module)
        foreign = foreign_files(
            self._settings.module, allowed=self._settings.allow_files, without=plans.path
        )
        if foreign:
            return self._kept(self._report_foreign_files(foreign))
        self._terraform.init(self._settings.backend_config)
        with self._explained():
            state = self._terraform.state_version()
            saved, shown, adopted = self._plan_with_left_behind()
        planned = fleets(shown)
        nodes, blind = nodes_of(planned, self._cloud)
        impacts, replay = self._settings.impacts, self._settings.replay
        return self._kept(
            PlanReport(
                inputs=self._inputs(state, planned),
                essence=essence(shown),
                terraform_version=self._terraform.version(),
                changes=saved.changes,
                fleets=planned,
                counts=_counts(shown),
                findings=tuple(
                    sorted(
                        {
                            *guard(shown, self._settings.policy(nodes)),
                            *hidden_programs(self._terraform.sources(saved.file)),
                            *blind,
                            *adopted,
                            *self._stale(changes=saved.changes),
                            *done_imports(self._settings.module, shown),
                        }
                    )
                ),
                facts=self._settings.facts,
                subject=self._subject(),
                impacts=None if impacts is None else impacts(planned),
                replay=None if replay is None else replay(),
            )
        )

    def _kept(self, report: PlanReport) -> PlanReport:
        self._settings.plans.keep(report, self._settings.module)
        return report

    def _report_foreign_files(self, foreign: tuple[Finding, ...]) -> PlanReport:
        """Return the report on a root module that Terraform must not read."""
        checkout = self._checkout.state(str(self._settings.module))
        return PlanReport(
            inputs=PlanInputs(
                commit=checkout.commit if checkout else "",
                tree_sha256="",
                plan_sha256="",
                state=StateVersion(),
                targets={},
            ),
            essence="",
            terraform_version="",
            changes=False,
            fleets=(),
            counts={},
            findings=foreign,
            facts=self._settings.facts,
            subject=self._subject(),
        )

    def _assert_only_ours(self) -> None:
        settings = self._settings
        assert_only_ours(settings.module, allowed=settings.allow_files, without=settings.plans.path)

    def apply(self, *, digest: str = "", accepted: Callable[[], None] = lambda: None) -> Applied:
        """Apply the kept plan, if it is still the one that was approved.

        Args:
            digest: The digest that the reviewer saw; empty: the report's own is trusted.
            accepted: Called once it is certain that the plan is of this checkout and of this state,
                before anything is changed.

        Raises:
            Conflict: Commit, files, state or live capacity changed since the plan.
            Refused: The guard refuses it, a file was not rendered, or a fleet that would be removed
                still has nodes.
            ToolError: Terraform is missing or failed.
        """
        approved = self._settings.plans.approved()
        where = str(self._settings.plans.path)
        if digest and digest != approved.digest:
            raise Conflict(where, "its digest is not the approved one", "approve this plan")
        if not approved.allowed:
            raise Refused(where, "the guard refused this plan")
        clear_imports(self._settings.module)
        self._assert_only_ours()
        self._settings.plans.forget_replans()
        if self._settings.plans.hand_over_locks(self._settings.module):
            self._assert_only_ours()
        self._terraform.init(self._settings.backend_config)
        now = self._inputs(self._terraform.state_version(), ())
        untouched = self._settings.untouched_since
        planned_at = approved.inputs.commit
        if untouched is not None and planned_at not in {"", now.commit} and untouched(planned_at):
            now = replace(now, commit=planned_at)
        moved = approved.inputs.differences(now)
        if moved:
            raise Conflict(where, f"stale: {'; '.join(moved)}", "plan and approve again")
        accepted()
        if not approved.changes:
            return Applied(message="No changes: nothing to apply.")
        self._assert_rendered()
        sources = self._terraform.sources(str(self._settings.plans.plan_file))
        replanning = partial(imported_as, sources, self._settings.module)
        return replace(self._apply(), replanning=replanning).run(approved.essence)

    def finish(self) -> FinishedRemovals:
        """Apply approved removals of fleets that have no nodes left, and nothing else.

        The commit that lists a fleet in `allow_destroy` approves its removal, and the capacity
        loop drains it because of that commit. What is left here ends no node.

        Raises:
            Conflict: The root module is not what the config renders to, or Terraform would do more.
            Refused: The guard refuses it, or a file was not rendered.
            ToolError: Terraform is missing or failed.
        """
        if not self._settings.policy({}).allow_destroy:
            return FinishedRemovals(planned=False)
        self._settings.plans.prepare()
        clear_imports(self._settings.module)
        self._assert_only_ours()
        self._assert_rendered()
        self._terraform.init(self._settings.backend_config)
        with self._explained():
            saved = self._terraform.plan(str(self._settings.plans.plan_file), lock=False)
        for hidden in hidden_programs(self._terraform.sources(saved.file)):
            raise Refused(hidden.where, f"{hidden.code}: {hidden.message}")
        return self._apply().finish(self._terraform.show_json(saved.file))

    def _apply(self) -> Apply:
        return Apply(
            terraform=self._terraform,
            cloud=self._cloud,
            plans=self._settings.plans,
            policy=self._settings.policy,
            set_pools=self._set_pools,
            variables=(self._settings.module / TFVARS).read_bytes,
        )

    def drift(self) -> DriftReport:
        """Return the differences between config, state and EC2; change nothing and take no lock.

        Raises:
            Refused: The root module has a file that was not rendered.
            ToolError: Terraform is missing or failed.
        """
        self._settings.plans.prepare()
        clear_imports(self._settings.module)
        self._assert_only_ours()
        self._terraform.init(self._settings.backend_config)
        with self._explained():
            saved = self._terraform.plan(str(self._settings.plans.plan_file), lock=False)
        shown = self._terraform.show_json(saved.file)
        Path(saved.file).unlink(missing_ok=True)
        drifts, notes = self._drift_of_fleets(shown)
        done = done_imports(self._settings.module, shown)
        return DriftReport(
            drifts=tuple(sorted({*drift_report(shown).drifts, *drifts})),
            notes=(*notes, *(f"{found.where}: {found.message}" for found in done)),
        )

    def _drift_of_fleets(
        self, shown: TerraformPlanJson
    ) -> tuple[tuple[Drift, ...], tuple[str, ...]]:
        """Return how config and EC2 differ in fleets and sizes; and what was not compared."""
        facts, fault = self._settings.facts, self._settings.config_fault
        if fault:
            return (), (f"the config has faults, fleets and capacity are not compared: {fault}",)
        home = (
            facts.region
            or provider_region(shown)
            or next((fleet.region for fleet in fleets(shown) if fleet.region), "")
        )
        if not facts.cluster or not home:
            return (), ()
        try:
            cloud = self._cloud(facts.cluster, ()).observe([Region(home)])
            drifts = fleet_drift(facts, Region(home), cloud)
            if facts.groups:
                cloud = self._cloud(facts.cluster, tuple(facts.groups)).observe([Region(home)])
                drifts += fleet_drift(facts, Region(home), cloud, "asg")
        except (ObservationError, PortError) as error:
            return (), (f"EC2 did not tell which fleets there are: {error}",)
        return drifts, ()

    def _plan_with_left_behind(self) -> tuple[SavedPlan, TerraformPlanJson, tuple[Finding, ...]]:
        """Return a saved plan that creates nothing a second time.

        It takes no lock: otherwise the role for plans could remove the lock of an apply in
        progress. If the state changes meanwhile, so does its serial, and the apply refuses the
        plan.
        """
        file = str(self._settings.plans.plan_file)
        saved = self._terraform.plan(file, lock=False)
        shown = self._terraform.show_json(saved.file)
        ids, findings = left_behind(fleets(shown), self._left_behind, held_ids(shown))
        if ids:
            with imported(self._settings.module, ids):
                saved = self._terraform.plan(file, lock=False)
            shown = self._terraform.show_json(saved.file)
        return saved, shown, findings

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """When planning fails because the module is invalid, report where, on one line.

        Planning includes validation, so only a module that fails to plan is validated: each start
        of the provider takes seconds.
        """
        try:
            yield
        except ToolError:
            errors = [
                terraform_diagnostic
                for terraform_diagnostic in self._terraform.validate()
                if terraform_diagnostic.severity == "error"
            ]
            if not errors:
                raise
            first = errors[0]
            more = f"; {len(errors) - 1} more errors" if len(errors) > 1 else ""
            where = first.where or str(self._settings.module)
            raise ToolError(where, f"{first.summary}: {first.detail}{more}") from None

    def _inputs(self, state: StateVersion, planned: tuple[PlannedFleet, ...]) -> PlanInputs:
        settings = self._settings
        checkout = self._checkout.state(str(settings.module))
        return PlanInputs(
            commit=checkout.commit if checkout else "",
            tree_sha256=tree_sha256(settings.module, without=settings.plans.path),
            plan_sha256=file_sha256(settings.plans.plan_file),
            state=state,
            targets={f.fleet_id: f.capacity_before or 0 for f in planned if f.fleet_id},
        )

    def _assert_rendered(self) -> None:
        """Raise Conflict if the rendered files are not what the config renders to."""
        for stale in refused(self._stale(changes=True)):
            raise Conflict(stale.where, stale.message)

    def _stale(self, *, changes: bool) -> tuple[Finding, ...]:
        """Return rendered files that differ from what the config renders to.

        A plan without changes does no harm, and the commit of a config comes before its render. A
        plan that changes something is not of the config that is in force: it would make fleets that
        the config no longer has. Files that the pipeline names (`allow_files`) may differ.
        """
        module, rendered = self._settings.module, self._settings.facts.rendered
        if not (module / TFVARS).is_file():
            return ()
        other = sorted(path for path, sha in rendered.items() if file_sha256(module / path) != sha)
        if not other:
            return ()
        more = f" and {len(other) - 3} more" if len(other) > 3 else ""
        message = f"{', '.join(other[:3])}{more}: not what the sector config renders to (now)"
        if not changes or set(other) <= set(self._settings.allow_files):
            return (warning(STALE, module.name, message),)
        wait = "wait for the second loop to render it, or merge its review; then plan again"
        return (refusal(STALE, module.name, f"{message}: {wait}"),)

    def _subject(self) -> str:
        checkout = self._checkout.state(str(self._settings.module))
        return checkout.subject if checkout else ""


def _counts(shown: TerraformPlanJson) -> Mapping[str, int]:
    """Return the number of resources by step; an imported one counts as `import` as well."""
    planned_resources = resources(shown)
    steps: Counter[str] = Counter(
        planned_resource.step
        for planned_resource in planned_resources
        if planned_resource.is_changed
    )
    steps.update("import" for planned_resource in planned_resources if planned_resource.importing)
    return dict(sorted(steps.items()))
