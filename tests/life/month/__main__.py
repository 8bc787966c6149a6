"""`python -m tests.life.month [--days N] [--write]`: play the month, print, perhaps write docs.

It is played twice: with moves of pods, and without them for what they save.
"""

import argparse
import sys
from pathlib import Path

from tests.life.month.report import figures, plot, price_of_moves, summary, table
from tests.life.month.simulation import Month
from tests.life.month.trace import arrivals, present

DOCS = Path(__file__).parents[3] / "docs"
BEGIN = "<!-- figures: written by python -m tests.life.month --write -->"
END = "<!-- end of figures -->"


def main() -> None:
    """Play and tell."""
    made = argparse.ArgumentParser(prog="python -m tests.life.month", description=__doc__)
    made.add_argument("--days", type=float, default=30)
    made.add_argument("--write", action="store_true", help="also into docs/month.md and its plot")
    arguments = made.parse_args()
    found, without = (
        Month(arrivals(arguments.days), arguments.days, moves=moves).run()
        for moves in (True, False)
    )
    text = (
        f"{summary(found, real=present())}\n\n{table(figures(found))}\n\n"
        f"{price_of_moves(found, without)}"
    )
    sys.stdout.write(text + "\n")
    if arguments.write:
        page = DOCS / "month.md"
        head, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        tail = rest.partition(END)[2]
        text += "\n\n![Nodes of the month, and what was needed](images/month.svg)"
        page.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{tail}", encoding="utf-8")
        (DOCS / "images" / "month.svg").write_text(plot(found), encoding="utf-8")


if __name__ == "__main__":
    main()
