"""The result of `ci plan` as a value, and its machine-readable form."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from reconciler.gitops.terraform_plan.config_facts import ConfigFacts, FleetLimits
from reconciler.gitops.terraform_plan.finding import Finding, refused
from reconciler.gitops.terraform_plan.inputs import PlanInputs, canonical, inputs_from, inputs_json
from reconciler.gitops.terraform_plan.planned import PlannedFleet
from reconciler.gitops.terraform_plan.pod_impact import PodImpact, impact_json
from reconciler.gitops.terraform_plan.replay import Replay, replay_json
from reconciler.model.errors import InputError

SCHEMA = 1
STALE = "render/stale"
"""Code of a finding: the rendered files are not what the config renders to."""
_MALFORMED = (ArithmeticError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""A number may be infinite, and a text may hold a lone surrogate, of which there is no SHA-256."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanReport:
    """Says what a reviewer decides about, and what an apply is bound to."""

    inputs: PlanInputs
    essence: str
    """See `plan_inputs.essence`: what the plan does, without live capacity."""
    terraform_version: str
    changes: bool
    fleets: tuple[PlannedFleet, ...]
    counts: Mapping[str, int]
    """Resources by step, without unchanged ones; `import` is counted in addition to their steps."""
    findings: tuple[Finding, ...]
    facts: ConfigFacts
    subject: str = ""
    """Subject of the commit."""
    impacts: tuple[PodImpact, ...] | None = None
    """For the running pods; None: the plan was made without reading the cluster."""
    replay: Replay | None = None
    """For a recorded demand; None: none was given."""

    @property
    def allowed(self) -> bool:
        """Return whether nothing forbids an apply."""
        return not refused(self.findings)

    @property
    def is_stale(self) -> bool:
        """Return whether it was made of other files than the config renders to."""
        return any(found.code == STALE for found in self.findings)

    @property
    def nothing_to_apply(self) -> bool:
        """Return whether the infrastructure is what the config asks for already."""
        return self.allowed and not self.changes and not self.is_stale

    def usd_per_hour(self) -> tuple[Decimal | None, Decimal | None]:
        """Return the cost of all fleets after the apply, at their minima and at their maxima.

        None: a price or a maximum is not known.
        """
        limits = [self.limits_of(fleet) for fleet in self.fleets if fleet.step != "delete"]
        return _total(limits, "min_capacity"), _total(limits, "max_capacity")

    def usd_per_hour_now(self) -> Decimal | None:
        """Return the cost of the fleets at their live targets; None: a price is not known."""
        return self._usd_per_hour_of([(f, f.capacity_before) for f in self.fleets])

    def usd_per_hour_after(self) -> Decimal | None:
        """Return the cost right after the apply, which changes no target: new fleets have a first.

        None: a price is not known.
        """
        return self._usd_per_hour_of(
            [
                (f, f.capacity_after if f.step in {"create", "replace"} else f.capacity_before)
                for f in self.fleets
                if f.step != "delete"
            ]
        )

    def _usd_per_hour_of(
        self, targets: Iterable[tuple[PlannedFleet, int | None]]
    ) -> Decimal | None:
        total = Decimal(0)
        for fleet, target in targets:
            if not target:
                continue
            price = self.usd_per_hour_of_node(fleet)
            if price is None:
                return None
            total += price * target
        return total

    def usd_per_hour_of_node(self, fleet: PlannedFleet) -> Decimal | None:
        """Return the config's price of a node, or that of the cheapest type in the catalogue.

        The config does not name a fleet that is removed.
        """
        if (limits := self.limits_of(fleet)) is not None:
            return limits.usd_per_hour
        known = (self.facts.types.get(name) for name in fleet.instance_types)
        prices = (
            instance_type.spot_usd_per_hour if fleet.spot else instance_type.on_demand_usd_per_hour
            for instance_type in known
            if instance_type is not None and fleet.spot is not None
        )
        return min((price for price in prices if price is not None), default=None)

    def limits_of(self, fleet: PlannedFleet) -> FleetLimits | None:
        """Return the config's limits of a fleet, None when it names no such fleet."""
        return self.facts.fleets.get(fleet.name)


