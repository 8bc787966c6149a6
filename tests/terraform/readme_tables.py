"""Writes the tables of variables and outputs into the modules' README files.

`python -m tests.terraform.readme_tables` brings them up to date; a test fails while they are not.
"""

import re
from pathlib import Path

MODULES = Path(__file__).parent.parent.parent / "terraform"
BEGIN, END = "<!-- tables: begin (generated) -->", "<!-- tables: end -->"
_BLOCK = re.compile(
    r'^(?P<kind>variable|output) "(?P<name>\w+)" \{\n(?P<body>.*?)^\}', re.MULTILINE | re.DOTALL
)
_ARGUMENT = re.compile(
    r"^  (?P<name>\w+)\s+= (?P<value>.*?)(?=^  \w|^$|\Z)", re.MULTILINE | re.DOTALL
)


def module_folders() -> list[Path]:
    """The folders of all modules that state variables."""
    return sorted(path.parent for path in MODULES.glob("*/variables.tf"))


def _blocks(module: Path, kind: str) -> dict[str, dict[str, str]]:
    """Arguments of the module's variable or output blocks by name, once formatted."""
    source = "\n".join(path.read_text("utf-8") for path in sorted(module.glob("*.tf")))
    return {
        block["name"]: {
            argument["name"]: argument["value"].strip()
            for argument in _ARGUMENT.finditer(block["body"])
        }
        for block in _BLOCK.finditer(source)
        if block["kind"] == kind
    }


def _cell(text: str) -> str:
    """A table cell: one line, no column separators."""
    return " ".join(text.split()).replace("|", "\\|")


def _short_type(written: str) -> str:
    """A type for reading: the fields of long objects are in variables.tf."""
    shown = _cell(written)
    return shown if len(shown) <= 80 else re.sub(r"object\(\{.*\}\)", "object({…})", shown)


def tables(module: Path) -> str:
    """The tables of one module, as Markdown."""
    lines = ["## Variables", "", "| name | type | default | description |", "|---|---|---|---|"]
    for name, arguments in _blocks(module, "variable").items():
        default = f"`{_cell(arguments['default'])}`" if "default" in arguments else "required"
        description = _cell(arguments["description"].strip('"').replace('\\"', '"'))
        lines.append(
            f"| `{name}` | `{_short_type(arguments['type'])}` | {default} | {description} |"
        )
    lines += ["", "## Outputs", "", "| name | description |", "|---|---|"]
    for name, arguments in _blocks(module, "output").items():
        description = _cell(arguments["description"].strip('"').replace('\\"', '"'))
        lines.append(f"| `{name}` | {description} |")
    return "\n".join(lines)


def with_tables(readme: str, module: Path) -> str:
    """The README with its tables as they ought to be."""
    before, rest = readme.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{tables(module)}\n\n{END}{after}"


def main() -> None:
    """Bring every module's README up to date."""
    for module in module_folders():
        path = module / "README.md"
        path.write_text(with_tables(path.read_text("utf-8"), module), "utf-8")


if __name__ == "__main__":
    main()
