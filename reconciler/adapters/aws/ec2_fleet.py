"""The Cloud port over EC2 Fleets of type maintain."""

import time
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from reconciler.adapters.aws.clients import Clients
from reconciler.adapters.aws.errors import translated
from reconciler.adapters.aws.fleets_reader import FleetsReader
from reconciler.adapters.aws.instance_cache import CachedInstances
from reconciler.adapters.aws.launch_template_cache import CachedTemplates
from reconciler.adapters.aws.paging import chunks
from reconciler.adapters.aws.regions import RegionReaders, observed, raw_answers
from reconciler.adapters.aws.replaced_targets import ReplacedTargets
from reconciler.adapters.aws.retries import change
from reconciler.adapters.aws.rotating_reads import RotatingReads
from reconciler.adapters.aws.unlisted_fleets import UnlistedFleets
from reconciler.model.errors import Forbidden, NotFound, Refused, TerminationProtected
from reconciler.model.fleet import Fleet, Instance
from reconciler.model.ids import FleetId, InstanceId, Region
from reconciler.model.snapshot import CloudState
from reconciler.ports.cloud import lowered_target
from reconciler.records.aws import Answer, decode_cloud, decode_instances

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

TERMINATE_MAX = 100
"""Instances per call; EC2 fails the whole call if it refuses one of them."""


def wall_clock() -> datetime:
    """Return the current time, which limits how far back AWS's history is read."""
    return datetime.now(UTC)  # noqa: TID251 - only how far back EC2's history is read


