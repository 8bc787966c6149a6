"""Writes values as HCL expressions that mean exactly those values."""

from collections.abc import Mapping
from typing import Any

_ESCAPES = {
    **{code: f"\\u{code:04x}" for code in (*range(0x20), 0x7F, 0x2028, 0x2029)},
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
}
"""JSON's escapes except \b and \f, which HCL does not know."""


def to_hcl(value: Any) -> str:
    """Return an HCL expression for a scalar, or for a mapping of scalars on one line.

    Interpolation and directives are escaped, so a text is always literal.

    Raises:
        TypeError: The value has no HCL form here (an undefined template variable, a float).
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        quoted = value.translate(_ESCAPES).replace("${", "$${").replace("%{", "%%{")
        return f'"{quoted}"'
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{to_hcl(k)} = {to_hcl(value[k])}" for k in sorted(value)) + " }"
    raise TypeError(f"no HCL form for {type(value).__name__}")
