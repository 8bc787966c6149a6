"""Which namespaces a namespaceSelector matches, found by label instead of one by one."""

from collections.abc import Mapping

from reconciler.model.frozen import Labels
from reconciler.model.selectors import LabelSelector, Requirement

NAME = "kubernetes.io/metadata.name"
"""The label that the API server gives each namespace."""
_NONE: frozenset[str] = frozenset()


class NamespaceIndex:
    """The namespaces of a cluster by their labels.

    Tenants decide how many namespaces and selectors there are. The cost of a selector grows with
    the namespaces that have one of its labels, not with all of them.
    """

    def __init__(self, labels_of: Mapping[str, Labels]) -> None:
        """Build the index; `labels_of` has the labels of every namespace by name."""
        self._labels = {name: {NAME: name, **labels} for name, labels in labels_of.items()}
        self._all = frozenset(self._labels)
        having: dict[tuple[str, str | None], set[str]] = {}
        for name, labels in self._labels.items():
            for key, value in labels.items():
                having.setdefault((key, value), set()).add(name)
                having.setdefault((key, None), set()).add(name)
        self._having = {label: frozenset(names) for label, names in having.items()}
        """Names by label key and value, and by label key alone."""
        self._chosen: dict[LabelSelector, frozenset[str]] = {}

    def chosen_by(self, selector: LabelSelector) -> frozenset[str]:
        """Return the names of the namespaces that the selector matches."""
        known = self._chosen.get(selector)
        if known is None:
            known = self._all
            for key, value in selector.match_labels.items():
                known = _both(known, self._having.get((key, value), _NONE))
            for line in selector.match_expressions:
                known = self._kept(known, line)
            self._chosen[selector] = known
        return known

    def _kept(self, names: frozenset[str], line: Requirement) -> frozenset[str]:
        """Return those of the names for which the expression holds."""
        present = self._having.get((line.key, None), _NONE)
        match line.operator:
            case "Exists":
                return _both(names, present)
            case "DoesNotExist":
                return _without(names, present)
            case "In":
                return _both(names, self._with_value(line))
            case "NotIn":
                return _without(names, self._with_value(line))
            case "Gt" | "Lt":
                return frozenset([n for n in names & present if line.matches(self._labels[n])])

    def _with_value(self, line: Requirement) -> frozenset[str]:
        found = [self._having.get((line.key, value), _NONE) for value in line.values]
        return frozenset().union(*found)


def _both(names: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    """Return the intersection; `names` itself if that is all of them, as that needs no copy."""
    return names if len(others) == len(names) and others == names else names & others


def _without(names: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    """Return the names that are not among the others; `names` itself if that is all of them."""
    return names if names.isdisjoint(others) else names - others
