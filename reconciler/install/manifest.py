"""Renders install.yaml; pure: the same settings give the same bytes."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from jinja2 import Environment, StrictUndefined

from reconciler.gitops.rendering.assets import read_template
from reconciler.gitops.rendering.targets import DEFAULT_OUTPUT
from reconciler.install.settings import CONFIG_FILE, InstallSettings

TEMPLATES: Final = (
    "namespace",
    "service_account",
    "rbac",
    "config_map",
    "deployment",
    "service",
    "network_policy",
    "disruption_budget",
)
"""In the order in which they must be applied."""
NODE_WATCH_TEMPLATES: Final = (
    "node_watch_namespace",
    "node_watch_rbac",
    "node_watch_policy",
    "node_watch_daemon_set",
)
"""What `--node-watch` adds, in the same order."""
ALWAYS_THERE: Final = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
"""Namespaces of every cluster, which are not ours to label, as pods of others are there."""
_PLAIN_LINES: Final = re.compile(r"(?:[\x20-\x7e\u00a1-\ud7ff\ue000-\ufefe\uff00-\ufffd]*\n)+")
"""What a YAML block scalar can hold unchanged: printable lines, every line ended."""


def render_manifest(settings: InstallSettings, version: str) -> str:
    """Every object of the install, as one YAML stream.

    Args:
        settings: The settings of the install.
        version: Of this program, for the label.
    """
    environment = Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - the output is YAML, quoted by its own filters
    )
    environment.filters["yaml"] = to_yaml
    environment.filters["block"] = to_block
    values = _values(settings, version)
    templates = (*TEMPLATES, *(NODE_WATCH_TEMPLATES if settings.node_watch else ()))
    if settings.namespace in ALWAYS_THERE:
        templates = tuple(template for template in templates if not template.endswith("namespace"))
    documents = (
        environment.from_string(read_template(f"install/{name}.yaml.j2")).render(values)
        for name in templates
    )
    header = environment.from_string(read_template("install/header.yaml.j2")).render(values)
    return header + "".join(f"---\n{document}" for document in documents)


def to_yaml(value: Any) -> str:
    """Return a scalar as YAML: strings are in double quotes, whatever they hold.

    Raises:
        TypeError: The value is not a scalar (an undefined template variable, say).
    """
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    if not isinstance(value, str):
        raise TypeError(f"no YAML scalar for {type(value).__name__}")
    # JSON's escapes are valid YAML except surrogate pairs, so other characters are not escaped.
    quoted = json.dumps(value, ensure_ascii=False)
    return re.sub(
        r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]", lambda m: f"\\u{ord(m[0]):04x}", quoted
    )


def to_block(text: str, indent: int) -> str:
    """Return a text as a block scalar, as in the file; quoted where that is not possible."""
    if not _PLAIN_LINES.fullmatch(text) or text.endswith("\n\n") or text[0] in " \n":
        return to_yaml(text)
    lines = text.removesuffix("\n").split("\n")
    return "|\n" + "\n".join(" " * indent + line if line else "" for line in lines)


def _values(settings: InstallSettings, version: str) -> dict[str, Any]:
    files = {CONFIG_FILE: settings.config, **settings.extra_files}
    return {
        "s": settings,
        "version": re.sub(r"[^\w.-]", "-", version)[:63],
        "files": [{"key": _key(path), "path": path, "text": files[path]} for path in sorted(files)],
        "config_hash": _digest(files),
        "arguments": _arguments(settings),
        "node_watch_namespace": node_watch_namespace(settings),
    }


def node_watch_namespace(settings: InstallSettings) -> str:
    """Return the namespace of the node watch: its own, since its pods use the host network."""
    if settings.namespace in ALWAYS_THERE:
        return settings.namespace
    return f"{settings.namespace}-node-watch"


def _key(path: str) -> str:
    """Return a ConfigMap's key for a path."""
    return path.replace("/", "..")


def _digest(files: Mapping[str, str]) -> str:
    """Return a hash that changes with each file; the Helm chart makes the same one."""
    text = "".join(f"{path}\n{files[path]}\n" for path in sorted(files))
    return hashlib.sha256(text.encode()).hexdigest()


def _arguments(settings: InstallSettings) -> list[str]:
    arguments = ["run", "--config", CONFIG_FILE, "--cluster-name", settings.cluster]
    if settings.gitops is None:
        return arguments
    second = settings.gitops
    return [
        *(*arguments, "--gitops", "--repository", second.repository),
        *("--branch", second.branch, "--mode", second.mode, "--clone", "/tmp/clone"),  # noqa: S108 - the pod's own volume
        *(each for path in second.configs for each in ("--gitops-config", path)),
        *(("--out", second.output) if second.output != DEFAULT_OUTPUT else ()),
    ]
