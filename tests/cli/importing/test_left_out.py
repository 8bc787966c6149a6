"""`reconciler import` where fleets cannot be carried over: each is left out, and why is said."""

import pytest

from tests.cli.importing.desk import KFM, SUBNETS, Desk, Json, fleet, group, template


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (fleet("fleet-2", "small", tags={"sector": "my sector"}), "is not a valid label value"),
        (fleet("fleet-2", "small", tags={"sector": "gpu", "kind": "gpu"}), "built-in size"),
        (fleet("fleet-2", "medium", tags={"sector": "x" * 60}), "at most 63 fit"),
    ],
)
def test_fleet_that_breaks_a_rule_leaves_the_others_alone(
    desk: Desk, odd: Json, reason: str
) -> None:
    """One oddly tagged fleet must not keep a cluster of fifty from being adopted."""
    code, answer, err = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small"), odd]}, template(), SUBNETS),
    )
    assert (code, err, answer["fleets"]) == (0, "", ["primary-small"])
    assert reason in answer["left_out"]["fleet-2"]


def test_fleet_that_counts_in_weights_is_left_out(desk: Desk) -> None:
    """Its target counts units: taken for nodes it would be several times too large."""
    weighted = fleet("fleet-2", "medium")
    for override in weighted["LaunchTemplateConfigs"][0]["Overrides"]:
        override["WeightedCapacity"] = 4
    _, answer, _ = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small"), weighted]}, template(), SUBNETS),
    )
    assert answer["fleets"] == ["primary-small"]
    assert "weights" in answer["left_out"]["fleet-2"]


def test_limits_that_contradict_each_other_leave_only_their_fleet_out(desk: Desk) -> None:
    """The whole import failed, naming a line of a file that was never written."""
    odd = fleet("fleet-2", "large", tags={"min_capacity": "10", "max_capacity": "5"})
    code, answer, err = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small"), odd]}, template(), SUBNETS),
    )
    assert (code, err, answer["fleets"]) == (0, "", ["primary-small"])
    assert "max_capacity" in answer["left_out"]["fleet-2"]


def test_fleet_that_does_not_fit_to_the_given_config_leaves_the_others_alone(desk: Desk) -> None:
    """The whole import failed, naming a line of a file that was never written."""
    base = desk.folder / "base.yaml"
    base.write_text(
        "regions: [us-west-2]\nsectors:\n  primary:\n    kind: memory\n"
        "    fleets: [{size: small, lifecycle: spot}]\n"
    )
    fleets = [fleet("fleet-1", "small"), fleet("fleet-2", "large", template="lt-2")]
    templates = [template(), template("kfm-large", template_id="lt-2")]
    code, answer, err = desk.adopt(
        *("--config", str(base), "--cluster-name", "analytics"),
        *desk.answers({"Fleets": fleets}, *templates, SUBNETS),
    )
    assert (code, err) == (0, "")
    assert answer["fleets"] == ["primary-small-spot", "primary-large"]
    (reason,) = answer["left_out"].values()
    assert "fleet 'primary-small' is for the same nodes as 'primary-small-spot': give" in reason


@pytest.mark.parametrize("kinds", [("cpu", "gpu"), ("gpu", "cpu")])
def test_own_size_of_two_kinds_leaves_the_second_fleet_out(
    desk: Desk, kinds: tuple[str, str]
) -> None:
    """A kind is known by a size that states it, and this one could state only one of them."""
    fleets = [
        fleet(f"fleet-{n}", "fast", tags={"sector": kind, "kind": kind}, template=f"lt-{kind}")
        for n, kind in enumerate(kinds)
    ]
    templates = [template(f"of-{kind}", template_id=f"lt-{kind}") for kind in kinds]
    code, answer, err = desk.adopt(
        "--cluster-name", "analytics", *desk.answers({"Fleets": fleets}, *templates, SUBNETS)
    )
    assert (code, err, answer["fleets"]) == (0, "", [f"{kinds[0]}-fast"])
    reason = f"size fast is of kind {kinds[0]} already, this of {kinds[1]}"
    assert answer["left_out"] == {"fleet-1": reason}


def test_fleets_that_share_a_launch_template_stay_with_whoever_made_them(desk: Desk) -> None:
    """Two import blocks for one template, and two resources that undo each other's changes."""
    fleets = {"Fleets": [fleet("fleet-1", "small"), fleet("fleet-2", "large")]}
    _, answer, _ = desk.adopt(
        "--cluster-name", "analytics", *desk.answers(fleets, template(), SUBNETS)
    )
    assert answer["fleets"] == ["primary-large", "primary-small"]
    assert sum("shares its launch template" in note for note in answer["notes"]) == 2
    assert not (desk.folder / "out/terraform/imports.tf").exists()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"TargetCapacityUnitType": "vcpu"}, "its target counts vcpu"),
        ({"TargetCapacityUnitType": "units"}, ""),
    ],
)
def test_fleet_whose_target_counts_no_nodes_is_left_out(
    desk: Desk, changed: Json, reason: str
) -> None:
    """A target of 64 vCPUs would become a minimum of 64 nodes."""
    counted = fleet("fleet-1", "small")
    counted["TargetCapacitySpecification"] |= changed
    _, answer, _ = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [counted, fleet("fleet-2", "large")]}, template(), SUBNETS),
    )
    assert reason in answer["left_out"].get("fleet-1", "")
    assert ("primary-small" in answer["fleets"]) is not bool(reason)


