"""Slack's webhooks over a server on loopback."""

import socket
from collections.abc import Iterator
from queue import Queue

import pytest

from reconciler.adapters.slack import QUEUE_MAX, SlackNotifier
from reconciler.model.errors import PortError, Throttled, Unavailable
from tests.slack_hook import Hook, slack_hook

WAIT_SECONDS = 60


@pytest.fixture
def hook() -> Iterator[Hook]:
    """A server that ends with the test."""
    with slack_hook() as server:
        yield server


def test_message_arrives_with_its_control_characters_as_text(hook: Hook) -> None:
    """A pod named `<!channel>` must not wake everybody."""
    notifier = SlackNotifier(hook.url, lambda _: None)
    notifier.notify("pod <!channel> & co")
    assert hook.posted.get(timeout=WAIT_SECONDS) == "pod &lt;!channel&gt; &amp; co"
    notifier.close()


def test_refusal_is_reported_without_the_address(hook: Hook) -> None:
    """The address is the secret."""
    heard: Queue[PortError] = Queue()
    hook.status = 403
    notifier = SlackNotifier(hook.url, heard.put)
    notifier.notify("hello")
    error = heard.get(timeout=WAIT_SECONDS)
    assert isinstance(error, Unavailable)
    assert str(error) == "slack: answered 403"
    notifier.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_a_refusal(hook: Hook, status: int) -> None:
    """A proxy's login page answered 200 to a request without the message, which was lost."""
    heard: Queue[PortError] = Queue()
    hook.status, hook.redirects_to = status, "/login"
    notifier = SlackNotifier(hook.url, heard.put)
    notifier.notify("hello")
    assert str(heard.get(timeout=WAIT_SECONDS)) == f"slack: answered {status}"
    notifier.close()
    assert not hook.read


def test_unreachable_hook_is_reported() -> None:
    """A proxy that is down must be found in the log."""
    heard: Queue[PortError] = Queue()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    notifier = SlackNotifier(f"http://127.0.0.1:{port}/secret", heard.put)
    notifier.notify("hello")
    assert "secret" not in str(heard.get(timeout=WAIT_SECONDS))
    notifier.close()


def test_answer_that_is_no_http_is_reported_and_the_next_message_goes_out() -> None:
    """One broken proxy would silence the channel until the next restart."""
    heard: Queue[PortError] = Queue()
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        proxy.settimeout(WAIT_SECONDS)
        notifier = SlackNotifier(f"http://127.0.0.1:{proxy.getsockname()[1]}/secret", heard.put)
        for _ in range(2):
            notifier.notify("hello")
            connection, _ = proxy.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"go away\r\n\r\n")
            assert isinstance(heard.get(timeout=WAIT_SECONDS), Unavailable)
        notifier.close()


def test_silent_hook_holds_nobody_up() -> None:
    """The loop must not wait for a chat."""
    heard: list[PortError] = []
    with socket.create_server(("127.0.0.1", 0)) as mute:
        notifier = SlackNotifier(f"http://127.0.0.1:{mute.getsockname()[1]}/", heard.append)
        for number in range(QUEUE_MAX + 5):
            notifier.notify(str(number))
        assert any(isinstance(port_error, Throttled) for port_error in heard)
        notifier.close()
