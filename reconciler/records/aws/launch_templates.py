"""Decodes the launch templates that fleets and groups launch from."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reconciler.model.fleet import TEMPLATE_ID_TAG, Instance
from reconciler.model.snapshot import Ignored
from reconciler.records.aws.fields import Count, Wire, moment_of, read_entries
from reconciler.records.aws.group_market import SPOT_MARKET

_DIGITS_MAX = 18
"""A longer version number is ignored, because a file of answers may contain anything."""

UNKNOWN_TEMPLATES = "UnknownLaunchTemplates"
"""Next to `LaunchTemplates` in the answers of our adapters: each template (`Name`) whose version
EC2 does not return, and `Why`."""
_UNKNOWN_TEMPLATES_BEFORE = "LaunchTemplatesNotTold"
"""The same key in snapshots of earlier releases."""

ANSWERED_AT = "AnsweredAt"
"""In each entry of `LaunchTemplates` in the answers of our adapters: when EC2 returned it."""


class TemplateSpecificationWire(Wire):
    """A reference to a launch template version."""

    launch_template_id: str | None = None
    launch_template_name: str | None = None
    version: str | None = None


class _TemplateWire(Wire):
    launch_template_id: str
    launch_template_name: str | None = None
    latest_version_number: Count | None = None
    default_version_number: Count | None = None
    answered_at: Any = None
    told_at: Any = None
    """The same in snapshots of earlier releases."""


class _UnknownTemplateWire(Wire):
    name: str
    why: str = ""


class _MarketWire(Wire):
    market_type: str | None = None


class _TemplateDataWire(Wire):
    instance_type: str | None = None
    instance_market_options: _MarketWire | None = None


class _TemplateVersionWire(Wire):
    launch_template_id: str
    version_number: Count
    launch_template_name: str | None = None
    default_version: bool | None = None
    launch_template_data: _TemplateDataWire | None = None


@dataclass(slots=True)
class LaunchTemplates:
    """The known launch templates of one region, by id."""

    ids_by_name: dict[str, str] = field(default_factory=dict)
    latest: dict[str, int] = field(default_factory=dict)
    default: dict[str, int] = field(default_factory=dict)
    answered_at: dict[str, datetime] = field(default_factory=dict)
    """When EC2 returned latest and default, by id; templates of files have none."""
    instance_types: dict[tuple[str, str], str] = field(default_factory=dict)
    """By id and version number."""
    spot: set[tuple[str, str]] = field(default_factory=set)
    """Id and version number of the versions that request spot instances themselves."""

    def id_of(self, specification: TemplateSpecificationWire) -> str:
        """Return the template's id; empty when only an unknown name is given."""
        return specification.launch_template_id or self.ids_by_name.get(
            specification.launch_template_name or "", ""
        )

    def further(
        self, specifications: Iterable[TemplateSpecificationWire | None]
    ) -> tuple[tuple[str, str], ...]:
        """Return the template and version of each specification but the first, each once."""
        found = dict.fromkeys((self.id_of(s), self.version_of(s)) for s in specifications if s)
        return tuple(found)[1:]

    def version_of(self, specification: TemplateSpecificationWire) -> str:
        """Return the version's number if it is known; else what the specification states."""
        template_id, version = self.id_of(specification), specification.version or "$Default"
        known = {"$Latest": self.latest, "$Default": self.default}.get(version, {})
        return str(known[template_id]) if template_id in known else version

    def instance_type_of(self, specification: TemplateSpecificationWire) -> str | None:
        """Return the instance type that the version itself names."""
        return self.instance_types.get((self.id_of(specification), self.version_of(specification)))

    def is_spot(self, specification: TemplateSpecificationWire) -> bool:
        """Return whether the version itself requests spot instances; False if it is not known."""
        return (self.id_of(specification), self.version_of(specification)) in self.spot

    def read(self, answer: Mapping[str, Any], ignored: list[Ignored]) -> None:
        """Add describe-launch-templates and describe-launch-template-versions."""
        id_key = "LaunchTemplateId"
        for entry in read_entries(
            answer.get("LaunchTemplates"), _TemplateWire, "LaunchTemplate", id_key, ignored
        ):
            self._name(entry.launch_template_id, entry.launch_template_name)
            if entry.latest_version_number is not None:
                self.latest[entry.launch_template_id] = entry.latest_version_number
            if entry.default_version_number is not None:
                self.default[entry.launch_template_id] = entry.default_version_number
            if (answered_at := moment_of(entry.answered_at or entry.told_at)) is not None:
                self.answered_at[entry.launch_template_id] = answered_at
        for silent in read_entries(
            answer.get(UNKNOWN_TEMPLATES, answer.get(_UNKNOWN_TEMPLATES_BEFORE)),
            _UnknownTemplateWire,
            "LaunchTemplate",
            "Name",
            ignored,
        ):
            name, why = silent.name, silent.why
            ignored.append(Ignored(code="unreadable", kind="LaunchTemplate", name=name, detail=why))
        versions = answer.get("LaunchTemplateVersions")
        for version in read_entries(
            versions, _TemplateVersionWire, "LaunchTemplateVersion", id_key, ignored
        ):
            self._read_version(version)

    def forget_outdated(self, instances: Iterable[Instance], ignored: list[Ignored]) -> None:
        """Remove the latest and default versions of templates for which EC2's answer is outdated.

        The answer is outdated if an instance that was launched after it has a higher version than
        its latest one: an answer is some minutes old while EC2 does not answer, and the default
        version may have changed as well. An instance that was launched before the answer proves
        nothing, because versions may be deleted.
        """
        for instance in instances:
            template_id = instance.tags.get(TEMPLATE_ID_TAG, "")
            version, latest = instance.launch_template_version, self.latest.get(template_id)
            answered_at, launched_at = self.answered_at.get(template_id), instance.launched_at
            if latest is None or answered_at is None or launched_at is None:
                continue
            if not (version.isascii() and version.isdigit()) or len(version) > _DIGITS_MAX:
                continue
            if int(version) > latest and launched_at > answered_at:
                del self.latest[template_id]
                self.default.pop(template_id, None)
                why = (
                    f"its version is unknown: {instance.id} runs version {version},"
                    f" but EC2 last reported {latest} as the latest"
                )
                ignored.append(
                    Ignored(code="unreadable", kind="LaunchTemplate", name=template_id, detail=why)
                )

    def _name(self, template_id: str, name: str | None) -> None:
        if name:
            self.ids_by_name[name] = template_id

    def _read_version(self, wire: _TemplateVersionWire) -> None:
        template_id, number = wire.launch_template_id, wire.version_number
        self._name(template_id, wire.launch_template_name)
        self.latest[template_id] = max(number, self.latest.get(template_id, 0))
        if wire.default_version:
            self.default[template_id] = number
        data = wire.launch_template_data or _TemplateDataWire()
        key = template_id, str(number)
        if data.instance_type:
            self.instance_types[key] = data.instance_type
        if data.instance_market_options and data.instance_market_options.market_type == SPOT_MARKET:
            self.spot.add(key)
