"""Finds the machine's Chromium and drives it; says why it cannot where there is none."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VARIABLE = "RECONCILER_CHROMIUM"
SCREENSHOTS = "RECONCILER_SCREENSHOTS"
"""A directory: the tests leave what they saw there, for people to look at."""
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def executable() -> str:
    """The browser to use; skips the test where the machine has none."""
    named = os.environ.get(VARIABLE, "")  # noqa: TID251 - a switch of the tests alone
    found = named or next(filter(None, map(shutil.which, NAMES)), "")
    if not found:
        pytest.skip(f"no Chromium on the PATH (apt-get install chromium, or set {VARIABLE})")
    return found


@contextmanager
def browser() -> Iterator[Any]:
    """A headless browser with a profile of its own."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = executable()
    with driver.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        try:
            yield running
        finally:
            running.close()


def keep_screenshot(tab: Any, name: str, **how: Any) -> None:
    """Leave a picture of the page where the environment asks for it; `how` is Playwright's."""
    folder = os.environ.get(SCREENSHOTS, "")  # noqa: TID251 - a switch of the tests alone
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        tab.screenshot(path=str(Path(folder) / f"{name}.png"), **how)


CONTRAST = """() => {
  const channel = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const found = numbers(getComputedStyle(e).backgroundColor);
      if (found.length < 4 || found[3] === 1) { return found; }
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    const box = element.getBoundingClientRect();
    if (!own || !box.width || ["SCRIPT", "STYLE"].includes(element.tagName)) { continue; }
    const style = getComputedStyle(element);
    const colour = numbers(element instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [luminance(colour), luminance(behind(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) { poor.push(`${element.tagName} ${element.textContent.slice(0, 40)}: ${ratio.toFixed(2)}`); }
  }
  return poor;
}"""  # noqa: E501 - JavaScript
"""Texts whose contrast is below WCAG 2.2 AA (success criterion 1.4.3)."""
