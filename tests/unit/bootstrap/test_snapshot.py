"""A snapshot's folder: what is written into it, and what it has already."""

from pathlib import Path

from reconciler.bootstrap.snapshot import write_snapshot
from reconciler.records.snapshot import cloud_snapshot_files
from tests.builders import AWAY

FLEET = "fleet-0a1b2c3d-1111-2222-3333-444455556666"


def test_files_of_others_stay_in_the_folder_of_a_snapshot(tmp_path: Path) -> None:
    """`--out .` in a folder with manifests: `aws-auth.json` is no snapshot of a region."""
    others = ("aws-auth.json", "aws-load-balancer-controller.json", "aws-us-west-2.json.bak")
    for name in others:
        (tmp_path / name).write_text("mine")
    write_snapshot({"cluster.json": b"{}", "aws-us-west-2.json": b"{}"}, tmp_path)
    found = {each.name for each in tmp_path.iterdir()}
    assert found == {*others, "cluster.json", "aws-us-west-2.json"}


def test_files_of_an_older_snapshot_are_removed(tmp_path: Path) -> None:
    """`plan --aws today/aws-*.json` would read the fleets of a region that is not used any more."""
    history = {"FleetId": FLEET, "HistoryRecords": []}
    active = {"FleetId": FLEET, "ActiveInstances": []}
    older = cloud_snapshot_files(AWAY, ({"Fleets": []}, history, active))
    assert len(older) == 3
    write_snapshot({"cluster.json": b"{}", **older}, tmp_path)
    write_snapshot({"cluster.json": b"{}", "aws-us-west-2.json": b"{}"}, tmp_path)
    assert {each.name for each in tmp_path.iterdir()} == {"cluster.json", "aws-us-west-2.json"}
