"""Label and field selectors, as in a query string and as in objects.

Grammar: k8s.io/apimachinery/pkg/labels, `Parse`; fields: pkg/registry and pkg/apis/*/v1/conversion.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from reconciler.model.frozen import FrozenMap
from reconciler.model.selectors import LabelSelector, Operator, Requirement
from reconciler.sandbox.cluster.objects.resources import (
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    Resource,
)
from reconciler.sandbox.cluster.objects.status import JsonObject, bad_request

Matches = Callable[[JsonObject], bool]

_SET_BASED = re.compile(r"^(\S+)\s+(in|notin)\s*\(([^()]*)\)$")
_EQUALITY = re.compile(r"^([^\s=!<>]+)\s*(==|=|!=|>|<)\s*([^\s=!<>]*)$")
_KEY = re.compile(r"^(!?)\s*([A-Za-z0-9][A-Za-z0-9_./-]*)$")
_OPERATORS: dict[str, Operator] = {
    "in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt",
}  # fmt: skip


def _split(text: str) -> list[str]:
    """Split at the commas that are not inside parentheses."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return [*parts, current.strip()]


def _requirement(text: str) -> Requirement:
    if match := _SET_BASED.match(text):
        key, operator, values = match.groups()
        listed = tuple(value.strip() for value in values.split(","))
        return Requirement(key=key, operator=_OPERATORS[operator], values=listed)
    if match := _EQUALITY.match(text):
        key, operator, value = match.groups()
        return Requirement(key=key, operator=_OPERATORS[operator], values=(value,))
    if match := _KEY.match(text):
        negated, key = match.groups()
        return Requirement(key=key, operator="DoesNotExist" if negated else "Exists")
    raise bad_request(f"unable to parse requirement: found '{text}', expected: a label selector")


def parse_label_selector(text: str) -> LabelSelector:
    """Read the `labelSelector` of a query string.

    Raises:
        ApiError: 400, when it does not follow the grammar.
    """
    if not text.strip():
        return LabelSelector()
    return LabelSelector(match_expressions=tuple(_requirement(part) for part in _split(text)))


def selector_of(body: Mapping[str, Any] | None) -> LabelSelector | None:
    """Return a metav1.LabelSelector of an object; None, matching nothing, when absent or empty."""
    if not body or not (body.get("matchLabels") or body.get("matchExpressions")):
        return None
    return LabelSelector(
        match_labels=FrozenMap(body.get("matchLabels") or {}),
        match_expressions=tuple(
            Requirement(
                key=line["key"],
                operator=cast("Operator", line["operator"]),
                values=tuple(line.get("values") or ()),
            )
            for line in body.get("matchExpressions") or ()
        ),
    )


def labels_of(body: JsonObject) -> Mapping[str, str]:
    """Return the labels of an object."""
    return cast("Mapping[str, str]", body["metadata"].get("labels") or {})


_POD_FIELDS = (
    "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
    "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName",
)  # fmt: skip
_EVENT_FIELDS = (
    "involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
    "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
    "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type",
)  # fmt: skip
_FIELDS: dict[str, tuple[str, ...]] = {
    PODS.plural: _POD_FIELDS,
    NODES.plural: ("spec.unschedulable",),
    EVENTS.plural: _EVENT_FIELDS,
    NAMESPACES.plural: ("status.phase",),
    JOBS.plural: ("status.successful",),
}
_FALSE_WHEN_ABSENT = {"spec.unschedulable", "spec.hostNetwork"}


def _field(body: JsonObject, path: str) -> str:
    if path == "source":
        path = "source.component"
    if path == "status.successful":
        path = "status.succeeded"
    value: Any = body
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool) or (value is None and path in _FALSE_WHEN_ABSENT):
        return "true" if value else "false"
    if value is None:
        return "0" if path == "status.succeeded" else ""
    return str(value)


def _field_term(resource: Resource, text: str) -> tuple[str, bool, str]:
    """Return path, whether equality is meant, and value."""
    match = _EQUALITY.match(text)
    if match is None or match.group(2) in "<>":
        raise bad_request(f"invalid selector: '{text}'; can't understand '{text}'")
    path, operator, value = match.groups()
    known = ("metadata.name", "metadata.namespace", *_FIELDS.get(resource.plural, ()))
    if path not in known:
        raise bad_request(
            f'Unable to find "{resource.group_version}, Resource={resource.plural}" that match '
            f'label selector "", field selector "{text}": field label not supported: {path}'
        )
    return path, operator != "!=", value


def parse_field_selector(resource: Resource, text: str) -> tuple[tuple[str, bool, str], ...]:
    """Read the `fieldSelector` of a query string, as (path, equal, value) terms.

    Raises:
        ApiError: 400, for bad grammar and for a field that the type cannot be selected by.
    """
    return tuple(_field_term(resource, part) for part in _split(text)) if text.strip() else ()


def matcher(resource: Resource, label_text: str, field_text: str) -> Matches | None:
    """Return one predicate for both selectors of a query; None when it would match everything."""
    labels = parse_label_selector(label_text)
    fields = parse_field_selector(resource, field_text)
    if not labels.match_expressions and not fields:
        return None

    def matches(body: JsonObject) -> bool:
        return all(
            (_field(body, path) == value) is equal for path, equal, value in fields
        ) and labels.matches(labels_of(body))

    return matches
