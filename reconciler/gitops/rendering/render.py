"""Renders a root module to files; pure: the same value gives the same bytes.

HCL comes from `templates/root`, values from the JSON serialiser: in `*.tfvars.json` every text is
literal, whatever it holds. Nothing here reads a clock, the environment or the target folder.
"""

from dataclasses import dataclass
from typing import Any

import orjson
from jinja2 import Environment, StrictUndefined

from reconciler.gitops.rendering.assets import MODULES, module_sources, read_template
from reconciler.gitops.rendering.hcl import to_hcl
from reconciler.gitops.rendering.root_module import RootModule, S3Backend
from reconciler.gitops.rendering.targets import MANIFEST

TFVARS = "fleets.auto.tfvars.json"
_TEMPLATES = ("main.tf", "outputs.tf", "versions.tf")
_VARIABLES_HEADER = (
    b"# Rendered by `reconciler render` from the variables of modules/fleets;"
    b" change the sector config, not this file.\n"
)
_GITIGNORE = b"""\
# Rendered by `reconciler render`. What Terraform writes here is not for git: plans and local state
# hold secrets, and the providers are large.
.terraform/
*.tfplan
*.tfstate
*.tfstate.*
crash*.log
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedFile:
    """Holds the path and the bytes of one file of a rendered root module."""

    path: str
    """Relative to the root module's folder, with `/`."""
    content: bytes


def render(root: RootModule) -> tuple[RenderedFile, ...]:
    """Return every file of the root module, sorted by path, the manifest included."""
    contents = rendered_code(root.region, root.backend)
    contents[TFVARS] = _json({"cluster_name": root.cluster_name, "fleets": root.fleets})
    contents[MANIFEST] = manifest([*contents, MANIFEST])
    return tuple(RenderedFile(path=path, content=contents[path]) for path in sorted(contents))


def rendered_code(region: str | None, backend: S3Backend | None) -> dict[str, bytes]:
    """Return every file of a root module except its data, by path: Terraform code and a .gitignore.

    It depends on nothing else of a sector config: everything else is data, in the tfvars file.
    """
    environment = _environment()
    values = _template_values(region, backend)
    contents = {
        name: environment.from_string(read_template(f"root/{name}.j2")).render(values).encode()
        for name in _TEMPLATES
    }
    for module in MODULES:
        for name, source in module_sources(module).items():
            contents[f"modules/{module}/{name}"] = source
    contents[".gitignore"] = _GITIGNORE
    # The set's own variables, so that the same rules apply to the root's var.fleets.
    contents["variables.tf"] = _VARIABLES_HEADER + contents["modules/fleets/variables.tf"]
    return contents


def manifest(paths: list[str]) -> bytes:
    """Return the manifest that lists these paths."""
    return _json({"files": sorted(paths)})


def _json(value: Any) -> bytes:
    """Return indented JSON with sorted keys and a newline at the end."""
    return orjson.dumps(
        value,
        default=dict,
        option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE,
    )


def _environment() -> Environment:
    """Return Jinja for HCL: undefined is an error, no HTML escaping, scalars through `| hcl`."""
    environment = Environment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - the output is HCL, quoted by its own filter
    )
    environment.filters["hcl"] = to_hcl
    return environment


def _template_values(region: str | None, backend: S3Backend | None) -> dict[str, Any]:
    """Return the values that the templates may use."""
    locks_in_s3 = backend is not None and backend.use_lockfile
    return {
        "backend_arguments": _backend_arguments(backend),
        "region": region,
        # use_lockfile came with 1.10; validation across variables with 1.9.
        "required_version": ">= 1.10" if locks_in_s3 else ">= 1.9",
    }


def _backend_arguments(backend: S3Backend | None) -> list[dict[str, Any]]:
    """Return arguments of the backend block, sorted and aligned as by `terraform fmt`."""
    if backend is None:
        return []
    arguments: dict[str, Any] = {
        "bucket": backend.bucket,
        "encrypt": backend.encrypt,
        "key": backend.key,
        "region": backend.region,
        "use_lockfile": backend.use_lockfile,
    }
    if backend.kms_key_id is not None:
        arguments["kms_key_id"] = backend.kms_key_id
    if backend.endpoint is not None:
        arguments["endpoints"] = {"s3": backend.endpoint}
        arguments["use_path_style"] = True
    width = max(map(len, arguments))
    return [
        {"padded_name": name.ljust(width), "value": arguments[name]} for name in sorted(arguments)
    ]
