"""Each policy of the descheduler finds its violation: it goes, and nothing else moves."""

import json
import time

import pytest

from tests.e2e.scene import FleetShape, Scene
from tests.e2e.scenes.violations import VIOLATIONS, Violation, tidy
from tests.full_proofs import rounds

QUIET_PLANS = 4
QUIET_MINUTES = rounds(0, 30)
_LEFT_OUT = frozenset({"PodLifeTime", "HighNodeUtilization"})
"""Time alone violates the first again; the second is the opposite of LowNodeUtilization."""
_USUAL = frozenset(
    {
        "RemoveDuplicates",
        "LowNodeUtilization",
        "RemovePodsViolatingTopologySpreadConstraint",
    }
)
"""The policies with the most to decide; the others go the same way, in `make nightly`."""
_CONFIG = """\
scale_in: {idle_threshold: 900s, settle_time: 2s, utilization_threshold: 0}
descheduler:
  enabled: true
  interval: 10s
  policies: {POLICY: ARGUMENTS}"""


@pytest.mark.parametrize(
    "violation",
    [
        pytest.param(each, marks=() if each.policy in _USUAL else pytest.mark.nightly)
        for each in VIOLATIONS
    ],
    ids=lambda violation: violation.policy,
)
def test_violation_goes_and_nothing_else_moves(
    scene: Scene, closing_lines: list[str], violation: Violation
) -> None:
    """A descheduler that evicts more than it fixes is worse than none."""
    arguments = json.dumps({"enabled": True, **violation.arguments})
    config = _CONFIG.replace("POLICY", violation.policy).replace("ARGUMENTS", arguments)
    scene.open(FleetShape(target=3, lowest=violation.lowest), config=config)
    violation.make(scene)
    scene.until(lambda _: violation.gone(scene), "the violation has gone, and all pods run", 120)
    scene.until(lambda _: bool(scene.actions("evict-pod")), "the log tells of the eviction", 60)
    scene.until_planned_again(QUIET_PLANS)
    evicted = scene.actions("evict-pod")
    assert {a["policy"] for a in evicted} == {"deschedule"}
    assert len(evicted) == violation.evictions
    assert violation.gone(scene)
    assert scene.actions("terminate-instance") == []
    assert scene.actions("set-capacity") == []
    closing_lines.append(
        f"descheduler: {violation.policy}: {len(evicted)} evicted, then {QUIET_PLANS} quiet plans"
    )


@pytest.mark.skipif(not QUIET_MINUTES, reason="half an hour of quiet: RECONCILER_FULL_PROOFS=1")
@pytest.mark.timeout(0)
def test_all_policies_together_come_to_rest(scene: Scene, closing_lines: list[str]) -> None:
    """What one policy moves, another one could move back for as long as the cluster exists."""
    together = [each for each in VIOLATIONS if each.policy not in _LEFT_OUT]
    arguments = {each.policy: {"enabled": True, **each.arguments} for each in together}
    config = _CONFIG.replace("{POLICY: ARGUMENTS}", json.dumps(arguments))
    scene.open(FleetShape(target=3, lowest=3), config=config)
    for number, violation in enumerate(together):
        if number:
            tidy(scene)
        violation.make(scene)
        until_gone(scene, violation)
    moved = len(scene.actions("evict-pod"))
    settled = until_no_eviction(scene)
    began = time.monotonic()
    while time.monotonic() - began < 60 * QUIET_MINUTES:
        scene.until_planned_again(QUIET_PLANS)
    assert len(scene.actions("evict-pod")) == settled
    assert scene.actions("terminate-instance") == []
    assert scene.actions("set-capacity") == []
    closing_lines.append(
        f"descheduler: {len(together)} policies together: {moved} evicted, {settled} until the end "
        f"of the last one's turn, then {QUIET_MINUTES} quiet minutes"
    )


def until_gone(scene: Scene, violation: Violation) -> None:
    """Wait until the violation has gone, and all pods run."""
    scene.until(lambda _: violation.gone(scene), f"{violation.policy} is violated no more", 180)


def until_no_eviction(scene: Scene) -> int:
    """How many evictions there were when a whole interval went by without one."""
    while True:
        before = len(scene.actions("evict-pod"))
        scene.until_planned_again(20)  # two intervals of the descheduler
        if len(scene.actions("evict-pod")) == before:
            return before
