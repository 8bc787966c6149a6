"""Reads one region's answers about our fleets and instances, raw as boto3 returns them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from reconciler.adapters.aws.errors import translated
from reconciler.adapters.aws.instance_cache import CachedInstances
from reconciler.adapters.aws.launch_template_cache import TEMPLATE_NAMES, CachedTemplates, Template
from reconciler.adapters.aws.paging import chunks, entries, listed
from reconciler.adapters.aws.rotating_reads import RotatingReads
from reconciler.adapters.aws.unlisted_fleets import UnlistedFleets
from reconciler.model.errors import Conflict, Forbidden, NotFound, Refused
from reconciler.model.fleet import CLUSTER_TAG, FLEET_TAG
from reconciler.model.ids import Region
from reconciler.records.aws import FLEET_ID_TAG, Answer, is_of_cluster

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

IDS_MAX = 200
"""The limit of values per filter in EC2's API."""
PAGE_INSTANCES = 200
"""EC2 answers whole lists slowly, and slows down clients that request them (user guide, "Paginated
API requests")."""
HISTORY_AGE = timedelta(hours=1)
"""Longer than the longest cool-off after a capacity error."""
HISTORY_AGES = (HISTORY_AGE, timedelta(minutes=10), timedelta(minutes=1))
"""How far back a fleet's history is read: the first of these for which it is read to its end."""
HISTORY_PAGES_MAX = 5
"""How many pages are read for each of these times."""
ENDED = frozenset({"shutting-down", "terminated"})
FLEET_STATES = ("submitted", "active", "modifying", "deleted-running", "deleted-terminating")


