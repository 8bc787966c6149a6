"""Takes what an apply that was cut off left in EC2 into the next plan, as Terraform imports.

A process that is killed in the middle of an apply has made fleets that no state knows of. Made once
more they would stand there twice, and the launch template's name would be taken.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from reconciler.gitops.guard import Finding
from reconciler.gitops.hcl import to_hcl
from reconciler.gitops.planned import FLEET, GROUP, LAUNCH_TEMPLATE, PlannedFleet
from reconciler.model.errors import PortError
from reconciler.model.ids import Region

IMPORTS = "reconciler_left_behind.tf"
"""In the root module while a plan is made, and never longer."""
LeftBehind = Callable[[str, Region, Sequence[str], Sequence[str]], Mapping[str, Mapping[str, str]]]
"""Ids by Terraform type by fleet name, of a cluster's EC2 Fleets and of its groups that exist under
these names."""


def left_behind(
    planned: Sequence[PlannedFleet],
    look: LeftBehind | None,
    held: Collection[str] = frozenset(),
) -> tuple[dict[str, str], tuple[Finding, ...]]:
    """What EC2 has already of what a plan would create.

    Args:
        planned: The fleets of a plan.
        look: Asks EC2; None: EC2 cannot be asked.
        held: EC2's ids that the state holds: nothing of them is to be imported.

    Returns:
        EC2's ids by Terraform address, and what a reader of the plan should know about it.
    """
    new = [f for f in planned if f.step == "create" and f.region and f.tags_after.get("cluster")]
    found: dict[str, str] = {}
    told: list[Finding] = []
    for cluster, region in sorted({(f.tags_after["cluster"], f.region) for f in new}):
        theirs = {
            f.name: f for f in new if (f.tags_after["cluster"], f.region) == (cluster, region)
        }
        try:
            groups = sorted(f.name for f in theirs.values() if f.provider == "asg")
            names = sorted(theirs.keys() - set(groups))
            there = {} if look is None else look(cluster, Region(region), names, groups)
        except PortError as error:
            told += [_unseen(name, error) for name in sorted(theirs)]
            continue
        for name, existing in sorted(there.items()):
            made = {kind: each for kind, each in existing.items() if each not in held}
            kind = GROUP if theirs[name].provider == "asg" else FLEET
            module = theirs[name].address.removesuffix(f".{kind}.this")
            if not made or module == theirs[name].address:
                continue  # held already, or not of our module: its author names it freely
            found |= {f"{module}.{kind}.this": made[kind] for kind in sorted(made)}
            told.append(_adopted(name, made))
    return found, tuple(told)


@contextmanager
def imported(module: Path, ids: Mapping[str, str]) -> Iterator[None]:
    """While open, the root module has import blocks for these ids, by address."""
    blocks = [
        f"import {{\n  to = {to}\n  id = {to_hcl(each)}\n}}\n" for to, each in sorted(ids.items())
    ]
    with _placed(module, "\n".join(blocks)):
        yield


@contextmanager
def imported_as(sources: Mapping[str, str], module: Path) -> Iterator[None]:
    """While open, the root module has the import blocks that a saved plan was made with.

    A plan made without them would create what the saved one imports. Of what is in the state by
    now Terraform imports nothing again.

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
    """Take away what a run that was killed while it made a plan left in the root module."""
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