class Ec2FleetCloud:
    """EC2 Fleets of one cluster.

    Rights: ec2:DescribeFleets, DescribeFleetHistory, DescribeInstances, DescribeLaunchTemplates
    (optional), ModifyFleet, TerminateInstances.

    Args:
        cluster: The cluster's name in the tags of fleets and instances.
        clients: boto3 clients.
        now: The wall clock.
        awake_seconds: A clock that never jumps, and also runs while the machine is suspended, so
            that older knowledge expires.
    """

    def __init__(
        self,
        cluster: str,
        clients: Clients | None = None,
        now: Callable[[], datetime] = wall_clock,
        awake_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._clients = clients if clients is not None else Clients()
        self._now = now
        self._regions = RegionReaders(self._answers)
        self._instances = CachedInstances(awake_seconds)
        self._unlisted = UnlistedFleets(awake_seconds)
        self._templates = CachedTemplates(now, awake_seconds)
        self._targets = ReplacedTargets(awake_seconds)
        self._histories = RotatingReads()

    def observe(self, regions: Sequence[Region]) -> CloudState:
        """See ports.cloud; a slow region is given a limited time once another has answered.

        Raises:
            PortError: No region answered; the first one's error.
        """
        return observed(
            self._regions, regions, self._decoded, self._clients.server_time, "ec2-fleet"
        )

    def _decoded(self, answers: Sequence[tuple[Region, Answer]]) -> CloudState:
        return decode_cloud(answers, cluster=self._cluster, asked=True)

    def _answers(self, region: Region) -> list[Answer]:
        with translated(f"fleets of {region}", changing=False):
            return [self._up_to_date(region, answer) for answer in self._reader(region).answers()]

    def _up_to_date(self, region: Region, answer: Answer) -> Answer:
        """Return the answer with our last targets where it is older than those."""
        fleets = answer.get("Fleets")
        if not fleets:
            return answer
        return {**answer, "Fleets": self._targets.corrected(region, fleets)}

    def raw(self, regions: Sequence[Region]) -> dict[Region, list[Answer]]:
        """Return the answers themselves, per region; a region's error is raised."""
        return raw_answers(self._answers, regions)

    def fleet(self, region: Region, fleet_id: FleetId) -> Fleet:
        """Return one fleet, read now; NotFound when it is gone, ended or not ours."""
        return self._read(region, fleet_id, partial(self._up_to_date, region))

    def _read(
        self, region: Region, fleet_id: FleetId, targets: Callable[[Answer], Answer]
    ) -> Fleet:
        """Return one fleet, with its targets corrected by `targets`; raises as `fleet`."""
        reader = self._reader(region)
        with translated(f"fleet {fleet_id}", changing=False):
            found = reader.fleets(fleet_id)
        answers: list[Answer] = [targets({"Fleets": found}), *reader.launch_templates(found)]
        state = decode_cloud(((region, answer) for answer in answers), cluster=self._cluster)
        for fleet in state.fleets:
            if fleet.id == fleet_id:
                return fleet
        raise NotFound(f"fleet {fleet_id}", f"is not a fleet of {self._cluster} in {region}")

    def fleet_state(self, region: Region, fleet_id: FleetId) -> str:
        """See ports.cloud; EC2 lists fleets of type instant only by their id."""
        with translated(f"fleet {fleet_id}", changing=False):
            found = self._reader(region).fleets_of_any_owner([fleet_id])
            if found:
                return str(found[0]["FleetState"]).replace("_", "-")
        raise NotFound(f"fleet {fleet_id}", f"is not a fleet in {region}")

    def set_target_capacity(self, region: Region, fleet_id: FleetId, capacity: int) -> None:
        """Set the fleet's target to `capacity` instances; end none."""
        change(
            f"fleet {fleet_id}",
            self._clients.ec2(region, changing=True).modify_fleet,
            self._clients.attempts,
            FleetId=fleet_id,
            ExcessCapacityTerminationPolicy="no-termination",
            TargetCapacitySpecification={"TotalTargetCapacity": capacity},
        )
        self._targets.changed(region, fleet_id, capacity)

    def instances(self, region: Region, ids: Sequence[InstanceId]) -> tuple[Instance, ...]:
        """Return those of the instances that EC2 still lists, read now."""
        if not ids:
            return ()
        answers = self._reader(region).reservations_of(ids)
        found = {
            instance.id: instance
            for answer in answers
            for instance in decode_instances(answer, region)
        }
        return tuple(found[key] for key in sorted(found))

    def terminate(
        self,
        region: Region,
        fleet_id: FleetId,
        ids: Sequence[InstanceId],
        *,
        lower_target: bool,
        expected_target: int | None = None,
    ) -> int | None:
        """See ports.cloud; the target is lowered first, or EC2 would replace the instances.

        It is lowered from what EC2 shows, also where that may be older than our last change: if
        somebody else has set it back, theirs must not be overwritten. For instances that turn out
        to be protected from termination it is not raised here: the fleet is still being modified,
        and the next plan raises it, as after a crash between the two steps.
        """
        target: int | None = None
        if lower_target:
            shown = self._read(region, fleet_id, lambda answer: answer)
            target = lowered_target(shown, ids, expected_target)
            self.set_target_capacity(region, fleet_id, target)
        try:
            self.terminate_instances(region, ids)
        except TerminationProtected as error:
            error.target = target
            raise
        return target

    def terminate_instances(self, region: Region, ids: Sequence[InstanceId]) -> None:
        """Terminate instances; those that are gone already count as terminated.

        Raises:
            TerminationProtected: EC2 refuses to end some; all others are terminated.
        """
        refusals: list[TerminationProtected] = []
        for chunk in chunks(sorted(set(ids)), TERMINATE_MAX):
            refusals += self._terminate_unprotected(region, chunk)
        if refusals:
            named = frozenset().union(*(refusal.instances for refusal in refusals))
            raise TerminationProtected(refusals[0].where, refusals[0].what, named)

    def _terminate_unprotected(
        self, region: Region, ids: Sequence[InstanceId]
    ) -> list[TerminationProtected]:
        """Terminate instances; return EC2's refusals for those protected from termination.

        EC2 names one of them at a time, and then ends no instance of its zone. So each call leaves
        out at least one more.
        """
        refusals: list[TerminationProtected] = []
        left = list(ids)
        while left:
            try:
                self._terminate_living(region, left)
            except TerminationProtected as error:
                named = error.instances.intersection(left)
                if not named:
                    raise Refused(error.where, error.what) from error
                refusals.append(error)
                left = [each for each in left if each not in named]
            else:
                break
        return refusals

    def _terminate_living(self, region: Region, ids: Sequence[InstanceId]) -> None:
        """Terminate instances, without those that are gone already."""
        try:
            self._terminate(region, ids)
        except (NotFound, Forbidden):
            # With rights scoped by tag, EC2 answers 403 also for an instance that is gone, since
            # that has no tags any more. The call is repeated for the remaining ones.
            left = [
                instance.id
                for instance in self.instances(region, ids)
                if instance.state not in {"terminated", "shutting-down"}
            ]
            if len(left) == len(ids):
                raise
            if left:
                self._terminate(region, left)

    def _terminate(self, region: Region, ids: Sequence[InstanceId]) -> None:
        try:
            change(
                f"instances {', '.join(ids)}"[:200],
                self._clients.ec2(region, changing=True).terminate_instances,
                self._clients.attempts,
                InstanceIds=list(ids),
            )
        finally:
            self._instances.ended(region, ids)

    def expect_end(self, ids: Collection[InstanceId]) -> bool:
        """Read these instances again in each observation of the next minute: they are to end.

        Returns:
            Whether at least one of them is an instance that was observed.
        """
        return self._instances.expect_end(frozenset(ids))

    def close(self) -> None:
        """Close all connections."""
        self._instances.close()
        self._clients.close()

    def _ec2(self, region: Region) -> "EC2Client":
        return self._clients.ec2(region)

    def _reader(self, region: Region) -> FleetsReader:
        return FleetsReader(
            self._ec2(region),
            self._cluster,
            self._now,
            self._instances,
            unlisted=self._unlisted,
            templates=self._templates,
            histories=self._histories,
        )
