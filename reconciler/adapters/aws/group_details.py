"""Reads and caches what new nodes of Auto Scaling groups will be: templates and node groups.

A version of a launch template and a launch configuration never change. Which version a word such as
$Latest means, and what EKS says of a managed node group, is read again after a while. What is
missing or may not be read is left out; then nothing is known of an empty group's nodes.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from reconciler.adapters.aws.clients import Clients
from reconciler.adapters.aws.errors import translated
from reconciler.adapters.aws.launch_template_cache import CachedTemplates, Template
from reconciler.adapters.aws.paging import chunks, entries
from reconciler.model.errors import OutcomeUnknown, PortError, Throttled, Unavailable
from reconciler.model.ids import Region
from reconciler.records.aws import Answer

VERSIONS_SECONDS: Final = 60.0
"""How long the versions of $Latest and $Default are fresh, for each call that this needs: one call
a minute, however many templates there are."""
NODE_GROUP_SECONDS: Final = 3600.0
FAILED_SECONDS: Final = 600.0
"""How long a refused question is not asked again."""
AGAIN_SECONDS: Final = 2.0
"""The same after a throttle or no answer, doubled each time in a row."""
PER_READ: Final = 20
"""Questions about single objects per read; the rest is left to the next reads."""
CONFIGURATIONS_MAX: Final = 50
NODE_GROUP_TAG: Final = "eks:nodegroup-name"
EKS_CLUSTER_TAG: Final = "eks:cluster-name"
Group = Mapping[str, Any]
_Key = tuple[Any, ...]
_PASSING: Final = (Throttled, Unavailable, OutcomeUnknown)
"""No answer: perhaps soon."""


class GroupDetails:
    """Answers about launch templates, launch configurations and managed node groups.

    Entries of groups that are gone are dropped.

    Args:
        now: The wall clock.
        monotonic: A clock that never jumps.
    """

    def __init__(
        self, now: Callable[[], datetime], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._templates = CachedTemplates(now, monotonic)
        self._kept: dict[_Key, tuple[float, list[Answer]]] = {}
        """Answers by question, and until when they are valid."""
        self._failures: dict[_Key, int] = {}
        """How many calls in a row were throttled or had no answer."""

    def answers(self, clients: Clients, region: Region, groups: Sequence[Group]) -> list[Answer]:
        """Return what is known of these groups' next nodes."""
        questions = list(_questions(clients, region, groups))
        wanted = [key for key, _, _ in questions]
        used = {*wanted}
        left = PER_READ
        silent: set[str] = set()
        """Kinds of questions that are left to the next read: another would take as long."""
        for key, lasts_seconds, ask in questions:
            if self._holds(key) or not left or key[0] in silent:
                continue
            left -= 1
            try:
                self._keep(key, lasts_seconds, ask())
            except PortError as error:
                self._keep_old(key, error)
                if isinstance(error, _PASSING):
                    silent.add(key[0])
        found = [each for key in wanted for each in self._kept.get(key, (0.0, []))[1]]
        read = partial(_templates, clients, region)
        found += self._templates.read(region, _by_word(groups), read, VERSIONS_SECONDS)
        found += self._versions(clients, region, groups, found, used)
        for key in [each for each in list(self._kept) if each[1] == region and each not in used]:
            del self._kept[key]
            self._failures.pop(key, None)
        return found

    def _versions(
        self,
        clients: Clients,
        region: Region,
        groups: Sequence[Group],
        named: Sequence[Answer],
        used: set[_Key],
    ) -> list[Answer]:
        """Return the versions with the instance type of groups that name none themselves.

        Args:
            clients: As for `answers`, and so are `region` and `groups`.
            region: As above.
            groups: As above.
            named: The versions that words such as $Latest mean.
            used: Collects the keys of what is returned.
        """
        numbers = _numbers(named)
        found: list[Answer] = []
        left = PER_READ
        for specification in filter(None, map(_template_without_types, groups)):
            by, name = _name_of(specification)
            version = specification.get("Version") or "$Default"
            number = numbers.get((name, version), version)
            key = ("version", region, name, number)
            used.add(key)
            # The meaning of a word is not known yet, or no longer.
            lasts_seconds = VERSIONS_SECONDS if number.startswith("$") else float("inf")
            if not self._holds(key) and left:
                left -= 1
                try:
                    self._keep(key, lasts_seconds, _version(clients, region, {by: name}, number))
                except PortError as error:
                    self._keep_old(key, error)
                    left = 0 if isinstance(error, _PASSING) else left
            found += self._kept.get(key, (0.0, []))[1]
        return found

    def _holds(self, key: _Key) -> bool:
        until, _ = self._kept.get(key, (0.0, []))
        return key in self._kept and self._monotonic() < until

    def _keep(self, key: _Key, lasts_seconds: float, answers: list[Answer]) -> None:
        self._kept[key] = (self._monotonic() + lasts_seconds, answers)
        self._failures.pop(key, None)

    def _keep_old(self, key: _Key, error: PortError) -> None:
        """Keep the last answer: for long after a refusal, for seconds after what may pass soon."""
        before = self._kept.get(key, (0.0, []))[1]
        if isinstance(error, _PASSING):
            failures = self._failures.get(key, 0)
            self._keep(key, min(AGAIN_SECONDS * 2.0 ** min(failures, 10), FAILED_SECONDS), before)
            self._failures[key] = failures + 1
        else:
            self._keep(key, FAILED_SECONDS, before)


