"""Auto Scaling groups found by their tags, as AWS prints them; a config without sectors."""

from typing import Any

from tests.cli.inputs import Desk, Json

CONFIG = "cluster: analytics\nregions: [us-west-2]\n"
AUTOSCALER = "k8s.io/cluster-autoscaler"
TEMPLATE = f"{AUTOSCALER}/node-template"
FOUND = {f"{AUTOSCALER}/enabled": "true", f"{AUTOSCALER}/analytics": "owned"}


def group(name: str = "workers", *, desired: int = 0, **changed: Any) -> Json:
    """An entry of describe-auto-scaling-groups; `tags` replace those by which it is found."""
    tags = changed.pop("tags", FOUND)
    return {
        "AutoScalingGroupName": name,
        "MinSize": 0,
        "MaxSize": 3,
        "DesiredCapacity": desired,
        "Instances": [],
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
        "MixedInstancesPolicy": {
            "LaunchTemplate": {
                "Overrides": [{"InstanceType": "m5.xlarge"}, {"InstanceType": "c5.xlarge"}]
            }
        },
        **changed,
    }


def plan_of(desk: Desk, *objects: Json, aws: Json) -> Json:
    """The plan with a config that names no sectors."""
    desk.write("sectors.yaml", CONFIG)
    return desk.plan_of(*objects, aws=aws)
