"""The report of a simulation in Chromium, without a network."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.demand import PodDemand
from reconciler.records.demand import folded
from reconciler.simulation.report import report, report_files
from reconciler.simulation.simulation import Options, Simulation
from tests.browser.chromium import browser, keep_screenshot
from tests.builders import make_fleet_settings, make_settings, make_spec

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def chromium() -> Iterator[Any]:
    """A browser."""
    with browser() as running:
        yield running


@pytest.mark.parametrize("width", [1100, 390])
def test_plots_of_two_configs_have_one_scale(chromium: Any, tmp_path: Path, width: int) -> None:
    """The second config's plot of daily cost was as wide as the page, with large letters."""
    demand = folded([PodDemand(at=AT, id="a", spec=make_spec("1"))])
    results = [
        (name, Simulation(demand, make_settings(make_fleet_settings(price=price)),
                          Options(days=0.02)).run())
        for name, price in (("a", "0.10"), ("b", "0.20"))
    ]  # fmt: skip
    page = tmp_path / "report.html"
    page.write_bytes(report_files(report(results), results)["report.html"])
    context = chromium.new_context(offline=True, viewport={"width": width, "height": 900})
    tab = context.new_page()
    tab.goto(f"file://{page}")
    keep_screenshot(tab, f"report-{width}", full_page=True)
    widths = tab.evaluate(
        """() => [...document.querySelectorAll(".plot")]
          .filter((each) => each.querySelector("h3").textContent === "Cost of each day")
          .map((each) => Math.round(each.getBoundingClientRect().width))"""
    )
    assert len(widths) == 2
    assert widths[0] == widths[1]
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    context.close()
