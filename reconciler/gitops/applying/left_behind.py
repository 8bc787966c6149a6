"""Imports what an interrupted apply left in EC2 into the next plan, with Terraform imports.

A process that is killed during an apply may have created fleets that are in no state. Created again
they would exist twice, and the launch template's name would be taken.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from reconciler.gitops.rendering.hcl import to_hcl
from reconciler.gitops.terraform_plan.finding import Finding
from reconciler.gitops.terraform_plan.planned import FLEET, GROUP, LAUNCH_TEMPLATE, PlannedFleet
from reconciler.model.errors import PortError
from reconciler.model.ids import Region

IMPORTS = "reconciler_left_behind.tf"
"""It is in the root module only while a plan is made."""
LeftBehind = Callable[
    [str, Region, Mapping[str, str], Mapping[str, str]], Mapping[str, Mapping[str, str]]
]
"""Returns ids by Terraform type by fleet name, of a cluster's EC2 Fleets and groups with these
names; each with the name of its launch template, empty when that is not asked for."""


def left_behind(
    planned: Sequence[PlannedFleet],
    look: LeftBehind | None,
    held: Collection[str] = frozenset(),
) -> tuple[dict[str, str], tuple[Finding, ...]]:
    """Return what EC2 has already of what a plan would create.

    Args:
        planned: The fleets of a plan.
        look: Asks EC2; None: EC2 cannot be asked.
        held: EC2's ids in the state: these are not imported.

    Returns:
        EC2's ids by Terraform address, and what a reader of the plan should know about it.
    """
    new = [f for f in planned if f.step == "create" and f.region and f.tags_after.get("cluster")]
    found: dict[str, str] = {}
    findings: list[Finding] = []
    for cluster, region in sorted({(f.tags_after["cluster"], f.region) for f in new}):
        theirs = {
            f.name: f for f in new if (f.tags_after["cluster"], f.region) == (cluster, region)
        }
        try:
            groups = {f.name: f.template_name for f in theirs.values() if f.provider == "asg"}
            names = {f.name: f.template_name for f in theirs.values() if f.name not in groups}
            there = {} if look is None else look(cluster, Region(region), names, groups)
        except PortError as error:
            findings += [_unseen(name, error) for name in sorted(theirs)]
            continue
        for name, existing in sorted(there.items()):
            made = {kind: each for kind, each in existing.items() if each not in held}
            module = _module_of(theirs[name])
            if not made or module is None:
                continue  # in the state, or its author chose the name
            found |= {f"{module}.{kind}.this": made[kind] for kind in sorted(made)}
            findings.append(_adopted(name, made))
    return found, tuple(findings)


def _module_of(fleet: PlannedFleet) -> str | None:
    """Return the address of the module that makes the fleet; None if it is not one of ours."""
    kind = GROUP if fleet.provider == "asg" else FLEET
    module = fleet.address.removesuffix(f".{kind}.this")
    return None if module == fleet.address else module


@contextmanager
def imported(module: Path, ids: Mapping[str, str]) -> Iterator[None]:
    """Give the root module import blocks for these ids, by address, during the block."""
    blocks = [
        f"import {{\n  to = {to}\n  id = {to_hcl(each)}\n}}\n" for to, each in sorted(ids.items())
    ]
    with _placed(module, "\n".join(blocks)):
        yield


@contextmanager
def imported_as(sources: Mapping[str, str], module: Path) -> Iterator[None]:
    """Give the root module the import blocks of a saved plan, during the block.

    A plan without them would create what the saved one imports. Terraform does not import again
    what is in the state by now.

    Args:
        sources: The configuration files of the saved plan, by name.
        module: The root module.
    """
    blocks = [text for name, text in sources.items() if name.rpartition("/")[2] == IMPORTS]
    with _placed(module, blocks[0]) if blocks else nullcontext():
        yield


@contextmanager
def _placed(module: Path, blocks: str) -> Iterator[None]:
    file = module / IMPORTS
    try:
        file.write_text(blocks, encoding="utf-8")
        yield
    finally:
        file.unlink(missing_ok=True)


def clear_imports(module: Path) -> None:
    """Remove imports that a killed run left in the root module."""
    (module / IMPORTS).unlink(missing_ok=True)


def _adopted(name: str, made: Mapping[str, str]) -> Finding:
    words = {FLEET: "fleet", GROUP: "Auto Scaling group", LAUNCH_TEMPLATE: "launch template"}
    ids = ", ".join(f"{words.get(kind, kind)} {each}" for kind, each in sorted(made.items()))
    return Finding(
        severity="warning",
        code="fleet/left-behind",
        where=name,
        message=f"{ids}: exists in EC2 but not in state (interrupted apply?); this plan imports it",
    )


def _unseen(name: str, error: PortError) -> Finding:
    return Finding(
        severity="warning",
        code="fleet/left-behind-unknown",
        where=name,
        message=f"whether EC2 has it already could not be seen: {error}",
    )
