"""Builds the AWS adapters of every provider of nodes."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from reconciler.adapters.aws import AutoScalingCloud, Clients, Ec2FleetCloud
from reconciler.bootstrap.planning.providers import group_names
from reconciler.model.fleet import Provider
from reconciler.planner.settings import PlannerSettings

AwsClouds = dict[Provider, Ec2FleetCloud | AutoScalingCloud]


@contextmanager
def aws_clouds(
    settings: Callable[[], PlannerSettings],
    clients: Clients | None = None,
    awake_seconds: Callable[[], float] = time.monotonic,
) -> Iterator[AwsClouds]:
    """Yield the adapters of every provider; they are closed with the block.

    Args:
        settings: Returns the settings in force.
        clients: boto3 clients.
        awake_seconds: A clock that also runs while the machine is suspended.
    """
    shared = clients if clients is not None else Clients()
    cluster = settings().cluster
    with (
        closing(Ec2FleetCloud(cluster, shared, awake_seconds=awake_seconds)) as fleets,
        closing(
            AutoScalingCloud(
                cluster, lambda: group_names(settings()), shared, awake_seconds=awake_seconds
            )
        ) as groups,
    ):
        yield {"ec2-fleet": fleets, "asg": groups}
