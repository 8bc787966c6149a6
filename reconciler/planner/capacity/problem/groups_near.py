"""Classes that must be in one topology domain, by affinity to each other's pods."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.planner.placement.classes import PodClass
from reconciler.planner.placement.domains import shared_keys
from reconciler.planner.placement.kinds import HOSTNAME
from reconciler.planner.placement.links import Links
from reconciler.planner.placement.simulation import Simulation


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupNear:
    """Classes of which one must be near another's pods, none of which run yet."""

    key: str
    """The topology key of the domain."""
    followers: tuple[PodClass, ...]
    leaders: tuple[PodClass, ...]
    """Classes that others must be near, and that may go anywhere themselves."""


def groups_near(sim: Simulation, classes: Sequence[PodClass]) -> dict[int, GroupNear]:
    """Return the groups of several classes, by class number.

    Pods without a rule of their own determine the domain for those that must be near them, as
    kube-scheduler may schedule them first. If they are spread or kept apart over such domains, that
    decides where they are, and they belong to no group.
    """
    linked = [(pod_class, sim.links(pod_class)) for pod_class in classes]
    followers = _followers(linked)
    if not followers:
        return {}
    following = {member.number for members in followers.values() for member in members}
    found: dict[int, GroupNear] = {}
    for members in _joined(sim, linked, followers, following):
        group = _group(sim, members, following) if len(members) > 1 else None
        if group is not None:
            found.update((member.number, group) for member in members)
    return found


def _joined(
    sim: Simulation,
    linked: Sequence[tuple[PodClass, Links]],
    followers: Mapping[int, Sequence[PodClass]],
    following: Container[int],
) -> Iterable[Sequence[PodClass]]:
    """Return the sets of classes that follow each other or common others."""
    joined = _Joined()
    for members in followers.values():
        for member in members:
            joined.join(members[0].number, member.number)
    for pod_class, links in linked:
        if pod_class.number in following or not shared_keys(links):
            for counter in sim.feeds(pod_class):
                for follower in followers.get(id(counter), ())[:1]:
                    joined.join(pod_class.number, follower.number)
    sets: dict[int, list[PodClass]] = {}
    for pod_class, _ in linked:
        if pod_class.number in joined:
            sets.setdefault(joined.first(pod_class.number), []).append(pod_class)
    return sets.values()


def _followers(linked: Sequence[tuple[PodClass, Links]]) -> dict[int, list[PodClass]]:
    """Return by counter without pods the classes that must be near what it counts."""
    found: dict[int, list[PodClass]] = {}
    for pod_class, links in linked:
        for counter in links.affinity:
            if counter.topology.key != HOSTNAME and not counter.total:
                found.setdefault(id(counter), []).append(pod_class)
    return found


def _group(
    sim: Simulation, members: Sequence[PodClass], following: Container[int]
) -> GroupNear | None:
    """Return the group of these classes; None if they ask for domains of several keys."""
    followers = tuple(member for member in members if member.number in following)
    keys = {
        counter.topology.key for follower in followers for counter in sim.links(follower).affinity
    }
    if len(keys) > 1:
        return None
    leaders = tuple(member for member in members if member.number not in following)
    return GroupNear(key=min(keys), followers=followers, leaders=leaders)


class _Joined:
    """Sets of numbers that are merged over time (union-find)."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}

    def __contains__(self, number: int) -> bool:
        return number in self._parents

    def first(self, number: int) -> int:
        """Return the number that represents the set."""
        root = number
        while self._parents.setdefault(root, root) != root:
            root = self._parents[root]
        while self._parents[number] != root:
            self._parents[number], number = root, self._parents[number]
        return root

    def join(self, one: int, other: int) -> None:
        """Merge two sets."""
        one, other = self.first(one), self.first(other)
        self._parents[max(one, other)] = min(one, other)
