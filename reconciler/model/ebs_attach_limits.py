"""How many EBS volumes a node attaches in addition to its own, until its CSINode says so.

Source: Amazon EC2 User Guide, "Amazon EBS volume limits for Amazon EC2 instances" (read 2026-11),
and the EBS CSI driver's default of 25 for instances that share 28 attachments with network
interfaces, NVMe instance store and the root volume.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

_INSTANCE_TYPE = re.compile(r"([a-z]+\d+[a-z0-9-]*)\.([a-z0-9-]+)")
_XEN = frozenset({"m4", "c4", "r4", "m3", "c3", "r3", "t2", "i3", "x1", "x1e", "d2", "h1"})
_XEN_LIMIT = 39
_SHARED_LIMIT = 25
_DEDICATED = re.compile(r"([cmr]7(a|i|i-flex|iz)|[cmrx]8g\w*|i8g|i7ie|g6e?|gr6|u7i\S*)")
_DEDICATED_LIMITS = {"16xlarge": 48, "24xlarge": 64, "32xlarge": 88, "48xlarge": 128}
_DEDICATED_LIMIT = 32
_ROOT = 1
"""The root volume takes one of the attachments that are dedicated to EBS."""


@lru_cache(maxsize=4096)
def ebs_limit(instance_type: str) -> int | None:
    """Return the limit for an instance type; None for what is no EC2 instance type."""
    match = _INSTANCE_TYPE.fullmatch(instance_type)
    if match is None:
        return None
    family, size = match.groups()
    if family in _XEN:
        return _XEN_LIMIT
    if _DEDICATED.fullmatch(family):
        return _DEDICATED_LIMITS.get(size, _DEDICATED_LIMIT) - _ROOT
    return _SHARED_LIMIT


def least_ebs_limit(instance_types: Iterable[str]) -> int | None:
    """Return the lowest limit of these types; None if one of them has none."""
    limits = [ebs_limit(name) for name in instance_types]
    known = [limit for limit in limits if limit is not None]
    return min(known) if known and len(known) == len(limits) else None
