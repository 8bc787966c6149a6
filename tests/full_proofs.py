"""How often the long proofs repeat themselves; their numbers are printed at the end of the run."""

import os

VARIABLE = "RECONCILER_FULL_PROOFS"
"""Set to 1 (`make full-proofs`), they take as many rounds as the project's goals name."""


def rounds(bounded: int, full: int) -> int:
    """Return how many rounds to take: `full` when the environment asks for that, else `bounded`."""
    wanted = os.environ.get(VARIABLE, "") == "1"  # noqa: TID251 - a switch of the tests alone
    return full if wanted else bounded
