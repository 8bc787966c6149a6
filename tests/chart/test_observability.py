"""Alerts and dashboards ask for metrics and labels that the program has."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chart.rules import FILES, alerts

ROOT = Path(__file__).parents[2]
METRIC = re.compile(r"\b(fleet_reconciler_\w+)")
_SUFFIXES = re.compile(r"_(bucket|sum|count)$")
_ANYWHERE = {"le", "pod", "namespace", "job", "instance"}
"""Labels that a histogram or the scrape adds."""


def documented() -> dict[str, str]:
    """The rows of docs/metrics.md by metric; what is exported is compared with them elsewhere."""
    text = (ROOT / "docs/metrics.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `fleet_reconciler_")]
    return {name: row for row in rows for name in METRIC.findall(row.split("|")[1])}


def expressions() -> Iterator[tuple[str, str]]:
    """Each expression, with the place where it stands."""
    for rule in alerts():
        yield f"alert {rule['alert']}", str(rule["expr"])
    for file in sorted((FILES / "dashboards").glob("*.json")):
        for panel in json.loads(file.read_text())["panels"]:
            for target in panel["targets"]:
                yield f"{file.name}: {panel['title']}", target["expr"]


def test_every_expression_asks_for_a_metric_that_exists() -> None:
    """An empty panel looks like a quiet cluster, and an alert on nothing never fires."""
    known = documented()
    for place, expression in expressions():
        names = METRIC.findall(expression)
        assert names, place
        for name in names:
            exists = name in known or _SUFFIXES.sub("", name) in known
            assert exists or name.startswith("fleet_reconciler_process_"), f"{place}: {name}"


def test_every_label_of_an_expression_is_one_of_its_metrics() -> None:
    """A sum by a label that no series has puts everything into one."""
    known = documented()
    for place, expression in expressions():
        rows = " ".join(known.get(_SUFFIXES.sub("", n), "") for n in METRIC.findall(expression))
        grouped = re.findall(r"by \(([^)]*)\)", expression)
        selected = re.findall(r"[{,](\w+)=", expression)
        for label in [*selected, *(each.strip() for part in grouped for each in part.split(","))]:
            assert label in _ANYWHERE or f"`{label}`" in rows, f"{place}: {label}"


def panels() -> Iterator[tuple[str, str]]:
    """The expressions of the dashboards."""
    return (expression for expression in expressions() if not expression[0].startswith("alert "))


def test_largest_value_of_a_panel_is_taken_over_replicas_alone() -> None:
    """Of a fleet in two regions one would be shown, and the other be nowhere."""
    known = documented()
    for place, expression in panels():
        for labels, name in re.findall(
            r"\b(?:max|min)(?: by \(([^)]*)\))? ?\((fleet_reconciler_\w+)\)", expression
        ):
            kept = {each.strip() for each in labels.split(",")}
            has = set(re.findall(r"`(\w+)`", known[name].split("|")[2]))
            assert has <= kept, f"{place}: {expression}"


def test_panels_show_the_replica_that_fails_and_count_no_pod_twice() -> None:
    """A leader that is stuck would hide behind its standby, and a pod has a code per fleet."""
    for place, expression in panels():
        assert "min(fleet_reconciler_last_success_age_seconds" not in expression, place
        assert not re.search(r"sum\(.*fleet_reconciler_pods_unplaceable", expression), place


def test_every_alert_has_a_severity_and_a_section_that_says_what_to_do() -> None:
    """At 3 a.m. a name is not enough."""
    headings = re.findall(r"^## (\w+)$", (ROOT / "docs/alerts.md").read_text(), re.MULTILINE)
    assert [rule["alert"] for rule in alerts()] == headings
    for rule in alerts():
        notes, labels = rule["annotations"], rule["labels"]
        assert isinstance(notes, dict)
        assert isinstance(labels, dict)
        assert labels["severity"] in {"info", "warning", "critical"}
        assert notes["runbook"] == f"docs/alerts.md#{str(rule['alert']).lower()}"
        assert notes["summary"]


@pytest.mark.parametrize("name", ["overview", "pending", "cost", "second-loop"])
def test_panels_of_a_dashboard_do_not_overlap(name: str) -> None:
    """Grafana moves panels that overlap to places where they are not looked for."""
    board = json.loads((FILES / "dashboards" / f"{name}.json").read_text())
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        columns = range(place["x"], place["x"] + place["w"])
        cells = {(x, y) for x in columns for y in range(place["y"], place["y"] + place["h"])}
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells
