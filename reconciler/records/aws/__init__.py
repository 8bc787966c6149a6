"""Decodes answers of AWS: `decode_cloud(split_answers(body, where, home), cluster=…)`."""

from reconciler.records.aws.activities import into_service, served_since
from reconciler.records.aws.answers import split_answers
from reconciler.records.aws.descriptions import read_descriptions
from reconciler.records.aws.fields import FLEET_ID_TAG, is_of_cluster
from reconciler.records.aws.group_descriptions import read_group_descriptions
from reconciler.records.aws.groups import (
    REFRESH_UNKNOWN,
    REFRESHING,
    is_ours,
    pool_keeps_running,
    with_memberships,
)
from reconciler.records.aws.instances import decode_instances
from reconciler.records.aws.launch_templates import ANSWERED_AT, UNKNOWN_TEMPLATES
from reconciler.records.aws.prices import decode_spot_prices
from reconciler.records.aws.state import ANSWER_KEYS, ASKED, Answer, decode_cloud

__all__ = [
    "ANSWERED_AT",
    "ANSWER_KEYS",
    "ASKED",
    "FLEET_ID_TAG",
    "REFRESHING",
    "REFRESH_UNKNOWN",
    "UNKNOWN_TEMPLATES",
    "Answer",
    "decode_cloud",
    "decode_instances",
    "decode_spot_prices",
    "into_service",
    "is_of_cluster",
    "is_ours",
    "pool_keeps_running",
    "read_descriptions",
    "read_group_descriptions",
    "served_since",
    "split_answers",
    "with_memberships",
]
