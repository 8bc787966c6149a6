"""An AWS provider that shows Terraform only the schemas of types that the project's files name.

Terraform reads the schemas of all 1,500 resources and 600 data sources of the provider with each
command, and that takes more CPU time than all else that a plan of our modules takes. This process
starts the provider, answers the request for schemas with those of the named types, and passes
everything else on as it is, in both directions. A type that is left out is an error in Terraform's
own words: it says that the provider does not support it.

It is run by path: `named_schemas.py CHILD PROVIDER TYPE...`, where CHILD starts a program that ends
with this process. The output has the provider's line for TF_REATTACH_PROVIDERS, with the address of
this process.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import grpc

_ADDRESS = re.compile(r'"String":"([^"]*)"')
_OF_SCHEMAS = ("/GetSchema", "/GetProviderSchema")
"""The method of the plugin protocol's versions 5 and 6."""
_BY_TYPE = frozenset({2, 3, 8})
"""Fields of its answer that are maps from types: resources, data, ephemeral resources.

Source: tfplugin5.proto and tfplugin6.proto, message GetProviderSchema.Response.
"""
_LENGTH_DELIMITED = 2
"""The wire type of Protocol Buffers for messages and texts; that answer has no other fields."""
_UNUSED = ("/plugin.GRPCBroker/", "/plugin.GRPCStdio/")
"""Services of the plugin framework that this provider sends nothing through.

Terraform does without them. They would hold a thread of this process for each connection.
"""
_THREADS = 64
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def with_types(answer: bytes, types: frozenset[str]) -> bytes:
    """Return a provider's answer to the request for schemas, without those of other types."""
    return b"".join(
        whole
        for number, content, whole in _fields(answer)
        if number not in _BY_TYPE or _key(content) in types
    )


def _fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Return the number, the content, and the encoding of each field of a message."""
    at = 0
    while at < len(message):
        tag, content_at = _number(message, at)
        if tag & 7 != _LENGTH_DELIMITED:
            raise ValueError(f"field {tag >> 3} is of wire type {tag & 7}")
        length, content_at = _number(message, content_at)
        end = content_at + length
        yield tag >> 3, message[content_at:end], message[at:end]
        at = end


def _number(message: bytes, at: int) -> tuple[int, int]:
    """Return a number in groups of seven bits, the lowest first, and where it ends."""
    value, shift = 0, 0
    while message[at] & 0x80:
        value |= (message[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | message[at] << shift, at + 1


def _key(entry: bytes) -> str:
    """Return the key of an entry of a map."""
    return next((text.decode() for number, text, _ in _fields(entry) if number == 1), "")


class _Calls(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Hands every call to the provider."""

    def __init__(self, provider: Any, types: frozenset[str]) -> None:
        self._provider = provider
        self._types = types
        self._schemas = cache(self._schemas_of)

    def service(self, handler_call_details: Any) -> Any:
        """Return what answers a method; a call with one message is a stream of one."""
        if handler_call_details.method.startswith(_UNUSED):
            return None
        return grpc.stream_stream_rpc_method_handler(self._answered(handler_call_details.method))

    def _answered(self, method: str) -> Callable[[Iterator[bytes], Any], Iterator[bytes]]:
        def answer(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
            if method.endswith(_OF_SCHEMAS):
                yield self._schemas(method, next(requests))
                return
            call = self._provider.stream_stream(method)(requests)
            context.add_callback(call.cancel)
            try:
                yield from call
            except grpc.RpcError as error:
                context.abort(error.code(), error.details())

        return answer

    def _schemas_of(self, method: str, request: bytes) -> bytes:
        return with_types(self._provider.unary_unary(method)(request), self._types)


def main() -> None:
    """Start the provider, print how to attach to it, and serve until SIGTERM."""
    child, program, *types = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="provider-") as folder:
        provider = subprocess.Popen(
            [sys.executable, "-I", child, str(os.getpid()), program, "-debug"],
            env={**os.environ, "TMPDIR": folder},  # noqa: TID251 - the provider's settings
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert provider.stdout is not None
        for line in provider.stdout:
            text = line.decode()
            if (found := _ADDRESS.search(text)) and "TF_REATTACH_PROVIDERS" in text:
                channel = grpc.insecure_channel(f"unix:{found[1]}", options=_OPTIONS)
                calls = _Calls(channel, frozenset(types))
                pool = ThreadPoolExecutor(_THREADS)
                server = grpc.server(pool, handlers=[calls], options=_OPTIONS)
                socket = f"{folder}/schemas"
                server.add_insecure_port(f"unix:{socket}")
                server.start()
                sys.stdout.write(text.replace(found[1], socket))
                sys.stdout.flush()
        provider.wait()


if __name__ == "__main__":
    main()
