"""What every NoticeQueue promises; a difference between the twins is a bug in one of them."""

from collections.abc import Iterator

import pytest

from reconciler.model.errors import NotFound, PortError
from tests.contract.cloud_worlds import EmulatedAws, emulated_aws
from tests.contract.notice_worlds import InMemory, NoticeWorld, OverHttp, messages_of, warning
from tests.waiting import until


@pytest.fixture(scope="module")
def emulated() -> Iterator[EmulatedAws]:
    """SQS's API on loopback."""
    with emulated_aws() as running:
        yield running


@pytest.fixture(params=["memory", "http"])
def world(request: pytest.FixtureRequest, emulated: EmulatedAws) -> Iterator[NoticeWorld]:
    """A queue without messages."""
    made = InMemory() if request.param == "memory" else OverHttp()
    yield made
    made.close()


@pytest.fixture
def over_http(emulated: EmulatedAws) -> Iterator[OverHttp]:
    """The real adapter's queue, for what memory does not have."""
    made = OverHttp()
    yield made
    made.close()


def test_messages_are_held_until_they_are_settled(world: NoticeWorld) -> None:
    """A message that is deleted before anybody acted on it is an interruption that is missed."""
    world.send(warning("i-2"), warning("i-1"), "no event")
    reader = world.reader()
    reader.settle([])
    found = world.received(reader, 3)
    assert {notice.instance for notice in found} == {"i-1", "i-2", ""}
    assert list(found) == sorted(found)
    assert world.waiting() == 3
    reader.settle(messages_of(found[:2]))
    world.left(1)
    assert reader.held() == found[2:]


def test_nothing_is_received_before_a_cycle_has_acted(world: NoticeWorld) -> None:
    """A standby that receives hides the messages from the leader."""
    world.send(warning("i-1"))
    standby, leader = world.reader(), world.reader()
    leader.settle([])
    assert world.received(leader, 1)
    assert standby.held() == ()


def test_what_a_killed_reader_held_comes_again(world: NoticeWorld) -> None:
    """A crash between receiving and acting must lose nothing."""
    world.send(warning("i-1"))
    first = world.reader()
    first.settle([])
    assert world.received(first, 1)
    world.kill(first)
    world.visible_again()
    second = world.reader()
    second.settle([])
    (notice,) = world.received(second, 1)
    assert notice.instance == "i-1"
    second.settle([notice.message])
    world.left(0)


def test_unknown_messages_are_passed_over(world: NoticeWorld) -> None:
    """A plan may speak of a message that came, went and came again."""
    world.send(warning("i-1"))
    reader = world.reader()
    reader.settle([])
    (notice,) = world.received(reader, 1)
    reader.settle([notice.message, notice.message])
    reader.settle([notice.message])
    world.left(0)
    assert reader.held() == ()


def test_storm_is_received_and_deleted(over_http: OverHttp) -> None:
    """Half a fleet may be taken back at once."""
    over_http.send(*(warning(f"i-{number}") for number in range(120)))
    reader = over_http.reader()
    reader.settle([])
    found = over_http.received(reader, 120)
    assert over_http.arrived.is_set()
    assert len({notice.instance for notice in found}) == 120

    def none_left() -> bool:
        # SQS may deliver twice, and what could not be deleted comes again: each cycle settles.
        reader.settle(messages_of(reader.held()))
        return over_http.waiting() == 0

    until("an empty queue", none_left, seconds=120)


def test_replica_that_no_longer_leads_lets_go(over_http: OverHttp) -> None:
    """Its messages are the next leader's; nothing it holds may be deleted by it."""
    over_http.send(warning("i-1"))
    reader = over_http.reader()
    reader.settle([])
    (notice,) = over_http.received(reader, 1)
    over_http.leads = False
    reader.settle([notice.message])
    over_http.send(warning("i-2"))
    until("nothing is held", lambda: reader.held() == () or None, seconds=120)
    assert over_http.waiting() == 2


def test_queue_that_cannot_be_read_is_reported_once_and_read_again(over_http: OverHttp) -> None:
    """A queue that went away must be seen in the log, not a thousand times."""
    url, over_http.url = over_http.url, over_http.url + "-gone"
    reader = over_http.reader()
    reader.settle([])
    until("told", lambda: over_http.troubles or None, seconds=120)
    over_http.url = url
    over_http.send(warning("i-1"))
    assert over_http.received(reader, 1)
    until("told that it is over", lambda: over_http.troubles[-1] is None or None, seconds=120)
    first, second = over_http.troubles
    assert isinstance(first, NotFound | PortError)
    assert second is None
