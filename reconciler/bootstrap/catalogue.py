"""Wires `reconciler catalogue`: merges EC2's answers into a catalogue file of this program."""

from dataclasses import dataclass
from pathlib import Path

from reconciler.adapters.aws import home_region
from reconciler.adapters.aws.catalogue import read_instance_types
from reconciler.adapters.system_clock import SystemClock
from reconciler.config.catalogue import Catalogue, load_catalogue, refreshed, render_catalogue
from reconciler.machine.whole_file import put_out
from reconciler.model.errors import InputError, UsageError
from reconciler.model.ids import Region
from reconciler.model.snapshot import Ignored


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshedCatalogue:
    """Says what a refresh of the catalogue wrote."""

    file: str
    region: str
    as_of: str
    types: int
    priced_on_demand: int
    priced_spot: int
    unreadable: int
    """Entries of EC2's answers that could not be read."""


def refresh_catalogue(out: Path, *, region: str | None, base: str | None) -> RefreshedCatalogue:
    """Ask EC2 and write the catalogue, whole or not at all.

    Args:
        out: The file to write.
        region: The region of the prices; default: that of the AWS settings.
        base: The catalogue that completes what EC2 does not say; default: the package's own.

    Raises:
        UsageError: No region is named anywhere.
        PortError: EC2 or the Price List API did not answer; nothing was written.
        InputError: `base` is not a catalogue, or `out` cannot be written.
    """
    before = load_catalogue(base)
    chosen = region or home_region()
    if not chosen:
        raise UsageError("--region", "no Region is named", "give --region or set AWS_REGION")
    if not out.absolute().parent.is_dir():
        raise InputError(str(out), "cannot be written: there is no such folder")
    at = SystemClock().now()
    ignored: list[Ignored] = []
    types = read_instance_types(Region(chosen), at, ignored)
    made = refreshed(before, types, chosen, at.date().isoformat())
    write_whole(out, render_catalogue(made))
    return RefreshedCatalogue(
        file=str(out),
        region=chosen,
        as_of=made.as_of,
        types=len(made),
        priced_on_demand=sum(t.on_demand_usd_per_hour is not None for t in types.values()),
        priced_spot=sum(t.spot_usd_per_hour is not None for t in types.values()),
        unreadable=len(ignored),
    )


def shown_catalogue(path: str | None) -> Catalogue:
    """Return the catalogue of a file, or the package's own; InputError when it is invalid."""
    return load_catalogue(path)


def write_whole(path: Path, text: str) -> None:
    """Put a file in place in one step; InputError when it cannot be written."""
    try:
        with put_out(path) as part:
            part.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(str(path), f"cannot be written: {error.strerror}") from error