def _total(limits: list[FleetLimits | None], key: str) -> Decimal | None:
    total = Decimal(0)
    for limit in limits:
        count = None if limit is None else getattr(limit, key)
        if count == 0:
            continue
        if limit is None or count is None or limit.usd_per_hour is None:
            return None
        total += limit.usd_per_hour * count
    return total


def report_json(report: PlanReport) -> dict[str, Any]:
    """Return the report as `report.json` and `--output json` have it, with its digest."""
    data = _without_digest(report)
    return {**data, "digest": digest_of(data)}


def digest_of(data: Mapping[str, Any]) -> str:
    """Return one SHA-256 over everything that a report says: what a reviewer approves.

    Args:
        data: A report as JSON data; a digest in it is ignored.
    """
    content = {key: value for key, value in data.items() if key != "digest"}
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def _without_digest(report: PlanReport) -> dict[str, Any]:
    at_min, at_max = report.usd_per_hour()
    prices = report.facts.prices
    return {
        "schema": SCHEMA,
        "allowed": report.allowed,
        "changes": report.changes,
        "binding": inputs_json(report.inputs),
        "essence": report.essence,
        "subject": report.subject,
        "terraform_version": report.terraform_version,
        "cluster": report.facts.cluster or None,
        "counts": dict(sorted(report.counts.items())),
        "fleets": [_fleet_json(report, fleet) for fleet in report.fleets],
        "findings": [
            {"severity": f.severity, "code": f.code, "where": f.where, "message": f.message}
            for f in report.findings
        ],
        "pods": None
        if report.impacts is None
        else [impact_json(impact) for impact in report.impacts],
        "replay": None if report.replay is None else replay_json(report.replay),
        "cost": {
            "hourly_usd_min": _number(at_min),
            "hourly_usd_now": _number(report.usd_per_hour_now()),
            "hourly_usd_after": _number(report.usd_per_hour_after()),
            "hourly_usd_max": _number(at_max),
            "prices_as_of": prices.as_of or None if prices else None,
            "prices_region": prices.region if prices else None,
        },
    }


def _fleet_json(report: PlanReport, fleet: PlannedFleet) -> dict[str, Any]:
    limits = report.limits_of(fleet)
    return {
        "fleet": fleet.name,
        "address": fleet.address,
        "step": fleet.step,
        "id": fleet.fleet_id or None,
        "region": fleet.region or None,
        "spot": fleet.spot,
        "ami": fleet.ami_after or None,
        "instance_types": list(fleet.instance_types),
        "tags": dict(sorted((fleet.tags_after or fleet.tags_before).items())),
        "changed": list(fleet.changed),
        "capacity": {
            "min": limits.min_capacity if limits else None,
            "now": fleet.capacity_before,
            "planned": fleet.capacity_after,
            "max": limits.max_capacity if limits else None,
        },
        "hourly_usd_per_node": _number(report.usd_per_hour_of_node(fleet)),
    }


def _number(value: Decimal | None) -> float | None:
    return None if value is None else float(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovedPlan:
    """Holds the parts of a report that an apply reads back."""

    inputs: PlanInputs
    digest: str
    essence: str
    allowed: bool
    changes: bool


def approved_from(text: str, *, where: str) -> ApprovedPlan:
    """Read `report.json`.

    Raises:
        InputError: It is not a report of this version, or its digest is not that of its content.
    """
    try:
        data = json.loads(text)
        if data["schema"] != SCHEMA:
            raise InputError(where, f"schema {data['schema']} is not {SCHEMA}", "plan again")
        approved = ApprovedPlan(
            inputs=inputs_from(data["binding"]),
            digest=str(data["digest"]),
            essence=str(data["essence"]),
            allowed=data["allowed"] is True,
            changes=data["changes"] is True,
        )
        digest = digest_of(data)
    except _MALFORMED as error:
        raise InputError(where, "is not a report of `reconciler ci plan`", "plan again") from error
    if digest != approved.digest:
        what = "was changed after the plan, or is of another version: its digest is wrong"
        raise InputError(where, what, "plan again")
    return approved
