"""Replaces moto's linear searches by look-ups.

Each passes any other question to moto. With a thousand instances the searches take most of a
launch, and every other call waits for it.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from moto.ec2 import utils
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix

_WILDCARDS = frozenset("*?[")
_PATTERNS_MAX = 1000


def look_instead(backend: Any) -> None:
    """Have a Region's backend look up tags, instances and images; call it once."""
    backend.describe_tags = _QuickTags(backend)
    backend.get_instance = _QuickInstance(backend)
    backend.describe_images = _QuickImages(backend)
    keep_patterns()


def keep_patterns() -> None:
    """Translate each value of a filter once, and not for every instance again."""
    module: Any = utils
    if not hasattr(module.simple_aws_filter_to_re, "cache_info"):
        module.simple_aws_filter_to_re = lru_cache(_PATTERNS_MAX)(module.simple_aws_filter_to_re)


class _QuickTags:
    """Moto's `describe_tags`, with the tags of one resource looked up instead of searched for.

    Moto matches every tag of the account for each resource it shows: minutes for 1,000 instances.
    """

    def __init__(self, backend: Any) -> None:
        self._tags = backend.tags
        self._search = backend.describe_tags

    def __call__(self, filters: Mapping[str, Sequence[str]] | None = None) -> Any:
        """Return the tags that match, as moto answers them."""
        if filters is None or set(filters) != {"resource-id"}:
            return self._search(filters=filters)
        keys = filters["resource-id"]
        if len(keys) != 1 or set(keys[0]) & set("*?"):
            return self._search(filters=filters)
        kind = EC2_PREFIX_TO_RESOURCE.get(get_prefix(keys[0]), "")
        return [
            {"resource_id": keys[0], "key": name, "value": value, "resource_type": kind}
            for name, value in self._tags.get(keys[0], {}).items()
        ]


class _QuickInstance:
    """Moto's `get_instance`, newest first: a launched instance is requested at once.

    Moto copies every reservation first.
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._search = backend.get_instance

    def __call__(self, instance_id: str) -> Any:
        """Return the instance; moto's own error when there is none."""
        for reservation in reversed(self._backend.reservations.values()):
            for instance in reservation.instances:
                if instance.id == instance_id:
                    return instance
        return self._search(instance_id)


class _QuickImages:
    """Moto's `describe_images`, with one image looked up: each launch reads its own.

    Moto matches a thousand images' names.
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._search = backend.describe_images

    def __call__(
        self,
        ami_ids: list[str] | None = None,
        filters: Mapping[str, Any] | None = None,
        exec_users: list[str] | None = None,
        owners: list[str] | None = None,
    ) -> Any:
        """Return the images that match, as moto answers them."""
        wanted = filters.get("image-id") if filters is not None and len(filters) == 1 else None
        others = ami_ids or exec_users or owners
        if others or not isinstance(wanted, str) or _WILDCARDS & set(wanted):
            return self._search(ami_ids, filters, exec_users, owners)
        image = self._backend.amis.get(wanted)
        return [] if image is None else [image]
