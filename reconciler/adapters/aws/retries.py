"""Retries changes, but only if it is known that nothing was changed.

Botocore would retry after lost replies too. A change whose reply was lost may be in force: the next
cycle observes, and decides again.
"""

from collections.abc import Callable
from typing import Any, Final

import stamina

from reconciler.adapters.aws.errors import translated
from reconciler.model.errors import Throttled, Unavailable

TIMEOUT_SECONDS: Final = 8.0
"""Of all attempts: one fleet in trouble must not delay the others for long."""
FIRST_PAUSE_SECONDS: Final = 0.25
PAUSE_MAX_SECONDS: Final = 3.0
JITTER_SECONDS: Final = 0.5


def change(where: str, send: Callable[..., Any], attempts: int, **arguments: Any) -> None:
    """Send one change; retry after a growing, random pause while EC2 has not accepted it.

    Args:
        where: The call and its object, for people.
        send: A method of a client that does not retry by itself.
        attempts: The maximum number of attempts.
        arguments: Arguments of the call.

    Raises:
        PortError: As `translated` makes it; Throttled and Unavailable only in the end.
    """
    for attempt in stamina.retry_context(
        on=(Throttled, Unavailable),
        attempts=attempts,
        timeout=TIMEOUT_SECONDS,
        wait_initial=FIRST_PAUSE_SECONDS,
        wait_max=PAUSE_MAX_SECONDS,
        wait_jitter=JITTER_SECONDS,
    ):
        with attempt, translated(where, changing=True):
            send(**arguments)
