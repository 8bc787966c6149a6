"""docs/names.md has every annotation, Event and code of the program, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from reconciler.cli import main
from reconciler.loops.reason_words import REFUSALS
from reconciler.loops.reporters.refusal_events import REASON
from reconciler.web.causes.cause import CauseKind

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "reconciler"
OURS = re.compile(r"fleet-reconciler\.io/[a-z-]+")
OF_A_CODE = {"Blocker": 0, "block": 1}
"""Functions that are given the code of a node that stays, and at which place."""
OF_A_POD = ("_why_never_demand", "_unserved")
"""Functions of planner/demand.py that return the code of a pod that is left out."""
TOLD_BY = {"_emit_pod", "_emit_node", "pod_event"}
"""Functions whose second argument is the reason of an Event."""
PAGES_OF_KEPT = ("names.md", "why-a-node-stays.md", "descheduler.md", "spot-rescheduler.md")


def section(page: str, heading: str) -> str:
    """The text under a heading of the page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def cells(text: str, column: int) -> list[str]:
    """The code words in one column of the section's table."""
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")]
    return [word for row in rows for word in re.findall(r"`([^`]+)`", row[column])]


def trees() -> Iterator[ast.Module]:
    """Every module of the package."""
    for file in sorted(PACKAGE.rglob("*.py")):
        yield ast.parse(file.read_text(encoding="utf-8"))


def texts(node: ast.AST) -> set[str]:
    """The texts that are written in a tree."""
    return {
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    }


def test_every_annotation_and_taint_is_listed_and_no_other() -> None:
    """Whoever finds one on a node looks it up."""
    written = {text for tree in trees() for text in texts(tree) if OURS.fullmatch(text)}
    assert sorted(cells(section("names.md", "Annotations and taints"), 0)) == sorted(written)


def reasons_of_events() -> Iterator[str]:
    """What the reporters give as the reason of an Event."""
    yield REASON
    tree = ast.parse((PACKAGE / "loops/reporters/event_reporter.py").read_text(encoding="utf-8"))
    for call in (each for each in ast.walk(tree) if isinstance(each, ast.Call)):
        for keyword in call.keywords:
            if keyword.arg == "reason":
                yield from texts(keyword.value)
        if getattr(call.func, "attr", getattr(call.func, "id", "")) in TOLD_BY:
            yield from texts(call.args[1])


def test_every_event_is_listed_and_no_other() -> None:
    """`kubectl get events` shows the reason; its meaning is looked up."""
    listed = set(cells(section("names.md", "Events"), 1))
    assert sorted(listed) == sorted(set(reasons_of_events()))


def test_every_code_of_a_pod_that_waits_is_listed_and_no_other() -> None:
    """Alerts and tools are written against them."""
    listed = cells(section("names.md", "Why a pod waits"), 0)
    assert listed == list(REFUSALS)


def codes_that_are_left_out() -> Iterator[str]:
    """What the program gives as the code of an object that a plan does not use."""
    for tree in trees():
        for call in (each for each in ast.walk(tree) if isinstance(each, ast.Call)):
            if getattr(call.func, "id", "") == "Ignored":
                stated = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
                yield from (text for value in stated for text in texts(value))
    demand = ast.parse((PACKAGE / "planner/demand.py").read_text(encoding="utf-8"))
    for function in (each for each in ast.walk(demand) if isinstance(each, ast.FunctionDef)):
        if function.name in OF_A_POD:
            for given in (each for each in ast.walk(function) if isinstance(each, ast.Return)):
                yield from filter(None, texts(given))


def test_every_code_of_what_a_plan_leaves_out_is_listed_and_no_other() -> None:
    """Why a pod is in `ignored` is the first thing that is looked up."""
    listed = cells(section("names.md", "What a plan leaves out"), 0)
    assert sorted(listed) == sorted(set(codes_that_are_left_out()))


def test_every_cause_of_a_verdict_is_listed_and_no_other() -> None:
    """The first line of the status page is what is searched for."""
    rows = [row for row in section("status.md", "The first line").splitlines() if row[:1] == "|"]
    listed = [code for row in rows for code in re.findall(r"\(`([a-z0-9-]+)`\)", row)]
    assert sorted(listed) == sorted(get_args(CauseKind))


def codes_of_nodes() -> Iterator[str]:
    """The codes with which the planner says why a node stays."""
    for tree in trees():
        for call in (each for each in ast.walk(tree) if isinstance(each, ast.Call)):
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            place = OF_A_CODE.get(name)
            if place is not None and len(call.args) > place:
                code = call.args[place]
                if isinstance(code, ast.Constant) and re.fullmatch(r"[a-z-]+", str(code.value)):
                    yield str(code.value)


def test_every_code_of_a_node_that_stays_is_explained() -> None:
    """`kept` is read by people at night."""
    pages = "".join((DOCS / page).read_text(encoding="utf-8") for page in PAGES_OF_KEPT)
    assert [code for code in sorted(set(codes_of_nodes())) if f"`{code}`" not in pages] == []


def test_codes_that_are_listed_for_nodes_exist() -> None:
    """A code that nothing gives any more is looked for in vain."""
    written = {text for tree in trees() for text in texts(tree)}
    listed = cells(section("names.md", "Why a node stays"), 0)
    listed += cells(section("why-a-node-stays.md", "The codes"), 0)
    listed += cells(section("why-a-node-stays.md", "What may be moved"), 0)
    assert [code for code in listed if code not in written] == []


def test_every_exit_code_is_listed_and_no_other() -> None:
    """Scripts branch on them."""
    page = (DOCS / "cli.md").read_text(encoding="utf-8").partition("\n## ")[0]
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    ours = {value for name, value in vars(main).items() if name.startswith("EXIT_")}
    assert listed == {0, *ours}
