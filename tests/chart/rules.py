"""The alerts that the chart installs."""

from pathlib import Path

import yaml

FILES = Path(__file__).parents[2] / "charts/fleet-reconciler/files"


def alerts() -> list[dict[str, object]]:
    """The rules of the file."""
    groups = yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]
