"""How often the long proofs repeat themselves; their numbers are said at the end of the run."""

import os

VARIABLE = "RECONCILER_ASKED"
"""Set to 1 (`make asked`), they take as many rounds as the project's goals ask for."""


def rounds(bounded: int, asked: int) -> int:
    """The rounds to take: `asked` when the environment wants them, else `bounded`."""
    wanted = os.environ.get(VARIABLE, "") == "1"  # noqa: TID251 - a switch of the tests alone
    return asked if wanted else bounded