def _questions(
    clients: Clients, region: Region, groups: Sequence[Group]
) -> Iterator[tuple[_Key, float, Callable[[], list[Answer]]]]:
    """Yield each question with its key and how long its answer is valid.

    Groups without instances come first: nothing else shows what their nodes will be.
    """
    configurations = {each.get("LaunchConfigurationName") for each in groups} - {None}
    for some in chunks(sorted(map(str, configurations)), CONFIGURATIONS_MAX):
        yield (
            ("configurations", region, *some),
            float("inf"),
            lambda some=some: _configurations(clients, region, some),  # type: ignore[misc]
        )
    for group in sorted(groups, key=lambda each: bool(each.get("Instances"))):
        tags = {tag["Key"]: tag.get("Value", "") for tag in group.get("Tags", ())}
        if NODE_GROUP_TAG in tags and EKS_CLUSTER_TAG in tags:
            place = tags[EKS_CLUSTER_TAG], tags[NODE_GROUP_TAG]
            yield (
                ("node-group", region, *place),
                NODE_GROUP_SECONDS,
                lambda place=place: _node_group(clients, region, *place),  # type: ignore[misc]
            )


def _templates(
    clients: Clients, region: Region, by: str, names: Sequence[str]
) -> list[dict[str, Any]]:
    key, arguments = "LaunchTemplates", {f"{by}s": list(names)}
    return entries(clients.ec2(region), "describe_launch_templates", key, arguments)


def _version(
    clients: Clients, region: Region, named: Mapping[str, str], number: str
) -> list[Answer]:
    """Return one version with its instance type and market only: user data may hold secrets."""
    with translated("describe_launch_template_versions", changing=False):
        ec2: Any = clients.ec2(region)
        answer = ec2.describe_launch_template_versions(**named, Versions=[number])
    versions = [
        _without_secrets(launch_template_version)
        for launch_template_version in answer["LaunchTemplateVersions"]
    ]
    return [{"LaunchTemplateVersions": versions}]


def _without_secrets(version: Mapping[str, Any]) -> dict[str, Any]:
    key = "LaunchTemplateData"
    kept = {name: value for name, value in version.items() if name != key}
    data = version.get(key) or {}
    market = (data.get("InstanceMarketOptions") or {}).get("MarketType")
    shown = {
        **({"InstanceType": data["InstanceType"]} if data.get("InstanceType") else {}),
        **({"InstanceMarketOptions": {"MarketType": market}} if market else {}),
    }
    return {**kept, key: shown}


def _configurations(clients: Clients, region: Region, names: list[str]) -> list[Answer]:
    with translated("describe_launch_configurations", changing=False):
        answer = clients.autoscaling(region).describe_launch_configurations(
            LaunchConfigurationNames=names
        )
    keys = ("LaunchConfigurationName", "InstanceType", "SpotPrice")
    found: list[Mapping[str, Any]] = list(answer["LaunchConfigurations"])
    return [{"LaunchConfigurations": [{k: each.get(k) for k in keys} for each in found]}]


def _node_group(clients: Clients, region: Region, cluster: str, name: str) -> list[Answer]:
    with translated("describe_nodegroup", changing=False):
        answer = clients.eks(region).describe_nodegroup(clusterName=cluster, nodegroupName=name)
    return [{"nodegroup": answer["nodegroup"]}]


def _specification(group: Group) -> Mapping[str, Any] | None:
    """Return the launch template of a group."""
    mixed = (group.get("MixedInstancesPolicy") or {}).get("LaunchTemplate") or {}
    found: Mapping[str, Any] | None = mixed.get("LaunchTemplateSpecification") or group.get(
        "LaunchTemplate"
    )
    return found


def _template_without_types(group: Group) -> Mapping[str, Any] | None:
    """Return the template of a group that neither names instance types nor lets AWS choose them."""
    mixed = (group.get("MixedInstancesPolicy") or {}).get("LaunchTemplate") or {}
    keys = ("InstanceType", "InstanceRequirements")
    named = any(override.get(key) for override in mixed.get("Overrides", ()) for key in keys)
    return None if named else _specification(group)


def _name_of(specification: Mapping[str, Any]) -> tuple[str, str]:
    """Return the argument that names a template, and the name."""
    by = "LaunchTemplateId" if specification.get("LaunchTemplateId") else "LaunchTemplateName"
    return by, str(specification.get(by, ""))


def _by_word(groups: Iterable[Group]) -> Iterator[Template]:
    """Yield the templates whose version groups name by a word."""
    for specification in filter(None, map(_specification, groups)):
        by, name = _name_of(specification)
        if name and str(specification.get("Version") or "$Default").startswith("$"):
            yield by, name


def _numbers(answers: Iterable[Answer]) -> dict[tuple[str, str], str]:
    """Return the number of the version for `$Latest` and `$Default`, by template and word."""
    found: dict[tuple[str, str], str] = {}
    words = {"$Latest": "LatestVersionNumber", "$Default": "DefaultVersionNumber"}
    for answer in answers:
        for template in answer.get("LaunchTemplates", ()):
            for word, key in words.items():
                for name in (template["LaunchTemplateId"], template.get("LaunchTemplateName", "")):
                    found[name, word] = str(template.get(key, word))
    return found
