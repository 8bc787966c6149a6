"""Which calls for the interruption queue are reported as failing, and until when."""

from reconciler.adapters.aws.queue_failures import (
    COMPLETE,
    DELETE,
    PASSED_SECONDS,
    RECEIVE,
    QueueFailures,
)
from reconciler.model.errors import Forbidden, PortError, Unavailable


class Told:
    """What was reported, each time: the call, or nothing when all work."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls: list[str] = []
        self.troubles = QueueFailures(
            lambda error: self.calls.append(error.where if error else ""), lambda: self.seconds
        )

    def fail(self, call: str) -> None:
        """The call fails."""
        self.troubles.failed(call, Forbidden(call, "no"))


def test_trouble_lasts_until_every_call_works() -> None:
    """The metric was 1 again while no message could be deleted."""
    told = Told()
    told.fail(DELETE)
    told.fail(RECEIVE)
    told.fail(DELETE)
    told.troubles.worked(RECEIVE)
    assert told.calls == [DELETE, RECEIVE, DELETE]
    told.troubles.worked(COMPLETE)
    told.troubles.worked(DELETE)
    assert told.calls == [DELETE, RECEIVE, DELETE, ""]


def test_failure_that_does_not_come_again_is_over() -> None:
    """One lost answer would be an alert until the next message has to be deleted, hours later."""
    told = Told()
    told.fail(DELETE)
    told.seconds = PASSED_SECONDS
    told.troubles.pass_by()
    told.fail(DELETE)
    told.seconds += PASSED_SECONDS
    told.troubles.pass_by()
    assert told.calls == [DELETE]
    told.seconds += 1
    told.troubles.pass_by()
    assert told.calls == [DELETE, ""]


def test_queue_that_does_not_answer_is_reported_until_it_does() -> None:
    """It is asked less often the longer that lasts."""
    told = Told()
    told.fail(RECEIVE)
    told.seconds = 10 * PASSED_SECONDS
    told.troubles.pass_by()
    assert told.calls == [RECEIVE]
    told.troubles.end()
    told.troubles.end()
    assert told.calls == [RECEIVE, ""]


def test_another_kind_of_error_is_reported() -> None:
    """The status named the first for as long as it lasted: the network, not the missing right."""
    errors: list[PortError | None] = []
    troubles = QueueFailures(errors.append)
    for error in (Unavailable(RECEIVE, "no"), Unavailable(RECEIVE, "so"), Forbidden(RECEIVE, "no")):
        troubles.failed(RECEIVE, error)
    assert [type(port_error) for port_error in errors] == [Unavailable, Forbidden]
