"""`reconciler import` that is refused: it is said in one line, and nothing is written."""

import pytest

from tests.cli.importing.desk import KFM, SUBNETS, Desk, fleet, template


def test_fleets_of_another_region_than_the_configs_are_refused(desk: Desk) -> None:
    """Import blocks for fleets that the root module's Region does not have end its first plan."""
    (desk.folder / "config.yaml").write_text(f"regions: [us-east-1, us-west-2]\n{KFM}")
    code, _, err = desk.adopt(
        "--config",
        str(desk.folder / "config.yaml"),
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small")]}, template(), SUBNETS),
    )
    assert code == 2
    assert "us-west-2" in err
    assert "us-east-1" in err


def test_import_that_cannot_be_written_whole_leaves_nothing(desk: Desk) -> None:
    """A config without its import blocks would make every fleet a second time."""
    (desk.folder / "out").mkdir()
    (desk.folder / "out/terraform").write_text("a file")
    code, _, err = desk.adopt(
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small")]}, template(), SUBNETS),
    )
    assert (code, err.count("\n")) == (1, 1)
    assert not (desk.folder / "out/sectors.yaml").exists()


def test_second_import_overwrites_nothing(desk: Desk) -> None:
    """Whoever edited the written config must not lose that."""
    arguments = [
        "--cluster-name",
        "analytics",
        *desk.answers({"Fleets": [fleet("fleet-1", "small")]}, template(), SUBNETS),
    ]
    assert desk.adopt(*arguments)[0] == 0
    (desk.folder / "out/sectors.yaml").write_text("mine")
    code, _, err = desk.adopt(*arguments)
    assert code == 2
    assert "exists already" in err
    assert desk.written("sectors.yaml") == "mine"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "--cluster-name"),
        (["--cluster-name", "other"], 1, "nothing there carries the tags of cluster other"),
        (["--cluster-name", "a", "--config", "nowhere.yaml"], 2, "no such file"),
    ],
)
def test_useless_request_is_one_line(
    desk: Desk, arguments: list[str], code: int, said: str
) -> None:
    """An empty config written for a typo would be taken for the truth."""
    files = desk.answers({"Fleets": [fleet("fleet-1", "small")]}, template(), SUBNETS)
    found, _, err = desk.adopt(*arguments, *files)
    assert (found, err.count("\n")) == (code, 1)
    assert said in err
    assert not (desk.folder / "out").exists()


def test_fleets_that_can_none_be_carried_over_are_named_with_the_reason(desk: Desk) -> None:
    """They carry the cluster's tags: whoever reads that they do not looks in the wrong place."""
    unreadable = {"FleetId": "fleet-2", "TargetCapacitySpecification": None}
    answers = desk.answers(
        {"Fleets": [fleet("fleet-1", "small"), unreadable]}, template("x"), SUBNETS
    )
    code, _, err = desk.adopt("--cluster-name", "analytics", *answers)
    assert (code, err.count("\n")) == (1, 1)
    assert "fleets[0].terraform.launch_template_name: must be 3 to 125 letters" in err
    assert "fleet-2: cannot be read" in err
    assert not (desk.folder / "out").exists()
