"""`--output table|json|yaml`: data for programs, tables for people on a terminal."""

import json
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any, TextIO

import typer

from reconciler.cli.plain import plain
from reconciler.telemetry.logging import wants_colours


class Output(StrEnum):
    """The forms of data on stdout."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


OutputOption = Annotated[
    Output | None,
    typer.Option(
        "--output", "-o", help="Form of the data; default: table on a terminal, else json."
    ),
]


def wanted(output: Output | None, stream: TextIO | None = None) -> Output:
    """The form to print: what was asked for, else what the stream can show."""
    if output is not None:
        return output
    return Output.TABLE if (stream or sys.stdout).isatty() else Output.JSON


def use_colours(stream: TextIO | None = None) -> bool:
    """Whether colours are welcome: on a terminal, unless NO_COLOR or TERM=dumb says otherwise."""
    return wants_colours(stream or sys.stdout)


def print_data(data: Any, form: Output, *, indent: int | None = 2) -> None:
    """Print data with sorted keys, as YAML if that is the form, else as JSON."""
    if form is Output.YAML:
        import yaml  # noqa: PLC0415 - not needed where JSON is printed

        yaml.safe_dump(data, sys.stdout, allow_unicode=False, sort_keys=True)
        return
    ascii_only = (sys.stdout.encoding or "").lower() not in {"utf-8", "utf8"}
    text = json.dumps(data, indent=indent, sort_keys=True, ensure_ascii=ascii_only)
    sys.stdout.write(text + "\n")


def print_encoded(encoded: bytes, form: Output) -> None:
    """Print a document that is JSON already, as it is or as YAML."""
    if form is Output.YAML:
        print_data(json.loads(encoded), form)
    else:
        sys.stdout.write(encoded.decode())


def print_text(text: str) -> None:
    """Print lines for people, without what would steer their terminal."""
    sys.stdout.write(plain(text))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print aligned columns with a heading."""
    texts = [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *texts, strict=True)]
    heading = "  ".join(c.upper().ljust(w) for c, w in zip(columns, widths, strict=True)).rstrip()
    sys.stdout.write((f"\x1b[1m{heading}\x1b[0m" if use_colours() else heading) + "\n")
    for row in texts:
        line = "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True))
        sys.stdout.write(line.rstrip() + "\n")
