"""Every rule of a module has a run that it rejects, beside one that it accepts."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.terraform.readme_tables import module_folders

by_module = pytest.mark.parametrize("module", module_folders(), ids=lambda path: path.name)
_VARIABLE = re.compile(r'^variable "(\w+)" \{\n(.*?)^\}', re.MULTILINE | re.DOTALL)
_RUN = re.compile(r'^run "(\w+)" \{\n(.*?)^\}', re.MULTILINE | re.DOTALL)


def texts_of(module: Path, pattern: str) -> str:
    """All files of the module that match, as one text; links are tested with their target."""
    own = (path for path in sorted(module.glob(pattern)) if not path.is_symlink())
    return "\n".join(path.read_text("utf-8") for path in own)


@by_module
def test_each_validation_has_a_run_that_it_rejects(module: Path) -> None:
    """A rule that no test breaks can be lost without anybody noticing."""
    rules = {
        name: body.count("\n  validation {")
        for name, body in _VARIABLE.findall(texts_of(module, "*.tf"))
    }
    rejected: Counter[str] = Counter()
    for _, body in _RUN.findall(texts_of(module, "tests/*.tftest.hcl")):
        rejected.update(re.findall(r"expect_failures = \[var\.(\w+)\]", body))
    untested = {name: count for name, count in rules.items() if rejected[name] < count}
    assert untested == {}


@by_module
def test_each_precondition_has_a_run_that_it_rejects(module: Path) -> None:
    """A limit of EC2 that is checked too late fails half-way through an apply."""
    preconditions = texts_of(module, "*.tf").count(" precondition {")
    runs = _RUN.findall(texts_of(module, "tests/*.tftest.hcl"))
    assert sum("expect_failures = [aws_" in body for _, body in runs) >= preconditions


@by_module
def test_each_variable_with_a_rule_has_a_run_that_it_accepts(module: Path) -> None:
    """A rule that rejects everything passes its own rejecting run."""
    ruled = {n for n, b in _VARIABLE.findall(texts_of(module, "*.tf")) if "validation {" in b}
    accepted: set[str] = set()
    for name, body in _RUN.findall(texts_of(module, "tests/*.tftest.hcl")):
        if name.startswith("accepts_"):
            accepted.update(re.findall(r"^    (\w+)\s+=", body, re.MULTILINE))
    assert ruled - accepted == set()
