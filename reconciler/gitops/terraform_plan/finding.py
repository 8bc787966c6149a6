"""One thing that a reader of a plan, or the pipeline, must know; pure."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Finding:
    """States one thing that a reader, or the pipeline, must know."""

    severity: Literal["refused", "warning"]
    code: str
    where: str
    message: str


def refused(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings that forbid an apply."""
    return tuple(finding for finding in findings if finding.severity == "refused")


def refusal(code: str, where: str, message: str) -> Finding:
    """Return a finding with which the plan must not be applied."""
    return Finding(severity="refused", code=code, where=where, message=message)


def warning(code: str, where: str, message: str) -> Finding:
    """Return a finding that a reviewer should know, and that stops nothing."""
    return Finding(severity="warning", code=code, where=where, message=message)
