"""In a folder without a rendered root a stage of `ci` says what it looked for, and where."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from reconciler.cli.main import run
from tests.unit.config.documents import COMPLETE

STAGES: dict[str, tuple[str, ...]] = {
    "plan": ("ci", "plan", "--out", "plan"),
    "apply": ("ci", "apply", "--plan", "plan"),
    "finish": ("ci", "finish"),
    "drift": ("ci", "drift"),
    "unlock": ("ci", "unlock", "1234"),
}
NOTHING = (
    "holds no rendered root module: neither fleets.auto.tfvars.json nor .rendered.json is in it"
)
Told = Callable[[Sequence[str], str], str]


@pytest.fixture
def told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Told:
    """What a stage says of a folder, in an empty folder of its own; it fails with exit code 1."""
    monkeypatch.chdir(tmp_path)

    def call(stage: Sequence[str], folder: str) -> str:
        assert run([*stage, "--dir", folder]) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.count("\n") == 1
        return printed.err.removeprefix("error: ").rstrip("\n")

    return call


@pytest.mark.parametrize("stage", STAGES)
def test_folder_without_a_rendered_root_is_reported_before_terraform_starts(
    told: Told, stage: str
) -> None:
    """Terraform's own words are of configuration files, and `finish` found nothing to do."""
    Path("empty").mkdir()
    assert told(STAGES[stage], "empty") == (
        f"empty: {NOTHING} (name the folder that `reconciler render sectors.yaml --out DIR` wrote;"
        " where the second loop renders, it is there after the loop's first commit: git pull)"
    )


def test_folder_of_other_code_is_reported_as_what_it_is(told: Told) -> None:
    """To remove the file, as the guard asks, would be the wrong thing to do there."""
    Path("service").mkdir()
    Path("service/main.tf").write_text("")
    assert told(STAGES["plan"], "service").startswith(f"service: {NOTHING}")


@pytest.mark.parametrize("folder", ["cluster", "cluster/terraform", "cluster/missing"])
def test_config_beside_it_gives_the_command_that_renders(told: Told, folder: str) -> None:
    """The first thing that a new user forgets."""
    Path("cluster/terraform").mkdir(parents=True)
    Path("cluster/sectors.yaml").write_text(COMPLETE)
    out = "cluster/terraform" if folder == "cluster" else folder
    said = told(STAGES["drift"], folder)
    assert said.endswith(f"(reconciler render cluster/sectors.yaml --out {out} writes it)")


def test_root_below_it_is_named(told: Told, capsys: pytest.CaptureFixture[str]) -> None:
    """The folder of the config is given where that of the root belongs."""
    for name in "abcde":
        Path(f"clusters/{name}").mkdir(parents=True)
        Path(f"clusters/{name}/sectors.yaml").write_text(COMPLETE)
        out = f"clusters/{name}/terraform"
        assert run(["render", f"clusters/{name}/sectors.yaml", "--out", out]) == 0
    capsys.readouterr()
    said = told(STAGES["plan"], "clusters/a")
    assert said == f"clusters/a: {NOTHING} (below it there is: --dir clusters/a/terraform)"
    assert told(STAGES["plan"], "clusters").endswith(
        "(below it there is: --dir clusters/a/terraform, --dir clusters/b/terraform,"
        " --dir clusters/c/terraform or 2 more)"
    )


def test_file_is_no_root(told: Told) -> None:
    """As Terraform's option `-chdir` is used with a file by mistake."""
    Path("main.tf").write_text("")
    said = told(STAGES["plan"], "main.tf")
    assert said == "main.tf: is a file, and no folder (name the folder of a root)"
