"""AWS as the Cloud port, `Ec2FleetCloud(cluster)`, and as the NoticeQueue, `SqsNotices(url)`."""

from reconciler.adapters.aws.clients import Clients, home_region
from reconciler.adapters.aws.ec2_fleet import Ec2FleetCloud
from reconciler.adapters.aws.notices import SqsNotices

__all__ = ["Clients", "Ec2FleetCloud", "SqsNotices", "home_region"]
