"""Slack's incoming webhooks as the Notifier port.

Source: https://api.slack.com/messaging/webhooks (one message a second; text up to 40,000
characters; `&`, `<` and `>` are escaped), read 2026-08.
"""

import json
import queue
import threading
from collections.abc import Callable
from http.client import HTTPException
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from typing_extensions import override

from reconciler.model.errors import PortError, Throttled, Unavailable, why_not_reached

QUEUE_MAX: Final = 20
TEXT_MAX: Final = 3000
"""Slack folds longer messages, and most people do not open them."""
TIMEOUT_SECONDS: Final = 5.0
PAUSE_SECONDS: Final = 1.0
FLUSH_SECONDS: Final = 0.3


class _NoRedirects(HTTPRedirectHandler):
    """Makes a redirect an error: the request that follows one would not have the message."""

    @override
    def redirect_request(self, *_arguments: object) -> None:
        """Return None, so that urllib reports the redirect as an error."""


class SlackNotifier:
    """Posts messages from its own thread.

    Args:
        hook: The webhook's address; a secret, never part of an error.
        failed: Called for messages that could not be posted.
    """

    def __init__(self, hook: str, failed: Callable[[PortError], None]) -> None:
        self._hook = hook
        self._failed = failed
        self._opener = build_opener(_NoRedirects)
        self._queue: queue.Queue[str] = queue.Queue(QUEUE_MAX)
        self._stopping = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._thread = threading.Thread(target=self._run, name="slack", daemon=True)
        self._thread.start()

    def notify(self, text: str) -> None:
        """Queue a message to be posted; it is dropped when twenty are waiting already."""
        self._idle.clear()
        try:
            self._queue.put_nowait(text)
        except queue.Full:
            self._failed(Throttled("slack", f"{QUEUE_MAX} messages wait already"))

    def close(self) -> None:
        """End the thread; waiting messages get a moment to be sent."""
        self._idle.wait(FLUSH_SECONDS)
        self._stopping.set()
        self._thread.join(FLUSH_SECONDS)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                text = self._queue.get(timeout=FLUSH_SECONDS / 2)
            except queue.Empty:
                self._idle.set()
                continue
            try:
                self._post(text)
            except PortError as error:
                self._failed(error)
            if self._queue.empty():
                self._idle.set()
            self._stopping.wait(PAUSE_SECONDS)

    def _post(self, text: str) -> None:
        body = json.dumps({"text": escaped(text[:TEXT_MAX])}).encode()
        headers = {"Content-Type": "application/json"}
        try:
            # The config accepts http and https only.
            request = Request(self._hook, body, headers)  # noqa: S310 - as above
            with self._opener.open(request, timeout=TIMEOUT_SECONDS):
                return
        except HTTPError as error:
            with error:
                raise Unavailable("slack", f"answered {error.code}") from None
        except (URLError, HTTPException, OSError, ValueError) as error:
            raise Unavailable("slack", f"not reached: {why_not_reached(error)}") from None


def escaped(text: str) -> str:
    """Return the text with Slack's three control characters escaped; names are untrusted."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
