"""Reports on hand-written plans, and what a commit of the loop was made from."""

from decimal import Decimal
from typing import Any

from reconciler.gitops.rendering.targets import RenderTarget
from reconciler.gitops.repository.commit_message import RenderSource, output_digest
from reconciler.gitops.terraform_plan.config_facts import ConfigFacts, FleetLimits
from reconciler.gitops.terraform_plan.guard import GuardPolicy, guard
from reconciler.gitops.terraform_plan.inputs import PlanInputs, essence
from reconciler.gitops.terraform_plan.planned import fleets
from reconciler.gitops.terraform_plan.report import PlanReport
from reconciler.model.fleet import PriceSource
from reconciler.ports.repository import Commit, CommitId
from reconciler.ports.terraform import StateVersion

OUTPUT = output_digest({"terraform/main.tf": b"# rendered"})
"""What a commit of the loop has."""
FACTS = ConfigFacts(
    cluster="analytics",
    fleets={
        "primary-small": FleetLimits(
            min_capacity=1, max_capacity=10, usd_per_hour=Decimal("0.126")
        ),
        "primary-large": FleetLimits(min_capacity=2, max_capacity=4, usd_per_hour=Decimal(1)),
    },
    prices=PriceSource(region="us-west-2", as_of="2026-01-31"),
)


def report(shown: dict[str, Any], *, facts: ConfigFacts = FACTS, subject: str = "") -> PlanReport:
    """The report of a plan."""
    return PlanReport(
        inputs=PlanInputs(
            commit="c" * 40,
            tree_sha256="t",
            plan_sha256="p",
            state=StateVersion(lineage="l", serial=7),
            targets={f.fleet_id: f.capacity_before or 0 for f in fleets(shown) if f.fleet_id},
        ),
        essence=essence(shown),
        terraform_version="1.11.4",
        changes=True,
        fleets=fleets(shown),
        counts={"create": 1},
        findings=guard(shown, GuardPolicy()),
        facts=facts,
        subject=subject,
    )


TARGET = RenderTarget(config_path="sectors.yaml", output_dir="terraform")
CONFIG = Commit(id=CommitId("a" * 40), subject="Raise the limit")


def source(version: str = "1.2.0", blob: str = "b10b", commit: Commit = CONFIG) -> RenderSource:
    """A render of the config above."""
    return RenderSource(target=TARGET, blob=blob, commit=commit, version=version, output=OUTPUT)
