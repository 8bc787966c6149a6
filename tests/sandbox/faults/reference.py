"""Writes the reference part of docs/sandbox.md from the models of a fault script.

`python -m tests.sandbox.faults.reference` rewrites the file; a test fails while it differs.
"""

from pathlib import Path
from typing import Final

from pydantic import BaseModel

from reconciler.sandbox.faults import aws, kubernetes
from reconciler.sandbox.faults.base import When
from reconciler.sandbox.faults.script import FaultScript
from tests.unit.config.reference import BEGIN, END, section_table

PAGE: Final = Path(__file__).parents[3] / "docs" / "sandbox.md"
SECTIONS: Final[tuple[type[BaseModel], ...]] = (
    FaultScript,
    When,
    aws.AwsFaults,
    aws.CapacityFault,
    aws.LaunchFault,
    aws.LaunchDelay,
    aws.ModifyingFault,
    aws.InterruptionFault,
    aws.Throttling,
    aws.Bucket,
    aws.CallFault,
    kubernetes.KubernetesFaults,
    kubernetes.RequestFault,
)


def page_with_reference(page: str) -> str:
    """The page with its generated part as it should be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    tables = "\n".join(map(_table, SECTIONS))
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


def _table(model: type[BaseModel]) -> str:
    """A section's keys; those that all faults have stand once, under `When`."""
    lines = section_table(model).splitlines(keepends=True)
    if model is When or not issubclass(model, When):
        return "".join(lines) + "\n"
    common = {f"| `{field.alias or name}` |" for name, field in When.model_fields.items()}
    own = [line for line in lines if not line.startswith(tuple(common))]
    return "".join(own) + "\nAnd the keys of [When](#when).\n\n"


def main() -> None:
    """Rewrite the page."""
    PAGE.write_text(page_with_reference(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
