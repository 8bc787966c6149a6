"""Each policy of the descheduler finds its violation: it goes, and nothing else moves."""

import json

import pytest

from tests.asked import rounds
from tests.e2e.scene import FleetShape, Scene
from tests.e2e.scenes.violations import VIOLATIONS, Violation

QUIET_PLANS = 4
_CONFIG = """\
scale_in: {idle_threshold: 900s, settle_time: 2s, utilization_threshold: 0}
descheduler:
  enabled: true
  interval: 10s
  policies: {POLICY: ARGUMENTS}"""


@pytest.mark.parametrize("violation", VIOLATIONS, ids=lambda violation: violation.policy)
def test_violation_goes_and_nothing_else_moves(
    scene: Scene, closing_lines: list[str], violation: Violation
) -> None:
    """A descheduler that evicts more than it mends is worse than none."""
    arguments = json.dumps({"enabled": True, **violation.arguments})
    config = _CONFIG.replace("POLICY", violation.policy).replace("ARGUMENTS", arguments)
    scene.open(FleetShape(target=3, lowest=violation.lowest), config=config)
    violation.make(scene)
    scene.until(lambda _: violation.gone(scene), "the violation has gone, and all pods run", 120)
    scene.until(lambda _: bool(scene.actions("evict-pod")), "the log tells of the eviction", 60)
    quiet = QUIET_PLANS if violation.comes_back else rounds(QUIET_PLANS, 1800)
    scene.until_planned_again(quiet)
    evicted = scene.actions("evict-pod")
    assert {a["policy"] for a in evicted} == {"deschedule"}
    assert len(evicted) == violation.evictions
    assert violation.gone(scene)
    assert scene.actions("terminate-instance") == []
    assert scene.actions("set-capacity") == []
    closing_lines.append(
        f"descheduler: {violation.policy}: {len(evicted)} evicted, then {quiet} quiet plans"
    )
