"""Drain rules: whether a pod may be moved voluntarily. One file per rule, combined in `rule_on`.

Everything that moves pods without need asks them; forced disruptions do not.
"""

from reconciler.planner.rules.annotations import forbidding
from reconciler.planner.rules.irreplaceable import first_irreplaceable
from reconciler.planner.rules.ruling import Judge, judge_of, rule_on, rule_on_failed
from reconciler.planner.rules.tolerations import comes_back
from reconciler.planner.rules.verdict import Ruling, Subject, Terms, Verdict

__all__ = [
    "Judge",
    "Ruling",
    "Subject",
    "Terms",
    "Verdict",
    "comes_back",
    "first_irreplaceable",
    "forbidding",
    "judge_of",
    "rule_on",
    "rule_on_failed",
]
