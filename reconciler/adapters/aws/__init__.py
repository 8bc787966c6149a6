"""AWS as Cloud ports, `Ec2FleetCloud` and `AutoScalingCloud`, and as NoticeQueue, `SqsNotices`."""

from reconciler.adapters.aws.auto_scaling import AutoScalingCloud
from reconciler.adapters.aws.clients import Clients, home_region
from reconciler.adapters.aws.ec2_fleet import Ec2FleetCloud
from reconciler.adapters.aws.notices import SqsNotices

__all__ = ["AutoScalingCloud", "Clients", "Ec2FleetCloud", "SqsNotices", "home_region"]
