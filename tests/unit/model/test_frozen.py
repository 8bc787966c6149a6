"""Frozen maps: equal by content, hashable, and refused every change."""

import copy
import pickle
from collections.abc import Callable

import pytest

from reconciler.model.frozen import FrozenMap


def test_equal_content_is_equal_and_has_one_hash() -> None:
    """Order does not count, and a dict of the same content is equal."""
    one, other = FrozenMap({"a": 1, "b": 2}), FrozenMap([("b", 2), ("a", 1)])
    assert one == other == {"a": 1, "b": 2}
    assert hash(one) == hash(other)
    assert len({one, other, FrozenMap({"a": 1})}) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda each: each.__setitem__("a", 2),
        lambda each: each.__delitem__("a"),
        lambda each: each.__ior__({"b": 2}),
        lambda each: each.clear(),
        lambda each: each.pop("a"),
        lambda each: each.popitem(),
        lambda each: each.setdefault("b", 2),
        lambda each: each.update(b=2),
    ],
)
def test_every_change_is_refused(change: Callable[[FrozenMap[str, int]], object]) -> None:
    """Whatever changes a dict raises TypeError, and the content stays."""
    there = FrozenMap({"a": 1})
    with pytest.raises(TypeError, match="does not change"):
        change(there)
    assert there == {"a": 1}


@pytest.mark.parametrize(
    "made",
    [
        copy.copy,
        copy.deepcopy,
        lambda each: pickle.loads(pickle.dumps(each)),  # noqa: S301 - made here
    ],
)
def test_copies_are_frozen_too(made: Callable[[FrozenMap[str, int]], object]) -> None:
    """Copies and pickled ones keep type and content; the hash of one process is not taken along."""
    there = FrozenMap({"a": 1})
    hash(there)
    copied = made(there)
    assert isinstance(copied, FrozenMap)
    assert copied == there
    assert hash(copied) == hash(there)
    assert repr(copied) == "FrozenMap({'a': 1})"


def test_union_is_a_dict_of_its_own() -> None:
    """`|` and dict() give plain dicts, which may be changed."""
    there = FrozenMap({"a": 1})
    more = there | {"b": 2}
    more["c"] = 3
    assert there == {"a": 1}
    assert type(dict(there)) is dict
