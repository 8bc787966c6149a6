"""Reads a descheduler/v1alpha2 DeschedulerPolicy file as the `descheduler` part of a config.

A setting that this program does not support is a fault with its place, never ignored.
"""

from collections.abc import Iterator
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from reconciler.config import yaml_loader
from reconciler.config.base import Section
from reconciler.config.default_evictor import DEFAULT_EVICTOR, DefaultEvictor, NodeSelectorText
from reconciler.config.descheduler import UNDO_EACH_OTHER, Descheduler, Policies
from reconciler.config.faults import quoted
from reconciler.config.tree import Mapping, Place, Sequence, place_of, text_of, to_data
from reconciler.config.types import Seconds, Text

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


class PolicyFileFault(ValueError):
    """Why a policy file cannot be used, with its line and column."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(f"{place.line}:{place.column}: {message}")


def with_policy_file(descheduler: Descheduler, raw: bytes) -> DeschedulerOfFile:
    """Return the descheduler's settings with the profiles of a v1alpha2 file.

    Limits in the config override the file's.

    Raises:
        PolicyFileFault: It is not such a file, or has a setting that is unknown or not supported
            here.
    """
    root = _root(raw)
    if root.text("apiVersion") != API_VERSION or root.text("kind") != "DeschedulerPolicy":
        raise PolicyFileFault(root.place, f"not a DeschedulerPolicy of {API_VERSION}")
    _refuse_unknown(root, _KEYS, "key")
    update: dict[str, object] = dict(_stated(root, "nodeSelector", "node_selector"))
    update |= dict(_stated(root, "gracePeriodSeconds", "grace_seconds_max"))
    for theirs, ours in _LIMITS.items():
        if ours not in descheduler.model_fields_set:
            update |= dict(_stated(root, theirs, ours))
    profiles = tuple(
        _profile(root, number, item.value, item.place) for number, item in root.items("profiles")
    )
    low = any(each.policies.low_node_utilization.enabled for each in profiles)
    high = any(each.policies.high_node_utilization.enabled for each in profiles)
    if low and high:
        raise PolicyFileFault(root.entries["profiles"].place, UNDO_EACH_OTHER)
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
        problem = error.problem
        place = Place(line=problem.line, column=problem.column)
        raise PolicyFileFault(place, problem.message) from None
    if found:
        raise PolicyFileFault(Place(line=found[0].line, column=found[0].column), found[0].message)
    return root


def _refuse_unknown(mapping: Mapping, known: frozenset[str], what: str) -> None:
    """Refuse a key that would be ignored."""
    for key, entry in mapping.entries.items():
        if key not in known:
            raise PolicyFileFault(entry.place, f"{what} {quoted(key)} is not acted on here")


def _stated(root: Mapping, theirs: str, ours: str) -> Iterator[tuple[str, object]]:
    """Yield our field and its value where the file states it."""
    if root.states(theirs):
        data = {ours: to_data(root.entries[theirs].value)}
        yield ours, getattr(_validated(DeschedulerOfFile, data, root, (theirs,)), ours)


def _profile(root: Mapping, number: int, profile: object, place: Place) -> FileProfile:
    """Return one profile: the policies that it enables, with their arguments, and its evictor."""
    if not isinstance(profile, Mapping):
        raise PolicyFileFault(place, "a profile must be a mapping")
    _refuse_unknown(profile, _PROFILE_KEYS, "key")
    arguments = _arguments(profile)
    data: dict[str, object] = {
        name: {**arguments.get(name, ({}, -1))[0], "enabled": True} for name in _enabled(profile)
    }
    # A configured policy that is not enabled does not run, but its arguments are checked.
    configured = {name: args for name, (args, _) in arguments.items() if name != EVICTOR}
    for name, args in configured.items():
        data.setdefault(name, args)
    start = ("profiles", number)
    indexes = {name: index for name, (_, index) in arguments.items()}
    policies = _of_plugins(Policies, data, root, start, indexes)
    evictor_data = arguments.get(EVICTOR, ({}, -1))[0]
    where = (*start, "pluginConfig", indexes.get(EVICTOR, 0), "args")
    evictor = _validated(DefaultEvictor, evictor_data, root, where, f"{EVICTOR}.")
    return FileProfile.model_construct(
        name=profile.text("name") or "", evictor=evictor, policies=policies
    )


def _of_plugins(
    model: type[ModelT],
    data: object,
    root: Mapping,
    start: tuple[int | str, ...],
    indexes: dict[str, int],
) -> ModelT:
    """Return validated arguments of policies; raise the first fault at its place."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        location, message = _first_fault(error)
        index = indexes.get(str(location[0]))
        place = place_of(root, start)
        if index is not None:
            place = place_of(root, (*start, "pluginConfig", index, "args", *location[1:]))
        path = ".".join(str(step) for step in location)
        raise PolicyFileFault(place, f"{path}: {message}") from None


def _arguments(profile: Mapping) -> dict[str, tuple[dict[str, object], int]]:
    """Return arguments by plugin name, with their index in the list."""
    arguments: dict[str, tuple[dict[str, object], int]] = {}
    for index, item in profile.items("pluginConfig"):
        entry = item.value
        name = entry.text("name") if isinstance(entry, Mapping) else None
        if name is None or not isinstance(entry, Mapping):
            raise PolicyFileFault(item.place, "a pluginConfig entry needs a name")
        if name != EVICTOR and name not in _POLICY_NAMES:
            raise PolicyFileFault(item.place, f"unknown plugin {quoted(name)}")
        data = to_data(entry.mapping("args"))
        arguments[name] = (data if isinstance(data, dict) else {}, index)
    return arguments


def _enabled(profile: Mapping) -> Iterator[str]:
    """Yield the policies that a profile enables; the only other plugin is the DefaultEvictor."""
    plugins = profile.mapping("plugins")
    _refuse_unknown(plugins, frozenset({*_POLICY_POINTS, *_EVICTOR_POINTS}), "extension point")
    for point, entry in plugins.entries.items():
        listed = plugins.mapping(point)
        _refuse_unknown(listed, frozenset({"enabled", "disabled"}), "key")
        disabled = listed.get("disabled")
        if isinstance(disabled, Sequence) and disabled.items:
            why = "nothing is enabled by default but DefaultEvictor, which cannot be disabled"
            raise PolicyFileFault(entry.place, why)
        known = _POLICY_NAMES if point in _POLICY_POINTS else (EVICTOR,)
        enabled = listed.get("enabled")
        for item in enabled.items if isinstance(enabled, Sequence) else ():
            name = text_of(item.value)
            if name is None or name not in known:
                raise PolicyFileFault(item.place, f"unknown policy {quoted(name or '')}")
            if name != EVICTOR:
                yield name


def _validated(
    model: type[ModelT],
    data: object,
    root: Mapping,
    start: tuple[int | str, ...],
    prefix: str = "",
) -> ModelT:
    """Return validated data; raise the first fault at its place below `start`."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        location, message = _first_fault(error)
        path = ".".join(str(step) for step in location)
        place = place_of(root, (*start, *location))
        raise PolicyFileFault(place, f"{prefix}{path}: {message}") from None


def _first_fault(error: ValidationError) -> tuple[tuple[int | str, ...], str]:
    first = error.errors(include_url=False, include_input=False)[0]
    return tuple(step for step in first["loc"] if step != "[key]"), first["msg"]
