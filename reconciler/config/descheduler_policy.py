"""A descheduler/v1alpha2 DeschedulerPolicy file as the `descheduler` part of a sector config.

Plugins that the DefaultEvictor and other helpers configure are left out: node fit, budgets and
pods that may not be moved are judged as everywhere else here.
"""

from collections.abc import Iterator
from typing import Final

from pydantic import BaseModel, ValidationError

from reconciler.config import yaml_loader
from reconciler.config.descheduler import Descheduler, Policies
from reconciler.config.faults import quoted
from reconciler.config.tree import Mapping, Place, Sequence, place_of, text_of, to_data

API_VERSION: Final = "descheduler/v1alpha2"
_LIMITS: Final = {
    "maxNoOfPodsToEvictPerNode": "max_evictions_per_node",
    "maxNoOfPodsToEvictPerNamespace": "max_evictions_per_namespace",
    "maxNoOfPodsToEvictTotal": "max_evictions_per_cycle",
}
_POLICY_POINTS: Final = ("balance", "deschedule")
_POLICY_NAMES: Final = tuple(field.alias for field in Policies.model_fields.values())


class PolicyFileFault(ValueError):
    """Why a policy file cannot be used, with its line and column."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(f"{place.line}:{place.column}: {message}")


def with_policy_file(descheduler: Descheduler, raw: bytes) -> Descheduler:
    """The descheduler's settings with the policies of a v1alpha2 file.

    Limits that the config states itself win over the file's.

    Raises:
        PolicyFileFault: Not such a file, or a policy or argument that is not known here.
    """
    try:
        root, found = yaml_loader.compose(yaml_loader.decode(raw))
    except yaml_loader.Unreadable as error:
        problem = error.problem
        place = Place(line=problem.line, column=problem.column)
        raise PolicyFileFault(place, problem.message) from None
    if found:
        raise PolicyFileFault(Place(line=found[0].line, column=found[0].column), found[0].message)
    if root.text("apiVersion") != API_VERSION or root.text("kind") != "DeschedulerPolicy":
        raise PolicyFileFault(root.place, f"not a DeschedulerPolicy of {API_VERSION}")
    update: dict[str, object] = {"policies": _policies(root)}
    for theirs, ours in _LIMITS.items():
        if theirs in root.entries and ours not in descheduler.model_fields_set:
            stated = _validated(Descheduler, {ours: to_data(root.entries[theirs].value)}, root)
            update[ours] = getattr(stated, ours)
    return descheduler.model_copy(update=update)


def _policies(root: Mapping) -> Policies:
    """The policies that a profile enables, with their arguments."""
    data: dict[str, object] = {}
    for _, item in root.items("profiles"):
        if not isinstance(item.value, Mapping):
            raise PolicyFileFault(item.place, "a profile must be a mapping")
        arguments = _arguments(item.value)
        for name in _enabled(item.value):
            data[name] = {**arguments.get(name, {}), "enabled": True}
    validated = _validated(Policies, data, root)
    assert isinstance(validated, Policies)
    return validated


def _arguments(profile: Mapping) -> dict[str, dict[str, object]]:
    """Arguments by plugin name."""
    arguments: dict[str, dict[str, object]] = {}
    for _, item in profile.items("pluginConfig"):
        entry = item.value
        name = entry.text("name") if isinstance(entry, Mapping) else None
        if name is None or not isinstance(entry, Mapping):
            raise PolicyFileFault(item.place, "a pluginConfig entry needs a name")
        data = to_data(entry.mapping("args"))
        arguments[name] = data if isinstance(data, dict) else {}
    return arguments


def _enabled(profile: Mapping) -> Iterator[str]:
    """The policies that a profile enables."""
    plugins = profile.mapping("plugins")
    for point in _POLICY_POINTS:
        enabled = plugins.mapping(point).get("enabled")
        for item in enabled.items if isinstance(enabled, Sequence) else ():
            name = text_of(item.value)
            if name is None or name not in _POLICY_NAMES:
                raise PolicyFileFault(item.place, f"unknown policy {quoted(name or '')}")
            yield name


def _validated(model: type[BaseModel], data: object, root: Mapping) -> BaseModel:
    """Validated data; the first fault at the nearest place that is known."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        location = tuple(step for step in first["loc"] if step != "[key]")
        place = _place_of_argument(root, location)
        path = ".".join(str(step) for step in location)
        raise PolicyFileFault(place, f"{path}: {first['msg']}") from None


def _place_of_argument(root: Mapping, location: tuple[int | str, ...]) -> Place:
    """Where an argument of a policy stands: `(policy, argument, …)`."""
    for profile_index, profile in root.items("profiles"):
        if not isinstance(profile.value, Mapping):
            continue
        for index, item in profile.value.items("pluginConfig"):
            if isinstance(item.value, Mapping) and item.value.text("name") == location[0]:
                start = ("profiles", profile_index, "pluginConfig", index, "args")
                return place_of(root, (*start, *location[1:]))
    return root.place