class FleetsReader:
    """Reads one region: one describe of each kind, and history only where something is wrong.

    Args:
        ec2: The region's client.
        cluster: The cluster's name in tags.
        now: The wall clock.
        instances: The cache of instances.
        unlisted: The cache of fleets that are read by their id.
        templates: The cache of launch templates.
        histories: The cache of fleets' histories.
    """

    def __init__(
        self,
        ec2: "EC2Client",
        cluster: str,
        now: Callable[[], datetime],
        instances: CachedInstances,
        unlisted: UnlistedFleets,
        templates: CachedTemplates,
        histories: RotatingReads,
    ) -> None:
        self._ec2 = ec2
        self._cluster = cluster
        self._now = now
        self._instances = instances
        self._unlisted = unlisted
        self._templates = templates
        self._histories = histories
        self._region = Region(ec2.meta.region_name)

    def answers(self) -> list[Answer]:
        """Return everything of ours in the region; raise PortErrors as `translated` makes them."""
        fleets = self.fleets()
        found: list[Answer] = [{"Fleets": fleets}]
        found.extend(self.launch_templates(fleets))
        reservations = self._reservations(fleets)
        found.append({"Reservations": reservations})
        found.append({"Fleets": self._not_listed(fleets, reservations)})
        troubled = [str(fleet["FleetId"]) for fleet in filter(_looks_troubled, fleets)]
        for answers in self._histories.read(self._region, troubled, self._history).values():
            found.extend(answers)
        return found

    def fleets(self, fleet_id: str | None = None) -> list[dict[str, Any]]:
        """Return fleets of the cluster, all or one; DescribeFleets cannot filter by tag."""
        arguments: dict[str, Any] = (
            {"FleetIds": [fleet_id]}
            if fleet_id
            else {
                "Filters": [
                    {"Name": "type", "Values": ["maintain"]},
                    {"Name": "fleet-state", "Values": list(FLEET_STATES)},
                ]
            }
        )
        found = self._pages("describe_fleets", "Fleets", arguments)
        return [fleet for fleet in found if is_of_cluster(_tags(fleet), self._cluster)]

    def fleets_of_any_owner(self, ids: Sequence[str]) -> list[dict[str, Any]]:
        """Return fleets of these ids, of every type and in every state, ours or not.

        Raises:
            NotFound: EC2 does not know one of them.
        """
        return self._pages("describe_fleets", "Fleets", {"FleetIds": list(ids)})

    def _not_listed(
        self, fleets: list[dict[str, Any]], reservations: list[dict[str, Any]]
    ) -> list[Mapping[str, Any]]:
        """Return fleets that the list leaves out, though living instances of ours name them."""
        named = {each for page in reservations for each in self._named_by(page["Instances"])}
        ids = named - {fleet.get("FleetId") for fleet in fleets}
        return self._unlisted.read(self._region, ids, self.fleets_of_any_owner)

    def _named_by(self, instances: Iterable[dict[str, Any]]) -> Iterator[str]:
        """Yield the fleets that launched those of them that live and carry our tags."""
        for instance in instances:
            tags = _tags(instance)
            ours = tags.get(CLUSTER_TAG) == self._cluster and FLEET_TAG in tags
            state = (instance.get("State") or {}).get("Name")
            if ours and FLEET_ID_TAG in tags and state not in ENDED:
                yield tags[FLEET_ID_TAG]

    def launch_templates(self, fleets: Iterable[dict[str, Any]]) -> list[Answer]:
        """Return the templates whose version fleets name by a word, to find its number.

        Without the right to read them the word itself is kept: only rolling updates need the
        number.
        """
        named = _templates_by_word(fleets)
        return self._templates.read(self._region, named, self._templates_named)

    def _templates_named(self, by: str, names: Sequence[str]) -> list[dict[str, Any]]:
        return self._pages("describe_launch_templates", "LaunchTemplates", {f"{by}s": list(names)})

    def _reservations(self, fleets: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return self._instances.read(self._region, fleets, self)

    def all_instances(
        self, between_pages: Callable[[], object] = lambda: None
    ) -> list[dict[str, Any]]:
        """Return instances with a tag that may make them ours; values are compared afterwards.

        Args:
            between_pages: Called before each further page is requested.
        """
        return self._tagged(between_pages=between_pages)

    def newer_instances(
        self, age_seconds: float, fleet_ids: Sequence[str], ids: Sequence[str]
    ) -> list[dict[str, Any]]:
        """Return those of these fleets launched within this time, and those of these ids."""
        minutes = {"Name": "launch-time", "Values": _minutes_since(self._now(), age_seconds)}
        newer = [
            each
            for chunk in chunks(list(fleet_ids), IDS_MAX)
            for each in self._tagged(minutes, {"Name": "tag:aws:ec2:fleet-id", "Values": chunk})
        ]
        seen = {instance["InstanceId"] for found in newer for instance in found["Instances"]}
        rest = [each for each in ids if each not in seen]
        older = (
            reservation
            for answer in self.reservations_of(rest)
            for reservation in answer["Reservations"]
        )
        return [*newer, *older]

    def _tagged(
        self, *filters: dict[str, Any], between_pages: Callable[[], object] = lambda: None
    ) -> list[dict[str, Any]]:
        keys = ["aws:ec2:fleet-id", "cluster", f"kubernetes.io/cluster/{self._cluster}"]
        tagged = [{"Name": "tag-key", "Values": keys}]
        return self._pages(
            "describe_instances",
            "Reservations",
            {"Filters": [*tagged, *filters], "PaginationConfig": {"PageSize": PAGE_INSTANCES}},
            between_pages,
        )

    def reservations_of(self, ids: Sequence[str]) -> Iterator[Answer]:
        """Yield the instances of these ids; by filter, so that unknown ids are not an error."""
        for chunk in chunks(list(ids), IDS_MAX):
            wanted = [{"Name": "instance-id", "Values": chunk}]
            yield {
                "Reservations": self._pages(
                    "describe_instances", "Reservations", {"Filters": wanted}
                )
            }

    def _history(self, fleet_id: str) -> list[Answer]:
        """Return the fleet's events of the last hour; none where EC2 refuses to answer.

        Without one fleet's history its saved state still counts; an error for the whole region
        would stop all purchases in it.

        Raises:
            Unavailable, Throttled: EC2 did not answer, or will be asked again soon.
        """
        try:
            records = self._records(fleet_id)
        except NotFound:
            return []  # the fleet was just deleted
        except (Forbidden, Refused, Conflict):
            records = None
        return [{"FleetId": fleet_id, "HistoryRecords": records}]

    def _records(self, fleet_id: str) -> list[Any]:
        """Return the events of the last hour; of a long history those of a shorter time.

        EC2 returns the oldest events first, and the newest ones are those that count.
        """
        records: list[Any] = []
        with translated(f"describe_fleet_history {fleet_id}", changing=False):
            for age in HISTORY_AGES:
                records, whole = self._records_since(fleet_id, self._now() - age)
                if whole:
                    break
        return records

    def _records_since(self, fleet_id: str, since: datetime) -> tuple[list[Any], bool]:
        """Return the first pages of events since then, and whether these are all."""
        arguments: dict[str, Any] = {"FleetId": fleet_id, "StartTime": since}
        records: list[Any] = []
        for _ in range(HISTORY_PAGES_MAX):
            page = self._ec2.describe_fleet_history(**arguments)
            records.extend(listed(page, "HistoryRecords"))
            if not page.get("NextToken"):
                return records, True
            arguments["NextToken"] = page["NextToken"]
        return records, False

    def _pages(
        self,
        operation: str,
        key: str,
        arguments: dict[str, Any],
        between_pages: Callable[[], object] = lambda: None,
    ) -> list[dict[str, Any]]:
        return entries(self._ec2, operation, key, arguments, between_pages)


def _minutes_since(now: datetime, age_seconds: float) -> list[str]:
    """Return every minute from then to now as a pattern of launch times, with a minute's margin.

    Source: EC2 API reference, DescribeInstances, filter `launch-time`: "you can use a wildcard".
    """
    first = now - timedelta(seconds=age_seconds) - timedelta(minutes=1)
    count = int(age_seconds // 60) + 4
    minutes = (first + timedelta(minutes=number) for number in range(count))
    return [f"{minute.astimezone(UTC):%Y-%m-%dT%H:%M}:*" for minute in minutes]


def _tags(entry: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag.get("Value", "") for tag in entry.get("Tags", [])}


def _is_deleted(fleet: dict[str, Any]) -> bool:
    return str(fleet.get("FleetState", "")).startswith("deleted")


def _looks_troubled(fleet: dict[str, Any]) -> bool:
    """Return whether it launches less than it should; a deleted fleet should launch nothing.

    A fleet without an id has no history to read.
    """
    if _is_deleted(fleet) or not fleet.get("FleetId"):
        return False
    target = fleet.get("TargetCapacitySpecification", {}).get("TotalTargetCapacity", 0)
    below = fleet.get("FulfilledCapacity", 0.0) < target
    return below or fleet.get("ActivityStatus") == "error"


def _templates_by_word(fleets: Iterable[dict[str, Any]]) -> Iterator[Template]:
    """Return the templates whose version is a word, without those of deleted fleets."""
    for fleet in fleets:
        if _is_deleted(fleet):
            continue
        for entry in fleet.get("LaunchTemplateConfigs", []):
            specification = entry.get("LaunchTemplateSpecification", {})
            version = specification.get("Version", "$Default")
            by = next(
                (
                    template_name
                    for template_name in TEMPLATE_NAMES
                    if specification.get(template_name)
                ),
                "",
            )
            if version.startswith("$") and by:
                yield by, specification[by]
