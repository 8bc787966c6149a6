"""Label and node selectors with the semantics of k8s.io/apimachinery and component-helpers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from reconciler.model.frozen import NO_LABELS, Labels

_DIGITS_MAX = 63
"""The maximum length of a label's value."""
NAME = "metadata.name"
"""The one field of a node that selectors may read."""
Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]


def _as_int(text: str) -> int | None:
    """Parse an integer like Go's ParseInt: optional sign and digits, 64 bits."""
    body = text[1:] if text[:1] in {"+", "-"} else text
    if not (body.isascii() and body.isdigit()) or len(body) > _DIGITS_MAX:
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """One expression of a selector: key, operator and values."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether the labels satisfy this requirement.

        Source: apimachinery labels.Requirement.Matches: NotIn and DoesNotExist accept a missing
        key; Gt and Lt need an integer label and exactly one integer value.
        """
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
            case "Gt" | "Lt":
                return self._compares(labels)

    def _compares(self, labels: Mapping[str, str]) -> bool:
        if self.key not in labels or len(self.values) != 1:
            return False
        actual, bound = _as_int(labels[self.key]), _as_int(self.values[0])
        if actual is None or bound is None:
            return False
        return actual > bound if self.operator == "Gt" else actual < bound


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSelector:
    """A metav1.LabelSelector; an empty one matches everything, None (in other places) nothing."""

    match_labels: Labels = NO_LABELS
    match_expressions: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether all labels and all expressions match."""
        for key, value in self.match_labels.items():
            if labels.get(key) != value:
                return False
        # Selectors are compared with pods by the million: plain loops take half the time.
        for line in self.match_expressions:  # noqa: SIM110
            if not line.matches(labels):
                return False
        return True

    def keys(self) -> frozenset[str]:
        """Return every label key that the result can depend on."""
        return frozenset(self.match_labels) | {r.key for r in self.match_expressions}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSelectorTerm:
    """Requirements that must all hold: on labels, and on fields (`metadata.name`).

    A term with neither matches no node.
    """

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether a node of that name and with these labels satisfies the term."""
        if not self.expressions and not self.fields:
            return False
        return all(r.matches(labels) for r in self.expressions) and all(
            r.matches({NAME: name}) for r in self.fields
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSelector:
    """Terms of which one must match; without any term no node matches."""

    terms: tuple[NodeSelectorTerm, ...]

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether any term matches."""
        return any(term.matches(labels, name) for term in self.terms)
