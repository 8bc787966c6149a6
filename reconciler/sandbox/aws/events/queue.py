"""The interruption queue of a sandbox with its rules, as the Terraform module makes them."""

import json
from typing import Any, Final

import boto3

QUEUE_NAME: Final = "analytics-fleet-reconciler"
RULES: Final = {
    "spot-interruption": {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Spot Instance Interruption Warning"],
    },
    "rebalance": {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Instance Rebalance Recommendation"],
    },
    "state-change": {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Instance State-change Notification"],
    },
    "scheduled-change": {"source": ["aws.health"], "detail-type": ["AWS Health Event"]},
}
"""What terraform/reconciler sends to its queue, without what the sandbox never announces."""


def count_messages(url: str, region: str, name: str = QUEUE_NAME) -> int:
    """Return how many messages wait in the queue, those that a reader holds included."""
    session: Any = boto3.Session("sandbox", "sandbox", region_name=region)
    sqs: Any = session.client("sqs", endpoint_url=url)
    names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    try:
        queue_url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
        found = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=names)
    finally:
        sqs.close()
    return sum(int(found["Attributes"][each]) for each in names)


def make_interruption_queue(url: str, region: str, name: str = QUEUE_NAME) -> str:
    """Create queue and rules through the API, repeatably; return the queue's URL.

    Args:
        url: Endpoint of the emulated AWS; never a real one, the credentials are dummies.
        region: Where to make them.
        name: Of the queue, and the beginning of the rules' names.
    """
    session: Any = boto3.Session("sandbox", "sandbox", region_name=region)
    sqs: Any = session.client("sqs", endpoint_url=url)
    events: Any = session.client("events", endpoint_url=url)
    try:
        queue_url = str(sqs.create_queue(QueueName=name)["QueueUrl"])
        names = ["QueueArn"]
        facts = sqs.get_queue_attributes(QueueUrl=queue_url, AttributeNames=names)
        for rule, pattern in RULES.items():
            named = f"{name}-{rule}"
            events.put_rule(Name=named, EventPattern=json.dumps(pattern))
            target = {"Id": "queue", "Arn": facts["Attributes"]["QueueArn"]}
            events.put_targets(Rule=named, Targets=[target])
    finally:
        sqs.close()
        events.close()
    return queue_url
