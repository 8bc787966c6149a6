"""Reads a descheduler/v1alpha2 DeschedulerPolicy file as the `descheduler` part of a config.

A setting that this program does not support is a fault with its place, never ignored.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from reconciler.config import yaml_loader
from reconciler.config.base import Section
from reconciler.config.default_evictor import DEFAULT_EVICTOR, DefaultEvictor, NodeSelectorText
from reconciler.config.descheduler import UNDO_EACH_OTHER, Descheduler, Policies
from reconciler.config.faults import quoted
from reconciler.config.problems import Location, from_validation
from reconciler.config.tree import Item, Mapping, Place, Sequence, place_of, text_of, to_data
from reconciler.config.types import Seconds, Text
from reconciler.model.errors import Problem

ModelT = TypeVar("ModelT", bound=BaseModel)
API_VERSION: Final = "descheduler/v1alpha2"
EVICTOR: Final = "DefaultEvictor"
_LIMITS: Final = {
    "maxNoOfPodsToEvictPerNode": "max_evictions_per_node",
    "maxNoOfPodsToEvictPerNamespace": "max_evictions_per_namespace",
    "maxNoOfPodsToEvictTotal": "max_evictions_per_cycle",
}
_KEYS: Final = frozenset(
    {"apiVersion", "kind", "profiles", "nodeSelector", "gracePeriodSeconds", *_LIMITS}
)
_PROFILE_KEYS: Final = frozenset({"name", "pluginConfig", "plugins"})
_PLUGIN_KEYS: Final = frozenset({"name", "args"})
_POINT_KEYS: Final = frozenset({"enabled", "disabled"})
_POLICY_POINTS: Final = ("balance", "deschedule")
_EVICTOR_POINTS: Final = ("filter", "preEvictionFilter", "evict", "sort", "presort")
_POLICY_NAMES: Final = tuple(field.alias for field in Policies.model_fields.values())


class FileProfile(Section):
    """A profile of a policy file."""

    name: Text = ""
    """For people."""
    evictor: DefaultEvictor = DEFAULT_EVICTOR
    """What it may evict."""
    policies: Policies = Policies.model_construct()
    """Its policies with their arguments."""


class DeschedulerOfFile(Descheduler):
    """The descheduler's settings with what only a policy file can say."""

    profiles: tuple[FileProfile, ...] = ()
    """In the order of the file."""
    node_selector: NodeSelectorText = ""
    """Nodes that are looked at."""
    grace_seconds_max: Seconds | None = None
    """Most grace that an evicted pod gets."""


class PolicyFileFaults(ValueError):
    """Why a policy file cannot be used: every fault with its line and column, in file order."""

    def __init__(self, found: Iterable[tuple[Place, str]]) -> None:
        ordered = sorted(found, key=lambda each: (each[0].line, each[0].column))
        self.messages = tuple(f"{place.line}:{place.column}: {what}" for place, what in ordered)
        super().__init__("; ".join(self.messages))


def with_policy_file(descheduler: Descheduler, raw: bytes) -> DeschedulerOfFile:
    """Return the descheduler's settings with the profiles of a v1alpha2 file.

    Limits in the config override the file's.

    Raises:
        PolicyFileFaults: It is not such a file, or has settings that are unknown or not supported
            here.
    """
    root = _root(raw)
    if root.text("apiVersion") != API_VERSION or root.text("kind") != "DeschedulerPolicy":
        raise PolicyFileFaults([(root.place, f"not a DeschedulerPolicy of {API_VERSION}")])
    reading = _Reading(root)
    reading.refuse_unknown(root, _KEYS, "key")
    update = reading.stated("nodeSelector", "node_selector")
    update |= reading.stated("gracePeriodSeconds", "grace_seconds_max")
    for theirs, ours in _LIMITS.items():
        if ours not in descheduler.model_fields_set:
            update |= reading.stated(theirs, ours)
    profiles = tuple(
        reading.profile(number, item.value, item.place)
        for number, item in reading.listed(root, "profiles")
    )
    low = any(profile.policies.low_node_utilization.enabled for profile in profiles)
    high = any(profile.policies.high_node_utilization.enabled for profile in profiles)
    if low and high:
        reading.refuse(root.entries["profiles"].place, UNDO_EACH_OTHER)
    if reading.faults:
        raise PolicyFileFaults(reading.faults)
    if profiles:
        update["policies"] = profiles[0].policies
    known = {name: getattr(descheduler, name) for name in Descheduler.model_fields}
    return DeschedulerOfFile.model_construct(
        descheduler.model_fields_set, **(known | update), profiles=profiles
    )