def test_what_chooses_types_by_attributes_is_left_out(desk: Desk) -> None:
    """Its template's type, which it never launches, became its only one."""
    requirements = {"InstanceRequirements": {"VCpuCount": {"Min": 8}}}
    by_attributes = fleet("fleet-1", "small")
    by_attributes["LaunchTemplateConfigs"][0]["Overrides"] = [requirements]
    named = template()
    data = named["LaunchTemplateVersions"][0]["LaunchTemplateData"]
    data["InstanceType"] = "t3.micro"
    specification = {"LaunchTemplateId": "lt-1", "Version": "1"}
    policy = {
        "LaunchTemplate": {
            "LaunchTemplateSpecification": specification,
            "Overrides": [requirements],
        }
    }
    fleets = [by_attributes, fleet("fleet-2", "large")]
    answers = {"Fleets": fleets, "AutoScalingGroups": [group("workers", policy=policy)]}
    _, answer, _ = desk.adopt("--cluster-name", "analytics", *desk.answers(answers, named, SUBNETS))
    assert answer["fleets"] == ["primary-large"]
    assert "InstanceRequirements" in answer["left_out"]["fleet-1"]
    assert "attributes" in answer["left_out"]["workers"]


def test_of_two_fleets_of_one_name_the_oldest_is_carried_over(desk: Desk) -> None:
    """The capacity loop scales the oldest; Terraform would have another in its state."""
    young = {**fleet("fleet-1", "small"), "CreateTime": "2026-01-31T12:00:00Z"}
    old = {**fleet("fleet-2", "small"), "CreateTime": "2026-01-30T12:00:00Z"}
    answers = desk.answers({"Fleets": [young, old]}, template(), SUBNETS)
    _, answer, _ = desk.adopt("--cluster-name", "analytics", *answers)
    assert answer["fleets"] == ["primary-small"]
    assert answer["left_out"] == {
        "fleet-1": "fleet-2 is primary-small already: one size a sector, zone and lifecycle"
    }


@pytest.mark.parametrize("other", [{"LaunchTemplateId": "lt-2"}, {"Version": "1"}])
def test_fleet_of_several_launch_templates_is_left_out(desk: Desk, other: Json) -> None:
    """Types of one template, or version, launched from the other's image would never boot."""
    mixed = fleet("fleet-2", "medium")
    specification = mixed["LaunchTemplateConfigs"][0]["LaunchTemplateSpecification"]
    more = {"LaunchTemplateSpecification": {**specification, **other}, "Overrides": []}
    mixed["LaunchTemplateConfigs"].append(more)
    _, answer, _ = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small"), mixed]}, template(), SUBNETS),
    )
    assert answer["fleets"] == ["primary-small"]
    assert "several launch templates" in answer["left_out"]["fleet-2"]


def test_what_cannot_be_carried_over_is_left_out_with_its_reason(desk: Desk) -> None:
    """A fleet that is silently missing from the config would be drained or forgotten."""
    code, answer, _ = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers(
            {
                "Fleets": [
                    fleet("fleet-1", "small"),
                    fleet("fleet-2", "small"),
                    fleet("fleet-3", "medium", tags={"kind": "cpu"}),
                    fleet("fleet-4", "large", tags={"sector": ""}),
                    fleet("fleet-5", "xlarge", FleetState="deleted-running"),
                    fleet("fleet-6", "xlarge", tags={"cluster": "another"}),
                    {"FleetId": "fleet-7", "TargetCapacitySpecification": None},
                ]
            },
            template(),
            SUBNETS,
        ),
    )
    assert (code, answer["fleets"]) == (0, ["primary-small"])
    assert set(answer["left_out"]) == {"fleet-2", "fleet-3", "fleet-4"}
    (unreadable,) = answer["unreadable"]
    assert (unreadable["kind"], unreadable["name"]) == ("Fleet", "fleet-7")
    assert unreadable["detail"].startswith("Expected ")


def test_fleet_that_chooses_types_by_attributes_is_reported_so(desk: Desk) -> None:
    """The launch template that was asked for instead has no instance types either."""
    by_attributes = fleet("fleet-2", "medium")
    by_attributes["LaunchTemplateConfigs"][0]["Overrides"] = [
        {"InstanceRequirements": {"VCpuCount": {"Min": 2}, "MemoryMiB": {"Min": 4096}}}
    ]
    _, answer, _ = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small"), by_attributes]}, template(), SUBNETS),
    )
    assert answer["fleets"] == ["primary-small"]
    assert answer["left_out"]["fleet-2"] == (
        "no instance types are known of it: it chooses them by attributes (InstanceRequirements):"
        " name the types instead"
    )


def test_fleet_of_the_config_that_is_left_out_is_not_reported_to_be_missing(desk: Desk) -> None:
    """Whoever believes it applies, and has a second fleet beside the first."""
    (desk.folder / "config.yaml").write_text(KFM)
    weighted = fleet("fleet-2", "large")
    for override in weighted["LaunchTemplateConfigs"][0]["Overrides"]:
        override["WeightedCapacity"] = 4
    _, answer, _ = desk.adopt(
        "--config",
        str(desk.folder / "config.yaml"),
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small"), weighted]}, template(), SUBNETS),
    )
    (note,) = [each for each in answer["notes"] if each.startswith("primary-large: ")]
    assert "is in EC2 as fleet-2, which is left out" in note
