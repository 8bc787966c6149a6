"""`--output table|json|yaml`: data for programs, tables for people on a terminal."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final, TextIO

import typer

from reconciler.cli.terminal.escaping import by_bytes, one_line, plain
from reconciler.telemetry.logging import wants_colours

_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_NOT_UTF_8: Final = re.compile("[\ud800-\udfff]")


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
    """Return the form to print: the one asked for, else what the stream can show."""
    if output is not None:
        return output
    return Output.TABLE if (stream or sys.stdout).isatty() else Output.JSON


def use_colours(stream: TextIO | None = None) -> bool:
    """Return whether to use colours: on a terminal, unless NO_COLOR or TERM=dumb is set."""
    return wants_colours(stream or sys.stdout)


def print_data(data: Any, form: Output, *, indent: int | None = 2) -> None:
    """Print data with sorted keys, as YAML if that is the form, else as JSON."""
    text = json.dumps(data, indent=indent, sort_keys=True, ensure_ascii=False)
    if form is Output.YAML:
        import yaml  # noqa: PLC0415 - not needed where JSON is printed

        if _NOT_UTF_8.search(text):
            data = json.loads(_escaped(_NOT_UTF_8, text))
        yaml.safe_dump(data, sys.stdout, allow_unicode=False, sort_keys=True)
        return
    _print_json(text + "\n")


def print_encoded(encoded: bytes, form: Output) -> None:
    """Print a document that is already JSON, as it is or as YAML."""
    if form is Output.YAML:
        print_data(json.loads(encoded), form)
    else:
        _print_json(encoded.decode())


def _print_json(text: str) -> None:
    """Print JSON that any reader accepts, whatever the stream's encoding and the names in it."""
    ascii_only = (sys.stdout.encoding or "").lower() not in {"utf-8", "utf8"}
    sys.stdout.write(_escaped(_NOT_ASCII if ascii_only else _NOT_UTF_8, text))


def _escaped(characters: re.Pattern[str], text: str) -> str:
    """Return JSON with these characters escaped; a byte of a file's name as `by_bytes` shows it."""
    return characters.sub(lambda found: json.dumps(by_bytes(found[0]))[1:-1], text)


def print_document(text: str) -> None:
    """Print a file's content for other programs: in UTF-8, whatever the stream's encoding is."""
    stream = getattr(sys.stdout, "buffer", None)
    if stream is None:
        sys.stdout.write(text)
        return
    sys.stdout.flush()
    stream.write(text.encode())
    stream.flush()


def print_text(text: str) -> None:
    """Print lines for people, without control sequences."""
    sys.stdout.write(plain(text))


def print_line(text: str) -> None:
    """Print one line for people: a line break in a name does not begin a new line."""
    sys.stdout.write(one_line(text) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print aligned columns with a heading."""
    texts = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *texts, strict=True)]
    heading = "  ".join(c.upper().ljust(w) for c, w in zip(columns, widths, strict=True)).rstrip()
    sys.stdout.write((f"\x1b[1m{heading}\x1b[0m" if use_colours() else heading) + "\n")
    for row in texts:
        line = "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True))
        sys.stdout.write(line.rstrip() + "\n")