def _root(raw: bytes) -> Mapping:
    try:
        root, found = yaml_loader.compose(yaml_loader.decode(raw))
    except yaml_loader.Unreadable as error:
        raise PolicyFileFaults([_fault_of(error.problem)]) from None
    if found:
        raise PolicyFileFaults(map(_fault_of, found))
    return root


def _fault_of(problem: Problem, prefix: str = "") -> tuple[Place, str]:
    return Place(line=problem.line, column=problem.column), f"{prefix}{problem.message}"


class _Reading:
    """Reads a policy file as far as possible; `faults` has what is refused in it."""

    def __init__(self, root: Mapping) -> None:
        self._root = root
        self.faults: list[tuple[Place, str]] = []

    def refuse(self, place: Place, message: str) -> None:
        """Keep why the file cannot be used."""
        self.faults.append((place, message))

    def refuse_unknown(self, mapping: Mapping, known: frozenset[str], what: str) -> None:
        """Refuse keys that would be ignored."""
        for key, entry in mapping.entries.items():
            if key not in known:
                names = ", ".join(sorted(known))
                why = f"{what} {quoted(key)} is not acted on here: take it out; known are {names}"
                self.refuse(entry.place, why)

    def mapping(self, parent: Mapping, key: str) -> Mapping:
        """Return the mapping under `key`, an empty one without any; refuse a list or a text."""
        if parent.states(key) and not isinstance(parent.get(key), Mapping):
            why = f"{key} must be a mapping: write `{key}: {{KEY: VALUE}}`"
            self.refuse(parent.entries[key].place, why)
        return parent.mapping(key)

    def listed(self, parent: Mapping, key: str) -> Iterator[tuple[int, Item]]:
        """Yield the numbered items of the list under `key`; refuse a mapping or a text."""
        if parent.states(key) and not isinstance(parent.get(key), Sequence):
            self.refuse(parent.entries[key].place, f"{key} must be a list: write `{key}: [ITEM]`")
        return parent.items(key)

    def stated(self, theirs: str, ours: str) -> dict[str, object]:
        """Return our field and its value where the file states it."""
        if not self._root.states(theirs):
            return {}
        data = {ours: to_data(self._root.entries[theirs].value)}
        read = self._validated(DeschedulerOfFile, data, lambda _: (theirs,))
        return {ours: getattr(read, ours, None)}

    def profile(self, number: int, profile: object, place: Place) -> FileProfile:
        """Return one profile: the policies that it enables, with their arguments, its evictor."""
        if not isinstance(profile, Mapping):
            self.refuse(place, "a profile must be a mapping: write `- name: NAME`")
            return FileProfile.model_construct()
        self.refuse_unknown(profile, _PROFILE_KEYS, "key")
        arguments = self._arguments(profile)
        data: dict[str, object] = {
            name: {**arguments.get(name, ({}, -1))[0], "enabled": True}
            for name in self._enabled(profile)
        }
        # A configured policy that is not enabled does not run, but its arguments are checked.
        configured = {name: args for name, (args, _) in arguments.items() if name != EVICTOR}
        for name, args in configured.items():
            data.setdefault(name, args)
        start: Location = ("profiles", number)
        indexes = {name: index for name, (_, index) in arguments.items()}

        def place_of_policy(location: Location) -> Location:
            index = indexes.get(str(location[0]))
            if index is None:
                return start
            return (*start, "pluginConfig", index, "args", *location[1:])

        def place_in_evictor(location: Location) -> Location:
            return (*start, "pluginConfig", indexes.get(EVICTOR, 0), "args", *location)

        policies = self._validated(Policies, data, place_of_policy)
        evictor_data = arguments.get(EVICTOR, ({}, -1))[0]
        evictor = self._validated(DefaultEvictor, evictor_data, place_in_evictor, f"{EVICTOR}.")
        return FileProfile.model_construct(
            name=profile.text("name") or "",
            evictor=evictor or DEFAULT_EVICTOR,
            policies=policies or Policies.model_construct(),
        )

    def _arguments(self, profile: Mapping) -> dict[str, tuple[dict[str, object], int]]:
        """Return arguments by plugin name, with their index in the list."""
        arguments: dict[str, tuple[dict[str, object], int]] = {}
        for index, item in self.listed(profile, "pluginConfig"):
            entry = item.value
            name = entry.text("name") if isinstance(entry, Mapping) else None
            if name is None or not isinstance(entry, Mapping):
                self.refuse(item.place, "a pluginConfig entry needs a name: write `- name: PLUGIN`")
                continue
            self.refuse_unknown(entry, _PLUGIN_KEYS, "key")
            if name != EVICTOR and name not in _POLICY_NAMES:
                self.refuse(item.place, f"unknown plugin {quoted(name)}")
            elif name in arguments:
                why = f"a second pluginConfig entry of {name}: state all its args in one"
                self.refuse(item.place, why)
            else:
                arguments[name] = (self._stated_arguments(name, entry), index)
        return arguments

    def _stated_arguments(self, name: str, entry: Mapping) -> dict[str, object]:
        """Return what an entry of pluginConfig states as arguments.

        A policy of a config has a key `enabled`, which is no argument of a policy file.
        """
        args = self.mapping(entry, "args")
        if name != EVICTOR and "enabled" in args.entries:
            why = f"{name} has no argument 'enabled': list what runs under `plugins`"
            self.refuse(args.entries["enabled"].place, why)
        return {
            key: to_data(each.value)
            for key, each in args.entries.items()
            if name == EVICTOR or key != "enabled"
        }

    def _enabled(self, profile: Mapping) -> Iterator[str]:
        """Yield the policies that a profile enables; the only other plugin is DefaultEvictor."""
        plugins = self.mapping(profile, "plugins")
        points = frozenset({*_POLICY_POINTS, *_EVICTOR_POINTS})
        self.refuse_unknown(plugins, points, "extension point")
        for point, entry in plugins.entries.items():
            if point not in points:
                continue
            listed = self.mapping(plugins, point)
            self.refuse_unknown(listed, _POINT_KEYS, "key")
            if any(True for _ in self.listed(listed, "disabled")):
                why = "nothing is enabled by default but DefaultEvictor, which cannot be disabled"
                self.refuse(entry.place, why)
            known = _POLICY_NAMES if point in _POLICY_POINTS else (EVICTOR,)
            for _, item in self.listed(listed, "enabled"):
                name = text_of(item.value)
                if name is None or name not in known:
                    self.refuse(item.place, f"unknown policy {quoted(name or '')}")
                elif name != EVICTOR:
                    yield name

    def _validated(
        self,
        model: type[ModelT],
        data: object,
        in_file: Callable[[Location], Location],
        prefix: str = "",
    ) -> ModelT | None:
        """Return validated data; None if it has faults.

        Args:
            model: What it has to be.
            data: What the file states.
            in_file: Returns where a location of the data is in the file.
            prefix: What the name of a key begins with in messages.
        """
        try:
            return model.model_validate(data)
        except ValidationError as error:
            found = from_validation(
                error, self._root, model, lambda location: place_of(self._root, in_file(location))
            )
            for each in found:
                self.faults.append(_fault_of(each, f"{prefix}{each.path}: "))
        return None
