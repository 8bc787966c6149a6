"""A plan for reviewers."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from reconciler.config.catalogue import load_catalogue
from reconciler.gitops.terraform_plan.finding import Finding
from reconciler.gitops.terraform_plan.guard import GuardPolicy, guard
from reconciler.gitops.terraform_plan.inputs import essence
from reconciler.gitops.terraform_plan.pod_impact import PodImpact
from reconciler.gitops.terraform_plan.report import STALE, approved_from, report_json
from reconciler.gitops.terraform_plan.summary import BYTES_MAX, summary
from reconciler.model.errors import InputError
from tests.unit.gitops.plans import fleet_attributes, fleet_change, plan, resource, template_change
from tests.unit.gitops.reports import FACTS, report


def imported(change: dict[str, Any]) -> dict[str, Any]:
    """The same, of a fleet that enters the state."""
    return {**change, "change": {**change["change"], "importing": {"id": "fleet-1"}}}


def test_created_fleet_shows_tags_capacity_and_cost() -> None:
    """A reviewer decides on these numbers."""
    text = summary(report(plan(fleet_change(["create"], target=5))))
    assert "### Created" in text
    assert "| `primary-small` | 1 / 5 (new) / 10 | spot |" in text
    assert "`cluster=analytics`" in text
    assert (
        "0.13 USD at min, 0.00 USD at the targets now, 0.63 USD at those after the apply,"
        " 1.26 USD at max (on-demand prices of us-west-2, 2026-01-31; those of spot are the"
        " catalogue's estimates)" in text
    )
    assert "state serial 7" in text


def test_plan_without_changes_of_stale_files_does_not_claim_the_config() -> None:
    """The config commit has a plan before its render: a green light for fleets that nobody made."""
    made = replace(report(plan()), changes=False)
    assert made.nothing_to_apply
    assert "The infrastructure is what the config asks for" in summary(made)
    found = Finding(severity="warning", code=STALE, where="terraform", message="main.tf: not …")
    stale = replace(made, findings=(*made.findings, found))
    assert not stale.nothing_to_apply
    text = summary(stale)
    assert "what the config asks for" not in text
    assert "**No changes by these files**" in text


def test_cost_is_over_all_fleets_after_the_apply() -> None:
    """A sum over the changed fleets alone would hide the bill."""
    shown = plan(fleet_change(["create"]), fleet_change(["no-op"], "primary-large"))
    assert report(shown).usd_per_hour() == (Decimal("2.126"), Decimal("5.26"))


def test_nodes_that_new_fleets_start_with_are_part_of_the_cost_after_the_apply() -> None:
    """They are bought by the apply, whatever was running before it."""
    shown = plan(fleet_change(["create"], target=2), fleet_change(["no-op"], "primary-large"))
    made = report(shown)
    live = made.usd_per_hour_now()
    assert live is not None
    assert made.usd_per_hour_after() == live + 2 * Decimal("0.126")
    kept = report(plan(fleet_change(["no-op"])))
    assert kept.usd_per_hour_after() == kept.usd_per_hour_now()
    assert "after the apply" not in summary(kept)
    assert report(plan(fleet_change(["delete"]))).usd_per_hour_after() == 0


def test_cost_of_now_includes_fleets_that_are_removed() -> None:
    """The config names them no longer, so a reviewer never saw what a removal saves."""
    types = load_catalogue()
    spot = types["r4.xlarge"].spot_usd_per_hour
    assert spot is not None
    other = types["r5.xlarge"].spot_usd_per_hour
    assert other is not None
    facts = replace(FACTS, types=types)
    made = report(plan(fleet_change(["no-op"]), fleet_change(["delete"], "old-small")), facts=facts)
    kept = 2 * Decimal("0.126")
    assert made.usd_per_hour_now() == kept + 2 * min(spot, other)
    assert made.usd_per_hour_after() == kept
    unknown = report(plan(fleet_change(["delete"], "old-small")))
    assert unknown.usd_per_hour_now() is None


def test_cost_of_now_includes_what_an_interrupted_replacement_left() -> None:
    """Both fleets have one name, and only the last one was counted."""
    kept = resource("aws_ec2_fleet", ["no-op"], fleet_attributes(target=5), fleet_attributes())
    left = resource("aws_ec2_fleet", ["delete"], fleet_attributes(target=2), None)
    made = report(plan(kept, left | {"deposed": "b0b1"}))
    assert made.usd_per_hour_now() == 7 * Decimal("0.126")


@pytest.mark.parametrize(
    ("changes", "counts", "headline"),
    [
        ([fleet_change(["create"])], {"create": 2}, "1 fleet to create (2 resources)"),
        (
            [
                fleet_change(["delete"], "a"),
                fleet_change(["delete"], "b"),
                fleet_change(["no-op"]),
                template_change("ami-1", "ami-2"),
            ],
            {"delete": 4, "update": 1},
            "1 fleet to change (1 resource), 2 fleets to destroy (4 resources)",
        ),
        ([fleet_change(["no-op"])], {"update": 3}, "3 resources to change"),
        ([imported(fleet_change(["no-op"]))], {"import": 2}, "1 fleet to import (2 resources)"),
        ([fleet_change(["no-op"])], {}, "Changes of outputs only"),
    ],
)
def test_headline_counts_fleets(
    changes: list[dict[str, Any]], counts: dict[str, int], headline: str
) -> None:
    """A fleet has a launch template: `2 to create` was one fleet, `1 to change` an image."""
    policy = GuardPolicy(allow_destroy=frozenset({"a", "b"}))
    made = replace(report(plan(*changes)), counts=counts, findings=guard(plan(*changes), policy))
    assert f"\n**{headline}**\n" in summary(made)


def test_one_fleet_is_unchanged() -> None:
    """Plain words."""
    assert "\n1 fleet unchanged.\n" in summary(report(plan(fleet_change(["no-op"]))))


def test_unknown_price_or_limit_makes_the_cost_unknown() -> None:
    """An unknown price must never be added as nothing."""
    shown = plan(fleet_change(["create"], "primary-nosuch"))
    assert report(shown).usd_per_hour() == (None, None)
    text = summary(report(shown))
    assert "unknown at min, 0.00 USD at the targets now, unknown at those after" in text


def test_new_ami_shows_the_fleet_as_changed() -> None:
    """A new AMI reaches every node; "no change of the fleet" would mislead."""
    shown = plan(fleet_change(["no-op"]), template_change("ami-1", "ami-2"))
    text = summary(report(shown))
    assert "### Changed" in text
    assert "`ami-1` → `ami-2`" in text
    assert "`launch_template.image_id`" in text


def test_refusal_comes_before_everything_else() -> None:
    """Nobody scrolls past a green list to find the red line."""
    text = summary(report(plan(fleet_change(["delete"]))))
    assert text.index("Refused") < text.index("### Destroyed")
    assert "`fleet/destroy`" in text


def test_changed_tag_shows_old_and_new_value() -> None:
    """Tags steer cost reports and the capacity loop."""
    tags = {"cluster": "analytics", "fleet": "primary-small", "sector": "primary", "team": "data"}
    text = summary(report(plan(fleet_change(["update"], tags=tags))))
    assert "`team: - → data`" in text


def test_tags_that_are_not_shown_are_counted() -> None:
    """A reviewer approved a change of which the last tags were not to be seen."""
    tags = {"cluster": "analytics", "fleet": "primary-small", "sector": "primary"}
    more = {f"key-{number:02}": "x" for number in range(23)}
    text = summary(report(plan(fleet_change(["update"], tags=tags | more))))
    assert "`key-19: - → x` … and 3 more |" in text
    less = dict(list(more.items())[:20])
    assert "more |" not in summary(report(plan(fleet_change(["update"], tags=tags | less))))


def test_foreign_text_cannot_shape_the_summary() -> None:
    """A commit subject or a tag must not fake an approval, a mention or a link."""
    evil = "x\n## Approved\n<img src=x> [here](http://e) | @team `code` #1"
    before = fleet_attributes(tags={"fleet": "a`|b", "cluster": "c", "note": evil})
    shown = plan(resource("aws_ec2_fleet", ["delete"], before, None))
    text = summary(report(shown, subject=evil))
    assert "\n## Approved" not in text
    headline = text.splitlines()[0]
    evil_line = "x ## Approved <img src=x> [here](http://e) ¦ @team 'code' #1"
    assert headline == f"## Fleet plan for `analytics` at `cccccccccccc` `{evil_line}`"
    row = next(line for line in text.splitlines() if line.startswith("| `a'"))
    assert row.replace("\\|", "").count("|") == 7


def test_huge_plan_is_cut_at_a_line_and_says_so() -> None:
    """A forge refuses a comment that is too long, and then there is none."""
    changes = [fleet_change(["create"], f"sector-{n}-{'x' * 200}") for n in range(2000)]
    made = report(plan(*changes))
    text = summary(made)
    assert len(text.encode()) <= BYTES_MAX
    assert "more" in text
    assert "| fleet |" in text


def test_plan_that_is_cut_keeps_its_cost_and_its_digest() -> None:
    """What a reviewer approves by must not be what a hundred long rows push out."""
    tags = {f"key-{n}": "v" * 200 for n in range(20)}
    made = report(plan(*(fleet_change(["create"], f"a-{n}", tags=tags) for n in range(90))))
    text = summary(made)
    assert len(text.encode()) <= BYTES_MAX
    assert "… cut: the whole plan is in report.json." in text
    assert "Cost per hour of all fleets" in text
    assert report_json(made)["digest"] in text.splitlines()[-1]


def test_report_reads_back_as_what_was_approved() -> None:
    """Apply is held to what plan wrote."""
    made = report(plan(fleet_change(["create"])))
    approved = approved_from(json.dumps(report_json(made)), where="report.json")
    assert approved.inputs == made.inputs
    assert approved.digest == report_json(made)["digest"]
    assert approved.allowed


@pytest.mark.parametrize(
    "edit", [{"changes": False}, {"allowed": True}, {"essence": "0" * 64}, {"findings": []}]
)
def test_report_that_was_edited_is_not_what_was_approved(edit: dict[str, Any]) -> None:
    """An apply said that there is nothing to apply of a plan that was approved with changes."""
    made = report_json(report(plan(fleet_change(["delete"]))))
    assert made != made | edit
    with pytest.raises(InputError, match="its digest is wrong"):
        approved_from(json.dumps(made | edit), where="report.json")


def test_essence_ignores_live_capacity_only() -> None:
    """A plan made again may stand for the approved one only if it does the same."""

    def tagged(target: int, **more: Any) -> str:
        before = fleet_attributes(target=target)
        after = fleet_attributes(target=target, **more)
        return essence(plan(resource("aws_ec2_fleet", ["update"], before, after)))

    new_tags = {"fleet": "primary-small", "x": "y"}
    assert tagged(2, tags=new_tags) == tagged(7, tags=new_tags)
    assert tagged(2, tags=new_tags) != tagged(2, tags={"fleet": "primary-small", "x": "z"})
    assert tagged(2, tags=new_tags) != tagged(2, tags=new_tags, terminate_instances=True)


def test_pods_with_nowhere_to_go_are_shown_before_the_cost() -> None:
    """They are the reason to say no."""
    lost = tuple((f"ns/pod-{n:02}", "insufficient-memory") for n in range(30))
    impact = PodImpact(
        fleet="primary-small",
        nodes=3,
        pods=42,
        places={"existing nodes": 10, "primary-large": 2},
        unplaceable=lost,
    )
    made = replace(report(plan(fleet_change(["delete"]))), impacts=(impact,))
    text = summary(made)
    assert "42 pods on 3 nodes: when they go, 10 in `existing nodes`, 2 in `primary-large`" in text
    assert "**nowhere to go:** `ns/pod-00` (`insufficient-memory`)" in text
    assert "… and 10 more with nowhere to go" in text
    assert text.index("nowhere to go") < text.index("Cost per hour")
    assert len(report_json(made)["pods"][0]["unplaceable"]) == 30
    assert report_json(replace(made, impacts=None))["pods"] is None
