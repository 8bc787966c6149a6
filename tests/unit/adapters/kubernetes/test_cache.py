"""What one kind's cache holds when a full list was taken beside the watch."""

from reconciler.adapters.kubernetes.cache import Cache
from reconciler.adapters.kubernetes.comparison import CachedObject
from reconciler.adapters.kubernetes.signal import ThreadedChangeSignal
from reconciler.model.cluster import Pod
from reconciler.records.kubernetes import Decoded
from tests.builders import make_pod


def held(name: str, version: str = "1") -> CachedObject:
    """A pod of that name."""
    pod = make_pod(name)
    return CachedObject(version, Decoded(identity=("Pod", "", name, ""), value=pod, ignored=None))


def cache_of(*names: str) -> Cache:
    """A cache after its first list."""
    made = Cache("Pod", ThreadedChangeSignal())
    made.replace({("", name): held(name) for name in names})
    return made


def names(cache: Cache) -> list[str]:
    """Of the pods that are held."""
    found, _ = cache.read()
    return sorted(each.value.key.name for each in found if isinstance(each.value, Pod))


def test_list_that_was_asked_for_before_a_newer_one_changes_nothing() -> None:
    """It would bring back what is gone, and count as a list that agrees."""
    cache = cache_of("a", "b")
    comparison = cache.compare()
    comparison.differs(("", "old"), held("old"))
    cache.replace({("", "a"): held("a")})
    assert cache.settle(comparison)
    assert names(cache) == ["a"]
    assert cache.lists_agreeing == 2


def test_list_after_a_silence_counts_only_when_another_one_agrees() -> None:
    """Nodes are shown then as they were before; a start is no end of a silence."""
    cache = Cache("Node", ThreadedChangeSignal())
    seen = []
    for _ in range(2):
        cache.replace({}, after_silence=True)
        seen.append(cache.heard_again)
    assert cache.settle(cache.compare())
    assert [*seen, cache.heard_again] == [False, True, False]


def test_objects_reported_meanwhile_are_the_watch_s_matter() -> None:
    """The list may be older than the watch, and newer: versions need not be ordered."""
    cache = cache_of("changed", "deleted", "lost")
    comparison = cache.compare()
    for name in ("changed", "deleted"):
        assert comparison.counts(("", name))
        comparison.differs(("", name), held(name, "0"))
    cache.put(("", "changed"), held("changed", "2"))
    cache.put(("", "added"), held("added", "2"))
    cache.drop(("", "deleted"))
    assert not comparison.agrees  # `lost` was not listed
    assert cache.settle(comparison)
    assert names(cache) == ["added", "changed"]
    assert cache.held_in(("", "changed"), "2")


def test_settled_list_rings_only_when_it_changed_something() -> None:
    """Every start would be followed by a cycle for nothing."""
    signal = ThreadedChangeSignal()
    cache = Cache("Pod", signal)
    cache.replace({("", "a"): held("a")})
    for listed, rings in (("a", False), ("b", True)):
        signal.clear()
        comparison = cache.compare()
        assert comparison.counts(("", listed))
        if cache.held_in(("", listed), "1") is None:
            comparison.differs(("", listed), held(listed))
        cache.settle(comparison)
        assert signal.wait(0) is rings
    assert names(cache) == ["b"]
