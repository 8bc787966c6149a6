"""The emulated AWS as a server on a loopback port; nothing of it remains after `stop`."""

import socket
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, Self

from werkzeug.serving import ThreadedWSGIServer

from reconciler.model.errors import UsageError
from reconciler.sandbox.aws.answers.fleets import FleetOperations
from reconciler.sandbox.aws.answers.scaling_groups import SCALING_OPERATIONS, ScalingOperations
from reconciler.sandbox.aws.call_log import CallLog
from reconciler.sandbox.aws.clock import Clock, SystemClock
from reconciler.sandbox.aws.faults.injected import Faults
from reconciler.sandbox.aws.front.control import Control
from reconciler.sandbox.aws.front.gateway import Gateway
from reconciler.sandbox.aws.moto_server.http import MotoRequestHandler, create_application
from reconciler.sandbox.aws.moto_server.surface import release_waiting_calls, reset_moto
from reconciler.sandbox.aws.values import Delays
from reconciler.sandbox.aws.world import Ec2World

_LOOPBACK = "127.0.0.1"
_one_per_process = Lock()


class AwsServer:
    """AWS on loopback; at most one per process, since moto keeps its state in the process.

    Args:
        port: 0 takes a free one.
        clock: For tests; its `advance` takes effect with the next request.
    """

    def __init__(
        self, *, port: int = 0, delays: Delays | None = None, clock: Clock | None = None
    ) -> None:
        self._port = port
        self._clock = clock or SystemClock()
        self.calls = CallLog()
        self.faults = Faults()
        self.world = Ec2World(clock=self._clock, delays=delays or Delays(), faults=self.faults)
        self.control = Control(self.world, self.calls)
        self._gateway: Gateway | None = None
        self._http: _HttpServer | None = None
        self._thread: Thread | None = None

    @property
    def url(self) -> str:
        """Return the endpoint of every AWS service, such as `http://127.0.0.1:40123`."""
        if self._http is None:
            raise UsageError("aws server", "is not started")
        return f"http://{_LOOPBACK}:{self._http.port}"

    def start(self) -> str:
        """Serve from now on; return the URL.

        Raises:
            UsageError: Another one runs in this process, or the port is taken.
        """
        if not _one_per_process.acquire(blocking=False):
            raise UsageError("aws server", "another one runs in this process", "stop it first")
        try:
            reset_moto()
            self._gateway = self._application()
            self._http = _listen(self._port, self._gateway)
        except BaseException:
            _one_per_process.release()
            raise
        self.world.start()
        self._thread = Thread(target=self._http.serve_forever, name="sandbox-aws", daemon=True)
        self._thread.start()
        return self.url

    def stop(self) -> None:
        """Stop serving; no thread, connection or state remains."""
        if self._http is None or self._thread is None or self._gateway is None:
            return
        self._gateway.stop()
        self.control.metadata.stop()
        self.world.stop()
        self._http.shutdown()
        self._http.close_connections()
        release_waiting_calls()
        self._http.server_close()
        self._thread.join()
        self._http = self._thread = None
        reset_moto()
        _one_per_process.release()

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    def _application(self) -> Gateway:
        fleets = FleetOperations(self.world, self._clock.now)
        groups = ScalingOperations(self.world, self._clock.now)
        names = (
            "create_fleet",
            "modify_fleet",
            "delete_fleets",
            "describe_fleets",
            "describe_fleet_instances",
            "describe_fleet_history",
            "terminate_instances",
            "describe_instances",
            "create_launch_template",
            "describe_launch_templates",
            "describe_launch_template_versions",
        )
        return Gateway(
            moto=create_application(
                {name: getattr(fleets, name) for name in names},
                {name: getattr(groups, name) for name in SCALING_OPERATIONS},
            ),
            world=self.world,
            control=self.control,
            calls=self.calls,
            clock=self._clock,
        )


def _listen(port: int, application: Gateway) -> "_HttpServer":
    """Bind; werkzeug itself would end the process when the port is in use."""
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((_LOOPBACK, port))
        listener.listen(128)
        return _HttpServer(listener, application)
    except OSError as error:
        raise UsageError(f"{_LOOPBACK}:{port}", str(error), "choose another port") from error
    finally:
        listener.close()


class _Handler(MotoRequestHandler):
    """Moto's handler without a line of log per request."""

    protocol_version = "HTTP/1.1"

    def log_request(self, *_args: Any) -> None:
        """Calls are in the call log."""


class _HttpServer(ThreadedWSGIServer):
    """Werkzeug's threaded server, made to leave neither threads nor connections behind."""

    daemon_threads = False
    block_on_close = True

    def __init__(self, listener: socket.socket, application: Gateway) -> None:
        self._lock = Lock()
        self._connections: set[socket.socket] = set()
        host, port = listener.getsockname()
        super().__init__(host, port, application, _Handler, fd=listener.fileno())

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, and remember it."""
        with self._lock:
            self._connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection that ended."""
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def close_connections(self) -> None:
        """Wake the threads that wait for a client's next request."""
        with self._lock:
            open_connections = list(self._connections)
        for connection in open_connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
