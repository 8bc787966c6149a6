"""AWS as the Cloud port: `Ec2FleetCloud(cluster)`."""

from reconciler.adapters.aws.clients import Clients, home_region
from reconciler.adapters.aws.ec2_fleet import Ec2FleetCloud

__all__ = ["Clients", "Ec2FleetCloud", "home_region"]
