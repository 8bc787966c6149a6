"""Drain rules: may this pod be moved voluntarily? One file per rule, folded in `fold`.

They hold for scale-in, consolidation, the rescheduler and the descheduler alike (behaviour,
section 5); forced departures do not ask them.
"""

from reconciler.planner.rules.annotations import forbidding
from reconciler.planner.rules.fold import Judge, fold
from reconciler.planner.rules.verdict import Ruling, Subject, Terms, Verdict

__all__ = ["Judge", "Ruling", "Subject", "Terms", "Verdict", "fold", "forbidding"]
