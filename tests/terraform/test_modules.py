"""Each module by itself: format, validity, its own tests, its README."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.terraform.program import TerraformProgram, find_terraform
from tests.terraform.readme_tables import MODULES, module_folders, with_tables

MODULE_NAMES = [path.name for path in module_folders()]
TEST_FILES = sorted(str(path.relative_to(MODULES)) for path in MODULES.glob("*/tests/*.tftest.hcl"))


@pytest.fixture(scope="module")
def terraform() -> TerraformProgram:
    """The program, or a skipped test."""
    return find_terraform()


@pytest.fixture(scope="module")
def initialised(
    terraform: TerraformProgram, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """A copy of the modules in which the named one is initialised, once for all tests."""
    copy = tmp_path_factory.mktemp("modules") / "terraform"
    shutil.copytree(MODULES, copy, ignore=shutil.ignore_patterns(".terraform*"))
    ready: set[str] = set()

    def initialise(name: str) -> Path:
        if name not in ready:
            terraform.init(copy / name)
            ready.add(name)
        return copy / name

    return initialise


@pytest.mark.terraform
def test_modules_are_formatted(terraform: TerraformProgram) -> None:
    """An unformatted module makes every later change look larger than it is."""
    done = terraform.run(MODULES, "fmt", "-check", "-recursive", "-diff")
    assert done.returncode == 0, done.stdout


@pytest.mark.terraform
@pytest.mark.parametrize("name", MODULE_NAMES)
def test_module_is_valid(
    name: str, terraform: TerraformProgram, initialised: Callable[[str], Path]
) -> None:
    """A module that does not validate stops every plan of every user."""
    done = terraform.run(initialised(name), "validate")
    assert done.returncode == 0, done.stderr


@pytest.mark.terraform
@pytest.mark.parametrize(
    "test_file",
    [
        pytest.param(each, marks=pytest.mark.nightly if "eks_fleet/tests/rules_" in each else ())
        for each in TEST_FILES
    ],
)
def test_module_passes_its_own_tests(
    test_file: str, terraform: TerraformProgram, initialised: Callable[[str], Path]
) -> None:
    """A rule that no longer holds lets a dangerous fleet through to EC2."""
    name, _, inside = test_file.partition("/")
    done = terraform.run(initialised(name), "test", f"-filter={inside}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout


@pytest.mark.parametrize("module", module_folders(), ids=lambda path: path.name)
def test_module_readme_tables_are_up_to_date(module: Path) -> None:
    """A variable that the README does not show, or shows wrongly, sends its users astray."""
    readme = (module / "README.md").read_text("utf-8")
    assert readme == with_tables(readme, module), "run python -m tests.terraform.readme_tables"
