"""Lines of selectors that count how often they are compared: work is counted, never timed."""

from collections.abc import Mapping
from typing import ClassVar

from typing_extensions import override

from reconciler.model.selectors import Requirement


class CountedLine(Requirement):
    """A line of a selector; `compared` counts comparisons of all of them."""

    __slots__ = ()
    compared: ClassVar[int] = 0

    @override
    def matches(self, labels: Mapping[str, str]) -> bool:
        CountedLine.compared += 1
        return Requirement.matches(self, labels)
