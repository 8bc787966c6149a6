"""What a Terraform plan must not do, whatever its origin; pure.

Deletes, replacements and capacity belong to the capacity loop and to explicit approval; a pull
request must not smuggle other resources, providers or programs into a pipeline with credentials.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.gitops.terraform_plan.finding import Finding, refusal, warning
from reconciler.gitops.terraform_plan.ownership import ownership
from reconciler.gitops.terraform_plan.planned import (
    FLEET,
    GROUP,
    LAUNCH_TEMPLATE,
    PlannedFleet,
    PlannedResource,
    drifted_resources,
    fleets,
    provider_region,
    region_elsewhere,
    resources,
    tags_of,
)
from reconciler.ports.terraform import TerraformPlanJson
from reconciler.records.untrusted_json import mapping

KNOWN_TYPES = frozenset({FLEET, GROUP, LAUNCH_TEMPLATE, "terraform_data"})
"""The resource types of a rendered root module."""
LOOKED_UP = frozenset(
    f"module.fleets.{within}data.{each}"
    for within in ("", "module.fleet.", "module.group.")
    for each in (
        "aws_eks_cluster.this",
        "aws_security_groups.tagged",
        "aws_ssm_parameter.ami",
        "aws_subnet.tagged",
        "aws_subnets.tagged",
    )
)
"""What its modules look up, all fleets together or a module by itself: images by alias, subnets and
security groups by tags. It is not allowed at any other address: an SSM parameter may be a secret,
which would be in the plan."""
KNOWN_PROVIDERS = frozenset(
    {"registry.terraform.io/hashicorp/aws", "terraform.io/builtin/terraform"}
)
_WORD: Final = re.compile(r"\w+")
_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})")
_SUBNETS: Final = "vpc_zone_identifier"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardPolicy:
    """Says what the config and the pipeline allow."""

    allow_destroy: frozenset[str] = frozenset()
    """Names of fleets that may be removed, from the config."""
    allow_types: frozenset[str] = frozenset()
    """Resource types allowed in addition to those of a rendered root."""
    nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Live nodes (or instances) by fleet id, of fleets that would be removed."""


def guard(plan: TerraformPlanJson, policy: GuardPolicy) -> tuple[Finding, ...]:
    """Return what speaks against a plan, refusals first, each group in a stable order."""
    found = [
        *_whole_plan(plan),
        *_providers(plan),
        *_modules(plan, policy),
        *_actions(plan),
        *_checks(plan),
        *_other_region(plan),
        *ownership(plan),
    ]
    for resource in resources(plan):
        found += _resource(resource, policy)
        found += _subnets(resource)
    planned = fleets(plan)
    for fleet in planned:
        found += _fleet(fleet, policy)
    found += _other_provider(planned)
    return tuple(sorted(set(found)))


def hidden_programs(sources: Mapping[str, str]) -> tuple[Finding, ...]:
    """Return programs that Terraform would start while it destroys what left the configuration.

    A plan's JSON does not show the provisioners of `removed` blocks. A file with both words is
    refused, wherever they are: only Terraform knows for certain what is a comment.

    Args:
        sources: Configuration files by name.
    """
    return tuple(
        refusal("resource/provisioner", name, "a `removed` block here could run programs")
        for name, text in sorted(sources.items())
        if {"removed", "provisioner"} <= set(_WORD.findall(_unescaped(name, text)))
    )


def _unescaped(name: str, text: str) -> str:
    """Return the text without JSON's escapes, which could hide a word."""
    if not name.endswith(".json"):
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):  # Terraform may read further than this parser
        return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)


def _whole_plan(plan: TerraformPlanJson) -> Iterator[Finding]:
    if plan.get("errored"):
        yield refusal("plan/errored", "plan", "Terraform could not finish it")
    if plan.get("complete") is False:
        yield warning("plan/incomplete", "plan", "a further plan will be needed after the apply")


def _resource(resource: PlannedResource, policy: GuardPolicy) -> Iterator[Finding]:
    known = KNOWN_TYPES | policy.allow_types
    if resource.is_changed and resource.type not in known:
        yield refusal(
            "resource/foreign",
            resource.address,
            f"{resource.step} of a {resource.type}, which is not part of a rendered root module"
            f" (allow it with --allow-type {resource.type})",
        )
    if resource.importing and resource.step == "replace":
        yield refusal(
            "import/replace",
            resource.address,
            f"would import {resource.importing} and end it in one plan; undo the edit because of"
            " which it cannot stay as it is, apply the import, then edit again",
        )
    elif resource.type == LAUNCH_TEMPLATE and resource.step == "replace":
        yield warning(
            "template/replace", resource.address, "the launch template gets a new identity"
        )


