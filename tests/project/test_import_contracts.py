"""The import contracts of pyproject.toml fail when they are broken, each in its own way."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINTER = Path(sys.executable).with_name("lint-imports")

pytestmark = pytest.mark.skipif(
    not LINTER.exists(), reason="import-linter is not installed beside this Python: make setup"
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package that tests may break."""
    root = tmp_path_factory.mktemp("tree")
    shutil.copytree(
        ROOT / "reconciler", root / "reconciler", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "pyproject.toml", root)
    return root


def lint(tree: Path, contract: str) -> subprocess.CompletedProcess[str]:
    """Check one contract of the copy."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}  # noqa: TID251 - a child inherits ours
    return subprocess.run(
        [str(LINTER), "--no-cache", "--no-logo", "--contract", contract],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("contract", "module", "line"),
    [
        ("pure-core", "model/units_of_evil.py", "import boto3"),
        ("pure-core", "planner/evil.py", "import time"),
        ("pure-core", "planner/evil.py", "import subprocess"),
        ("pure-core", "ports/evil.py", "import kubernetes"),
        ("pure-core", "planner/evil.py", "import reconciler.machine.garbage"),
        ("planner-is-blind", "planner/evil.py", "import reconciler.ports.clock"),
        ("thin-adapters", "adapters/aws/evil.py", "import reconciler.planner.planner"),
        ("adapters-are-chosen-once", "cli/evil.py", "import reconciler.adapters.files"),
        ("siblings", "adapters/aws/evil.py", "import reconciler.adapters.kubernetes"),
        ("layers", "planner/evil.py", "import reconciler.config.schema"),
    ],
)
def test_contract_broken_on_purpose_fails(
    tree: Path, contract: str, module: str, line: str
) -> None:
    """A contract that nothing can break would let I/O creep into the planner unseen."""
    path = tree / "reconciler" / module
    path.write_text(f'"""Broken on purpose."""\n\n{line}\n')
    try:
        broken = lint(tree, contract)
    finally:
        path.unlink()
    assert broken.returncode != 0, broken.stdout
    assert "BROKEN" in broken.stdout
    assert path.stem in broken.stdout


def test_contracts_of_the_tree_as_it_is_hold(tree: Path) -> None:
    """The copy must pass untouched, or the test above proves nothing."""
    for contract in ("pure-core", "layers", "thin-adapters"):
        kept = lint(tree, contract)
        assert kept.returncode == 0, kept.stdout + kept.stderr
