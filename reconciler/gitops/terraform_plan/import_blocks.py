"""The import blocks of `reconciler import`, which are of use until their apply only.

A block that stays does no harm until its fleet is removed: then Terraform can plan nothing of the
root module any more, as there is no such target.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.gitops.rendering.render import TFVARS
from reconciler.gitops.terraform_plan.finding import Finding, refusal, warning
from reconciler.gitops.terraform_plan.planned import resources
from reconciler.ports.terraform import TerraformPlanJson
from reconciler.records.untrusted_json import mapping

IMPORTS = "imports.tf"
"""What `reconciler import` writes into a root module."""
_BYTES_MAX = 1 << 20
_BLOCK = (
    r'import \{\n  to = (module\.fleets\.module\.(fleet|group)\["([\w.-]+)"\]\.\w+\.\w+)\n'
    r'  id = "[\w.:/ -]+"\n\}\n'
)
_FILE = re.compile(rf"(?:#[^\n\r]*\n|\n|{_BLOCK})*", re.ASCII)
_BLOCKS = re.compile(rf"^{_BLOCK}", re.ASCII | re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportBlock:
    """Says which resource of a rendered root module takes over an existing one."""

    address: str
    call: str
    """`fleet` or `group`."""
    key: str
    """Name of the fleet or group in the root module."""


def has_import_blocks_only(text: str) -> bool:
    """Return whether a file is one that `reconciler import` writes."""
    return bool(text) and _FILE.fullmatch(text) is not None


def import_blocks(text: str) -> tuple[ImportBlock, ...]:
    """Return the blocks of such a file."""
    return tuple(ImportBlock(address=a, call=c, key=k) for a, c, k in _BLOCKS.findall(text))


def gone_imports(text: str, values: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Return the fleets that a file imports and the root module does not have, as one refusal.

    Refused is the file as soon as the fleet leaves the variables: a removal that was planned with
    it would be carried out, and every plan after it would fail.

    Args:
        text: The file.
        values: Values of the root module's variables.
    """
    fleets = mapping(values.get("fleets"))
    calls = {
        key: "group" if mapping(fleet).get("auto_scaling_group") else "fleet"
        for key, fleet in fleets.items()
    }
    gone = sorted(
        {
            import_block.key
            for import_block in import_blocks(text)
            if calls.get(import_block.key) != import_block.call
        }
    )
    if not gone:
        return ()
    more = f" and {len(gone) - 3} more" if len(gone) > 3 else ""
    what = (
        f"names {', '.join(gone[:3])}{more}, which {TFVARS} has not: once it is out of the state,"
        " Terraform can plan nothing here. Remove the file, which is of no use after its apply, or"
        " these blocks; or wait until the config that has the fleet is rendered"
    )
    return (refusal("import/gone", IMPORTS, what),)


def done_imports(module: Path, shown: TerraformPlanJson) -> tuple[Finding, ...]:
    """Return a warning when a root module still has imports, and a plan has none of them to do."""
    file = module / IMPORTS
    if not file.is_file() or file.stat().st_size > _BYTES_MAX:
        return ()
    blocks = import_blocks(file.read_text(encoding="utf-8", errors="replace"))
    importing = {resource.address for resource in resources(shown) if resource.importing}
    if not blocks or any(block.address in importing for block in blocks):
        return ()
    text = "everything that it names is in the state: remove the file"
    return (warning("import/done", IMPORTS, text),)


def variables_of(content: bytes) -> Mapping[str, Any]:
    """Return the values in a file of variables; none of what cannot be read."""
    try:
        return mapping(json.loads(content))
    except (ValueError, RecursionError):
        return {}