def _other_provider(planned: Sequence[PlannedFleet]) -> Iterator[Finding]:
    """Yield fleets that would become groups or the reverse: two of a name for a time."""
    new = {fleet.name: fleet.provider for fleet in planned if fleet.step == "create"}
    for fleet in planned:
        name = removed_name(fleet)
        if fleet.step == "delete" and new.get(name, fleet.provider) != fleet.provider:
            yield refusal(
                "fleet/provider",
                name,
                "would be removed and created again with another provider: give the new one another"
                " size, and list this one in allow_destroy",
            )


def _other_region(plan: TerraformPlanJson) -> Iterator[Finding]:
    """Yield fleets that live in another Region than the one that the root module is of now.

    The refresh does not find them there: an apply would drop them from the state, though they
    live, and make others of their names.
    """
    here = provider_region(plan)
    for resource in (*drifted_resources(plan), *resources(plan)):
        there = region_elsewhere(plan, resource)
        if there and resource.type != LAUNCH_TEMPLATE:  # it goes with its fleet
            yield refusal(
                "fleet/region",
                tags_of(resource.before).get("fleet") or resource.address,
                f"the state has it in {there}, and this root module is of {here} now: it would be"
                f" forgotten, and one made in {here}. Name {there} first in `regions` again;"
                f" its fleets may move to {here} as a further region, with allow_destroy. If it is"
                f" gone for good: terraform state rm '{resource.address}'",
            )


def _subnets(resource: PlannedResource) -> Iterator[Finding]:
    """Yield subnets that a live group would lose: Auto Scaling may end its instances there."""
    if resource.type != GROUP or resource.step != "update":
        return
    before, after = (set(a.get(_SUBNETS) or ()) for a in (resource.before, resource.after))
    if before - after and _SUBNETS in resource.after:
        name = tags_of(resource.after).get("fleet") or resource.address
        message = (
            f"loses {', '.join(sorted(before - after))}: Auto Scaling may end its instances there,"
            " with their pods; drain their nodes first"
        )
        yield warning("group/subnets", name, message)


def _fleet(fleet: PlannedFleet, policy: GuardPolicy) -> Iterator[Finding]:
    if fleet.step in {"delete", "replace"}:
        yield from _removal(fleet, policy)
    if fleet.step == "forget":
        yield warning("fleet/forget", fleet.name, "stays in EC2, but Terraform lets go of it")
    if fleet.step == "update":
        yield from _update(fleet)


def removed_name(fleet: PlannedFleet) -> str:
    """Return the name of the fleet that is removed, not of its successor."""
    return fleet.tags_before.get("fleet") or fleet.name


def _removal(fleet: PlannedFleet, policy: GuardPolicy) -> Iterator[Finding]:
    name = removed_name(fleet)
    verb = "destroyed" if fleet.step == "delete" else "replaced"
    code = "fleet/destroy" if fleet.step == "delete" else "fleet/replace"
    nodes = policy.nodes.get(fleet.fleet_id, ())
    size = f"target capacity {fleet.capacity_before or 0}"
    named = f"; nodes: {', '.join(nodes[:20])}" + (" …" if len(nodes) > 20 else "") if nodes else ""
    causes = fleet.replaced_for or fleet.changed
    because = f" because of {', '.join(causes)}" if causes else ""
    if name not in policy.allow_destroy:
        yield refusal(
            code,
            name,
            f"would be {verb}{because} ({size}{named});"
            f" undo the edit, or list it in the config's allow_destroy to approve that:"
            " the capacity loop then drains it before the apply",
        )
    elif nodes or fleet.capacity_before:
        yield warning(
            "fleet/not-drained",
            name,
            f"approved to be {verb}, but not drained yet ({size}{named});"
            " everything else is applied first, and this with a later run of the pipeline,"
            " when the capacity loop has drained it",
        )
    if fleet.terminates_instances:
        yield refusal(
            "fleet/terminates-instances",
            name,
            "terminate_instances is set: its nodes would be ended with their pods",
        )


