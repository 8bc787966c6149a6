"""The Cloud port over files that the AWS CLI wrote: one observation, no change."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from reconciler.adapters.files.reading import read_inputs
from reconciler.model.errors import NotFound, Refused
from reconciler.model.fleet import Fleet, Instance, UsdPerHour
from reconciler.model.ids import FleetId, InstanceId, Region
from reconciler.model.snapshot import CloudState
from reconciler.records.aws import decode_cloud, decode_spot_prices, split_answers

UNSTATED: Final = Region("the home region")
"""Stands for the region of answers that do not state theirs, until it is known."""


class FileCloud:
    """EC2 from files; `CloudFiles.of_region` creates one.

    Args:
        answers: The answers, each with its region.
        cluster: The cluster's name in the tags of fleets and instances.
        groups: Auto Scaling groups that are ours regardless of their tags.
    """

    def __init__(
        self,
        answers: Sequence[tuple[Region, Mapping[str, Any]]],
        *,
        cluster: str,
        groups: frozenset[str] = frozenset(),
    ) -> None:
        self._state = decode_cloud(answers, cluster=cluster, groups=groups)
        self._spot_prices = decode_spot_prices(answers)

    def observe(self, regions: Sequence[Region]) -> CloudState:  # noqa: ARG002 - part of the port
        """Return the content of the files, of any region."""
        return self._state

    def spot_prices(self) -> dict[tuple[Region, str], UsdPerHour]:
        """Return the latest spot price per region and instance type, of the cheapest zone."""
        return self._spot_prices

    def fleet(self, region: Region, fleet_id: FleetId) -> Fleet:
        """Return one fleet of the files; NotFound when they do not have it."""
        for fleet in self._state.fleets:
            if (fleet.region, fleet.id) == (region, fleet_id):
                return fleet
        raise NotFound(fleet_id, f"is not in the files' answers of {region}")

    def fleet_state(self, region: Region, fleet_id: FleetId) -> str:
        """Return the state of a fleet of the files that is ours; NotFound when they have none."""
        return self.fleet(region, fleet_id).state

    def set_target_capacity(
        self,
        region: Region,  # noqa: ARG002 - part of the port
        fleet_id: FleetId,
        capacity: int,  # noqa: ARG002 - part of the port
    ) -> None:
        """Raise Refused."""
        _refuse(fleet_id)

    def instances(self, region: Region, ids: Sequence[InstanceId]) -> tuple[Instance, ...]:
        """Return those of the instances that are in the files."""
        wanted = set(ids)
        return tuple(
            instance
            for instance in self._state.instances
            if instance.region == region and instance.id in wanted
        )

    def terminate(
        self,
        region: Region,  # noqa: ARG002 - part of the port
        fleet_id: FleetId,  # noqa: ARG002 - part of the port
        ids: Sequence[InstanceId],
        *,
        lower_target: bool,  # noqa: ARG002 - part of the port
        expected_target: int | None = None,  # noqa: ARG002 - part of the port
    ) -> int | None:
        """Raise Refused."""
        _refuse(", ".join(ids))


class CloudFiles:
    """The files of `--aws`, which are read once, whatever the home region will be.

    Args:
        paths: Files, `-` for standard input.

    Raises:
        InputError: A file cannot be read or is not an answer of the AWS CLI.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._answers = [
            answer
            for where, body in read_inputs(paths)
            for answer in split_answers(body, where, UNSTATED)
        ]

    @property
    def stated_regions(self) -> frozenset[Region]:
        """Return the regions that the answers state (`Region`)."""
        return frozenset(region for region, _ in self._answers) - {UNSTATED}

    @property
    def leave_regions_open(self) -> bool:
        """Return whether an answer does not state its region."""
        return any(region == UNSTATED for region, _ in self._answers)

    def of_region(
        self, home: Region, *, cluster: str, groups: frozenset[str] = frozenset()
    ) -> FileCloud:
        """Return EC2 as the files show it.

        Args:
            home: The region of answers that do not state theirs.
            cluster: The cluster's name in the tags of fleets and instances.
            groups: Auto Scaling groups that are ours regardless of their tags.
        """
        answers = [
            (home if region == UNSTATED else region, answer) for region, answer in self._answers
        ]
        return FileCloud(answers, cluster=cluster, groups=groups)


def _refuse(where: str) -> NoReturn:
    raise Refused(where, "this was read from files, which cannot be changed")
