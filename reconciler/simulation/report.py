"""The files of a report: `report.json`, `report.html`, and the bad moments' snapshots."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from reconciler.simulation.figures import beside, differences, figures
from reconciler.simulation.moments import MomentOpener, snapshot_files
from reconciler.simulation.page import page
from reconciler.simulation.simulation import Result

Json = dict[str, Any]
FORM = orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2
LETTERS = "ab"


def report(
    results: Sequence[tuple[str, Result]],
    peers: Sequence[tuple[Json, Result]] = (),
    **more: Any,
) -> Json:
    """Return the figures of one or two configs.

    Args:
        results: Name of the config and its result.
        peers: Models of other autoscalers, in their form for reports, and their results.
        more: Further parts of the report.
    """
    runs = [figures(result, name) for name, result in results]
    for letter, run in zip(LETTERS, runs, strict=False):
        for number, moment in enumerate(run["moments"], 1):
            moment["snapshot"] = f"moments/{letter}-{number}"
    found: Json = {"format": 1, "runs": runs, **more}
    if len(runs) == 2:
        found["differences"] = differences(*runs)
    if peers:
        models = [{**figures(result, shown["title"]), "model": shown} for shown, result in peers]
        found["peers"] = models
        found["beside_peers"] = beside([*runs, *models])
    return found


def report_files(
    found: Json, results: Sequence[tuple[str, Result]], opens: MomentOpener | None = None
) -> Mapping[str, bytes]:
    """Return every file by its path in the report's directory; equal figures give equal bytes.

    Args:
        found: The figures.
        results: The results that the figures are of.
        opens: Makes the commands that open the worst moments.
    """
    files = {
        "report.json": orjson.dumps(found, option=FORM) + b"\n",
        "report.html": page(found, opens).encode("utf-8", "backslashreplace"),
    }
    for letter, (_, result) in zip(LETTERS, results, strict=False):
        for number, moment in enumerate(result.history.moments, 1):
            for name, body in snapshot_files(moment.snapshot).items():
                files[f"moments/{letter}-{number}/{name}"] = body
    return files
