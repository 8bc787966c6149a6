"""Reads a root module back from its rendered files.

The second loop does that in a process with little memory: nothing here loads the planner.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from reconciler.gitops.rendering.render import TFVARS
from reconciler.gitops.rendering.root_module import RootModule, S3Backend

MAIN = "main.tf"
"""The file of a render that has the provider."""
VERSIONS = "versions.tf"
"""The file of a render that has the backend."""
_STRING = r'"(?:[^"\\\n$%]|\\.|\$\$\{|%%\{|[$%](?!\{))*"'
_REGION = re.compile(rf"^  region = ({_STRING})$", re.MULTILINE)
_ARGUMENT = re.compile(
    rf'^    (\w+) += (?:({_STRING})|(true|false)|\{{ "s3" = ({_STRING}) \}})$', re.MULTILINE
)


def region_named(main: str) -> str | None:
    """Return the Region that a rendered `main.tf` names for its provider; None: none."""
    found = _REGION.search(main)
    return None if found is None else _literal(found[1])


def root_read(contents: Mapping[str, bytes]) -> RootModule:
    """Return a root module from its rendered files, by their path in its folder.

    Raises:
        ValueError, KeyError, TypeError, RecursionError: The values are not those of a render.
    """
    values = json.loads(contents.get(TFVARS, b""))
    return RootModule(
        cluster_name=values["cluster_name"],
        fleets=dict(values["fleets"]),
        region=region_named(contents.get(MAIN, b"").decode(errors="replace")),
        backend=backend_named(contents.get(VERSIONS, b"").decode(errors="replace")),
    )


def backend_named(versions: str) -> S3Backend | None:
    """Return the backend that a rendered `versions.tf` names; None: none that a render writes."""
    arguments: dict[str, Any] = {
        name: _literal(text) if text else _literal(endpoint) if endpoint else flag == "true"
        for name, text, flag, endpoint in _ARGUMENT.findall(versions)
    }
    arguments["endpoint"] = arguments.pop("endpoints", None)
    arguments.pop("use_path_style", None)
    try:
        return S3Backend(**arguments)
    except TypeError:
        return None


def _literal(text: str) -> str:
    """Return the value of an HCL string without interpolation, as `to_hcl` writes it."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return str(value).replace("$${", "${").replace("%%{", "%{")
