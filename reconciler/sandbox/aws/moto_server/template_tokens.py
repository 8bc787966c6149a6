"""Client tokens of CreateLaunchTemplate, which moto does not know."""

from collections.abc import Mapping
from typing import Any


class TemplateTokens:
    """Stores which request made a launch template.

    EC2 answers a repeated CreateLaunchTemplate as it did the first time. Clients repeat a request
    whose answer was slow.

    Args:
        backend: Moto's, of one region.
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._names: dict[str, str] = {}
        """Of launch templates, by token."""

    def made(self, token: str, name: str) -> Mapping[str, Any] | None:
        """Return the template that an earlier request with this token made; None for a first one.

        Args:
            token: Of the request; empty: it has none.
            name: Name of the requested template.
        """
        known = {
            launch_template.name: launch_template
            for launch_template in self._backend.launch_templates.values()
        }
        if self._names.get(token) == name and name in known:
            template = known[name]
            return {
                "CreateTime": template.default_version().create_time,
                "DefaultVersionNumber": template.default_version_number,
                "LatestVersionNumber": template.latest_version().number,
                "LaunchTemplateId": template.id,
                "LaunchTemplateName": template.name,
                "Tags": template.get_tags(),
            }
        if token and name not in known:
            self._names[token] = name
        return None
