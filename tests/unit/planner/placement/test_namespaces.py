"""The index of namespaces chooses what the selector matches, whatever labels there are."""

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.frozen import Labels
from reconciler.model.selectors import LabelSelector, Operator, Requirement
from reconciler.planner.placement.namespaces import NamespaceIndex

NAME = "kubernetes.io/metadata.name"
KEYS = ("team", "stage", NAME)
VALUES = ("a", "b", "1", "2", "ns-0", "ns-1")


@st.composite
def lines(draw: st.DrawFn) -> Requirement:
    """Any line of a selector, with as many values as its operator takes."""
    operators: tuple[Operator, ...] = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
    operator = draw(st.sampled_from(operators))
    most = {"In": 3, "NotIn": 3, "Gt": 1, "Lt": 1}.get(operator, 0)
    values = draw(st.lists(st.sampled_from(VALUES), min_size=min(most, 1), max_size=most))
    return Requirement(key=draw(st.sampled_from(KEYS)), operator=operator, values=tuple(values))


label_sets = st.dictionaries(st.sampled_from(KEYS[:2]), st.sampled_from(VALUES)).map(Labels)
selectors = st.builds(
    LabelSelector,
    match_labels=st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=1).map(
        Labels
    ),
    match_expressions=st.lists(lines(), max_size=3).map(tuple),
)


@settings(deadline=None)
@given(st.lists(label_sets, max_size=4), selectors)
def test_index_chooses_what_the_selector_matches(
    labels: list[Labels], selector: LabelSelector
) -> None:
    """A rule would be kept against pods of the wrong tenants."""
    labels_of = {f"ns-{number}": each for number, each in enumerate(labels)}
    expected = {name for name, each in labels_of.items() if selector.matches({NAME: name, **each})}
    assert NamespaceIndex(labels_of).chosen_by(selector) == expected


def test_empty_selector_chooses_every_namespace() -> None:
    """Source: an empty namespaceSelector ({}) matches all namespaces."""
    index = NamespaceIndex({"a": Labels(), "b": Labels({"team": "x"})})
    assert index.chosen_by(LabelSelector()) == {"a", "b"}