def _update(fleet: PlannedFleet) -> Iterator[Finding]:
    if fleet.capacity_after != fleet.capacity_before:
        yield refusal(
            "fleet/capacity",
            fleet.name,
            f"target capacity {fleet.capacity_before} would become {fleet.capacity_after}"
            f"{_by_its_maximum(fleet)}; capacity belongs to the capacity loop (ignore_changes)",
        )


def _by_its_maximum(fleet: PlannedFleet) -> str:
    """Return why a group's capacity would be lowered, and the effect of that."""
    if fleet.provider != "asg":
        return ""
    return ": its maximum would be less, and Auto Scaling would end instances of its own choice"


def _providers(plan: TerraformPlanJson) -> Iterator[Finding]:
    pinned: dict[str, bool] = {}
    configured = mapping(mapping(plan.get("configuration")).get("provider_config"))
    for key, entry in sorted(configured.items()):
        name = str(mapping(entry).get("full_name") or mapping(entry).get("name") or "")
        has_version = bool(mapping(entry).get("version_constraint"))
        pinned[name] = pinned.get(name, False) or has_version
        arguments = sorted(set(mapping(mapping(entry).get("expressions"))) - {"region"})
        if arguments:
            yield refusal(
                "provider/argument",
                str(key),
                f"sets {', '.join(arguments)}: only region may be set there; credentials and"
                " endpoints come from the environment",
            )
    for name, has_version in sorted(pinned.items()):
        if name not in KNOWN_PROVIDERS:
            yield refusal("provider/foreign", name, "no provider of a rendered root module")
        elif not has_version and "builtin" not in name:
            yield refusal("provider/unpinned", name, "has no version constraint")


def _modules(plan: TerraformPlanJson, policy: GuardPolicy) -> Iterator[Finding]:
    """Yield findings about the configuration of every module, whether or not it plans anything."""
    root = mapping(plan.get("configuration")).get("root_module")
    pending = [("", mapping(root))]
    while pending:
        prefix, module = pending.pop()
        for resource in module.get("resources", []):
            yield from _declared(f"{prefix}{resource.get('address', '')}", resource, policy)
        for name, call in mapping(module.get("module_calls")).items():
            source = str(mapping(call).get("source", ""))
            if not source.startswith(("./", "../")):
                yield refusal(
                    "module/foreign",
                    f"{prefix}module.{name}",
                    f"its source {source!r} is not a directory of the rendered root module",
                )
            pending.append((f"{prefix}module.{name}.", mapping(mapping(call).get("module"))))


def _declared(where: str, resource: Mapping[str, Any], policy: GuardPolicy) -> Iterator[Finding]:
    """Yield findings about one block: programs that it would start, data that it would read."""
    kinds = sorted({str(p.get("type")) for p in resource.get("provisioners", [])})
    if kinds:
        yield refusal("resource/provisioner", where, f"would run {', '.join(kinds)}")
    type_ = str(resource.get("type", ""))
    is_data = resource.get("mode", "managed") != "managed"
    if is_data and where not in LOOKED_UP and type_ not in policy.allow_types:
        yield refusal(
            "data/foreign",
            where,
            f"reads {type_}, which no rendered root module does (allow it with --allow-type"
            f" {type_})",
        )


def _actions(plan: TerraformPlanJson) -> Iterator[Finding]:
    """Yield actions of providers other than changes of resources, since Terraform 1.14.

    Source: https://developer.hashicorp.com/terraform/language/block/action, read 2026-11.
    """
    for key in ("action_invocations", "deferred_action_invocations"):
        for entry in plan.get(key) or []:
            action = mapping(mapping(entry).get("action_invocation") or entry)
            where = str(action.get("address") or action.get("type") or "action")
            yield refusal("action/foreign", where, "no action is part of a rendered root module")


def _checks(plan: TerraformPlanJson) -> Iterator[Finding]:
    """Yield failed `check` blocks; failed conditions of other kinds end the plan by themselves."""
    for check in plan.get("checks", []):
        where = str(mapping(check.get("address")).get("to_display", "check"))
        for instance in check.get("instances", []):
            for problem in instance.get("problems", []):
                yield warning("terraform/check", where, str(problem.get("message", "")))
