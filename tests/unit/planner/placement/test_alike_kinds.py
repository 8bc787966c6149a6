"""Asking once for node kinds that are alike gives the verdict of each of them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.cluster import Taint, Toleration
from reconciler.model.frozen import NO_LABELS, Labels
from reconciler.model.selectors import NodeSelector, NodeSelectorTerm, Operator, Requirement
from reconciler.planner.placement.filters.static import (
    ALIKE_MIN,
    eligible_for_spread,
    eligible_kinds,
    refuses,
    verdicts,
)
from reconciler.planner.placement.kinds import KindTable
from reconciler.planner.placement.static_constraints import StaticConstraints
from reconciler.planner.placement.volume_needs import NO_VOLUMES
from tests.unit.planner.counted_lines import CountedLine

NAMES = ("n0", "n1", "n2", "n3", "n4", "n5", "1", "2")
KEYS, VALUES = ("disk", "gen"), ("ssd", "hdd", "1", "2")


@st.composite
def lines(draw: st.DrawFn, keys: tuple[str, ...], values: tuple[str, ...]) -> Requirement:
    """A line about a label or about the name."""
    operators: tuple[Operator, ...] = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
    operator = draw(st.sampled_from(operators))
    most = {"In": 2, "NotIn": 2, "Gt": 1, "Lt": 1}.get(operator, 0)
    chosen = draw(st.lists(st.sampled_from(values), min_size=min(most, 1), max_size=most))
    return Requirement(key=draw(st.sampled_from(keys)), operator=operator, values=tuple(chosen))


terms = st.builds(
    NodeSelectorTerm,
    expressions=st.lists(lines(KEYS, VALUES), max_size=2).map(tuple),
    fields=st.lists(lines(("metadata.name",), NAMES), max_size=2).map(tuple),
)
tolerations = st.sampled_from([(), (Toleration(key="team", operator="Exists"),)])
constraints = st.builds(
    StaticConstraints,
    node_selector=st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=1).map(
        Labels
    ),
    node_affinity=st.none() | st.lists(terms, max_size=2).map(lambda t: NodeSelector(terms=(*t,))),
    tolerations=tolerations,
    volumes=st.just(NO_VOLUMES),
)
label_sets = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES)).map(Labels)
rows = st.tuples(
    st.lists(label_sets, min_size=1, max_size=2),
    st.sampled_from(NAMES),
    st.sampled_from([(), (Taint(key="team", value="", effect="NoSchedule"),)]),
    st.booleans(),
)


@settings(deadline=None)
@given(st.lists(rows, min_size=ALIKE_MIN, max_size=30), constraints, st.integers(0, 5))
def test_kinds_that_are_alike_have_the_verdict_of_each(
    made: list[tuple[list[Labels], str, tuple[Taint, ...], bool]],
    asking: StaticConstraints,
    first: int,
) -> None:
    """A pod would be promised a node that the scheduler refuses, or refused one that it has."""
    table = KindTable(frozenset(KEYS), by_name=True)
    for variants, name, taints, schedulable in made:
        table.number(variants, name, taints, schedulable=schedulable)
    expected = [refuses(asking, kind) for kind in table.kinds]
    assert verdicts(asking, table, 0) == expected
    assert verdicts(asking, table, first) == expected[first:]
    honors = {"honor_affinity": bool(first % 2), "honor_taints": first > 2}
    counted = [eligible_for_spread(asking, kind, **honors) for kind in table.kinds]
    assert eligible_kinds(asking, table, first, **honors) == counted[first:]


def test_spread_asks_once_for_nodes_that_differ_in_what_others_read() -> None:
    """One pod that selects by host name made each spread pod ask about every node."""
    table = KindTable(frozenset({*KEYS, "host"}), by_name=False)
    line = CountedLine(key="disk", operator="In", values=("ssd",))
    asking = StaticConstraints(
        node_selector=NO_LABELS,
        node_affinity=NodeSelector(terms=(NodeSelectorTerm(expressions=(line,)),)),
        tolerations=(),
        volumes=NO_VOLUMES,
    )
    for number in range(100):
        labels = Labels({"host": f"n{number}", "disk": VALUES[number % 2]})
        table.number([labels], "", (), schedulable=True)
    CountedLine.compared = 0
    found = eligible_kinds(asking, table, 0, honor_affinity=True, honor_taints=False)
    assert found == [True, False] * 50
    assert CountedLine.compared == 2
