"""The history that a metrics store keeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One series at one moment."""

    labels: Mapping[str, str]
    value: float


class MetricsHistory(Protocol):
    """A Prometheus server, or a server with the same API."""

    def query(self, expression: str, at: datetime) -> Sequence[Sample]:
        """Return the value of a PromQL expression at a moment, one sample for each series.

        Raises:
            PortError: It did not answer, or refused the expression.
        """
        ...
