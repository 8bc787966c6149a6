"""`reconciler render` as its users call it."""

import json
import os
from pathlib import Path

import pytest

from reconciler.cli.main import run
from reconciler.gitops.rendering.render import TFVARS

CONFIG = """
regions: [us-west-2]
sectors:
  primary:
    kind: memory
    fleets:
    - {size: small, min_capacity: 2}
    - {size: large, provider: asg, auto_scaling_group: workers, managed: false}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config that names no cluster."""
    path = tmp_path / "sectors.yaml"
    path.write_text(CONFIG)
    return path


def test_render_command_writes_and_says_what_changed(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever commits the folder needs to know what is new in it."""
    out = tmp_path / "out"
    call = ["render", "--config", str(config), "--cluster-name", "a", "--out", str(out)]
    assert run(call) == 0
    first = json.loads(capsys.readouterr().out)
    assert "fleets.auto.tfvars.json" in first["created"]
    assert first["left_out"] == {"primary-large": "managed: false leaves it to whoever made it"}
    config.write_text(CONFIG.replace("2}", "3}"))
    assert run([*call, "--output", "table"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed == [
        "updated  fleets.auto.tfvars.json",
        "left out fleet primary-large: managed: false leaves it to whoever made it",
        f"{out}: {len(first['created']) - 1} files unchanged",
    ]


def test_render_command_without_a_cluster_name_is_wrong_usage(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A migrated config names no cluster: the message must say what to give."""
    assert run(["render", "--config", str(config), "--out", str(tmp_path / "out")]) == 2
    assert "--cluster-name" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_render_command_keeps_the_name_that_a_folder_was_rendered_with(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The pipeline of every pull request renders so, and nobody there could give the name."""
    call = ["render", "--config", str(config), "--out", str(tmp_path / "out")]
    assert run([*call, "--cluster-name", "blue"]) == 0
    capsys.readouterr()
    assert run(call) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["updated"], told["created"]) == ([], [])


def test_render_command_of_an_invalid_config_writes_nothing(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half a render of a broken config would be committed and planned."""
    config.write_text(CONFIG.replace("kind: memory", "kind: nonsense"))
    call = ["render", "--config", str(config), "--cluster-name", "a"]
    assert run([*call, "--out", str(tmp_path / "out")]) == 2
    assert "sector/kind" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


TWO_REGIONS = """
cluster: a
regions: [us-west-2]
terraform:
  by_region: {us-east-1: {private_subnet_ids: {us-east-1a: subnet-1}}}
sectors: {s: {kind: cpu, fleets: [{size: small}, {size: large, regions: [us-east-1]}]}}
"""


@pytest.mark.parametrize("out", ["infra", "infra/", "."])
def test_further_region_is_rendered_beside_the_home_region(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its fleets would be missing, or in a folder that nobody looks into."""
    home = tmp_path / "infra"
    home.mkdir()
    monkeypatch.chdir(home if out == "." else tmp_path)
    config = tmp_path / "sectors.yaml"
    required = "{ami: ami-1, security_group_id: sg-1, private_subnet_ids: "
    text = TWO_REGIONS.replace("{private_subnet_ids: {us-east", required + "{us-east")
    text = text.replace("terraform:\n", "terraform:\n  ami: ami-1\n  security_group_id: sg-1\n")
    text = text.replace("  by_region", "  private_subnet_ids: {us-west-2a: subnet-2}\n  by_region")
    config.write_text(text)
    call = ["render", "--config", str(config), "--out", out, "--output", "json"]
    assert run(call) == 0
    printed = json.loads(capsys.readouterr().out)
    assert "main.tf" in printed["created"]
    assert "main.tf" in printed["regions"]["us-east-1"]["created"]
    east = json.loads((tmp_path / "infra-us-east-1" / TFVARS).read_text())
    assert list(east["fleets"]) == ["s-large"]
    assert list(json.loads((home / TFVARS).read_text())["fleets"]) == ["s-small"]
    config.write_text(text.partition(", {size: large")[0] + "]}}\n")
    assert run(call) == 0
    assert json.loads((tmp_path / "infra-us-east-1" / TFVARS).read_text())["fleets"] == {}


@pytest.mark.parametrize("path", ["main.tf", ".rendered.json", "fleets.auto.tfvars.json"])
def test_pipe_where_a_file_is_rendered_is_refused(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    """Nobody writes into it: reading what is there now would never end."""
    out = tmp_path / "out"
    out.mkdir()
    os.mkfifo(out / path)
    call = ["render", "--config", str(config), "--out", str(out)]
    assert run([*call, "--cluster-name", "a"]) == 2
    error = capsys.readouterr().err
    assert f"{out / path}: is not a plain file, and one is rendered there (move it away)" in error
    assert run(call) == 2
    assert sorted(each.name for each in out.iterdir()) == [path]


ONE_FLEET_IN_TWO_REGIONS = """
cluster: wide
regions: [us-west-2, us-east-1]
terraform: {ami: al2023@latest, subnet_tags: {a: b}, security_group_tags: {a: b}}
sectors: {primary: {kind: memory, fleets: [{size: small, regions: [us-west-2, us-east-1]}]}}
"""


@pytest.mark.parametrize("rendered", [False, True])
def test_render_command_into_a_further_regions_folder_renders_every_region_in_its_own(
    config: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    rendered: bool,
) -> None:
    """The job of a pull request names the root that it plans, which would be the home region's."""
    config.write_text(ONE_FLEET_IN_TWO_REGIONS)
    call = ["render", "--config", str(config), "--out"]
    if rendered:
        assert run([*call, str(tmp_path / "out")]) == 0
    assert run([*call, str(tmp_path / "out-us-east-1")]) == 0
    capsys.readouterr()
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [
        "out",
        "out-us-east-1",
    ]
    for name, region in (("out", "us-west-2"), ("out-us-east-1", "us-east-1")):
        assert f'region = "{region}"' in (tmp_path / name / "main.tf").read_text()


def test_render_command_into_a_home_folder_with_a_regions_name_stays_there(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder per region of somebody's own is no further root of ours."""
    config.write_text(ONE_FLEET_IN_TWO_REGIONS.replace("[us-west-2, us-east-1]", "[us-west-2]"))
    assert run(["render", "--config", str(config), "--out", str(tmp_path / "of-us-east-1")]) == 0
    capsys.readouterr()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["of-us-east-1"]


REGIONS = """
cluster: a
regions: [us-west-2, eu-west-1]
terraform:
  by_region: {eu-west-1: {}}
sectors:
  primary:
    kind: memory
    fleets:
    - {size: small, min_capacity: 2}
"""


@pytest.mark.parametrize("target", ["for-another-region", "boo-eu-west-1"])
def test_render_command_reads_nothing_behind_a_link_of_the_repository(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The link's target decided what was said of it, and which folders beside it were written."""
    repository, outside = tmp_path / "repository", tmp_path / target
    (repository / ".git").mkdir(parents=True)
    config = repository / "sectors.yaml"
    config.write_text(CONFIG.replace("us-west-2", "eu-west-1"))
    call = ["render", "--config", str(config), "--cluster-name", "a", "--out"]
    assert run([*call, str(outside)]) == 0
    capsys.readouterr()
    config.write_text(REGIONS)
    (repository / "terraform").symlink_to(outside)
    assert run([*call, str(repository / "terraform")]) == 1
    assert "terraform: is a symbolic link" in capsys.readouterr().err
    assert sorted(each.name for each in repository.iterdir()) == [
        ".git",
        "sectors.yaml",
        "terraform",
    ]


@pytest.mark.parametrize("file", ["a\0b/c", "a\ud800b/c"])
def test_render_command_refuses_a_manifest_with_odd_paths(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    """The job of a pull request said `ValueError … run again with -vvv`."""
    out = tmp_path / "out"
    out.mkdir()
    (out / ".rendered.json").write_text(json.dumps({"files": [file]}))
    call = ["render", "--config", str(config), "--cluster-name", "one", "--out", str(out)]
    assert run(call) == 2
    assert "names files outside of its folder" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["not a name ${x}", "\ud800"])
def test_render_command_takes_no_odd_cluster_name_from_an_older_render(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """It would reach each tag, and the role of the pipeline."""
    out = tmp_path / "out"
    out.mkdir()
    (out / ".rendered.json").write_text(json.dumps({"files": [TFVARS]}))
    (out / TFVARS).write_text(json.dumps({"cluster_name": name, "fleets": {}}))
    assert run(["render", "--config", str(config), "--out", str(out)]) == 2
    assert "--cluster-name" in capsys.readouterr().err
