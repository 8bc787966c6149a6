"""`reconciler status` on a narrow terminal: what is read at a glance stays on one line."""

import io
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

from rich.console import Console

from reconciler.cli.views.status import view_of
from tests.builders import AWAY, make_pod
from tests.unit.web.scene import Scene, bought, fleet, raised, unplaced

FLEET = "primary-medium-us-west-2a"


def status_of(scene: Scene) -> dict[str, Any]:
    """A status with a line in each table, at a time that is no whole second."""
    scene.clock.advance(12.345678)
    pod = make_pod("new", created_at=scene.clock.now() - timedelta(seconds=90.5))
    scene.cycle(
        raised(),
        pods=(pod,),
        placements=(bought(pod),),
        unplaceable=(unplaced("giant", "max-capacity"),),
        fleets=(fleet(), replace(fleet(), fleet=FLEET)),
    )
    return dict(json.loads(scene.ask("/api/status")[2]))


def shown(status: dict[str, Any], width: int) -> str:
    """What a terminal of that width shows."""
    out = io.StringIO()
    Console(file=out, width=width, markup=False).print(view_of(status))
    return out.getvalue()


def test_names_and_times_stay_whole_at_80_columns() -> None:
    """Names that are broken in two are neither read nor copied."""
    with Scene() as scene:
        text = shown(status_of(scene), 80)
    lines = text.splitlines()
    assert any(line.startswith(f"{FLEET}  active  ") for line in lines)
    assert any(
        line.startswith("12:00:12      set-capacity  primary-small  applied") for line in lines
    )
    assert "last success 2026-01-31T12:00:12Z" in text
    assert "345678" not in text
    assert max(map(len, lines)) <= 80


def test_columns_that_say_nothing_take_no_room() -> None:
    """One region for all fleets, and no notes, are the usual case."""
    with Scene() as scene:
        status = status_of(scene)
    assert not {"REGION", "NOTE"} & set(shown(status, 80).split())
    status["fleets"][0] |= {"region": "us-east-1", "unavailable": "cools off"}
    assert {"REGION", "NOTE"} <= set(shown(status, 80).split())


def test_last_actions_on_fleets_of_one_name_name_their_regions() -> None:
    """Two equal lines do not say that one of the regions refuses."""
    with Scene() as scene:
        scene.cycle(raised("failed"), raised(region=AWAY), fleets=(fleet(),))
        status = json.loads(scene.ask("/api/status")[2])
    text = shown(status, 200)
    rows = [line.split()[1:5] for line in text.splitlines() if "set-capacity  " in line]
    assert rows == [
        ["set-capacity", "primary-small", "us-east-1", "applied"],
        ["set-capacity", "primary-small", "us-west-2", "failed"],
    ]
    assert "set-capacity primary-small in us-west-2: no cause was given" in text


def test_time_of_another_day_names_the_day() -> None:
    """An action of last night is none of a minute ago."""
    with Scene() as scene:
        status = status_of(scene)
    status["actions"][0]["at"] = "2026-01-30T23:59:00Z"
    assert "01-30 23:59   set-capacity" in shown(status, 80)


def test_nothing_is_cut_however_narrow_it_is() -> None:
    """What does not fit is folded."""
    with Scene() as scene:
        text = shown(status_of(scene), 60)
    assert "…" not in text
    assert FLEET in "".join(line[:9].strip() for line in text.splitlines())
