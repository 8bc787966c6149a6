"""Decompresses zstd as a stream that ends with an error where its last frame is incomplete.

The stream reader of `zstandard` ends as if the file were whole there, so that a file that was cut
counts as a shorter demand.
"""

import io
from typing import Any, BinaryIO

import zstandard

_READ_BYTES = 1 << 12
"""Compressed bytes at a time: they unpack to 128 MiB at most, as a block of 128 KiB needs four."""


class ZstdFrames(io.RawIOBase):
    """The content of all frames of a stream.

    Args:
        packed: The stream, at the beginning of a frame.
        window_bytes_max: The largest window that is accepted.

    Raises:
        EOFError: From reads, where the stream ends within a frame.
        zstandard.ZstdError: Likewise, for what is no zstd.
    """

    def __init__(self, packed: BinaryIO, window_bytes_max: int) -> None:
        self._packed = packed
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=window_bytes_max)
        self._frame = self._decompressor.decompressobj()
        self._begun = False
        """Whether any byte of the current frame was read."""
        self._content = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with the next bytes of content."""
        while not self._content:
            packed = self._frame.unused_data if self._frame.eof else b""
            packed = packed or self._packed.read(_READ_BYTES)
            if self._frame.eof:
                self._frame, self._begun = self._decompressor.decompressobj(), False
            if not packed:
                if self._begun:
                    raise EOFError("the file ends within a zstd frame: it is not whole")
                return 0
            self._begun = True
            self._content = memoryview(self._frame.decompress(packed))
        part = self._content[: len(buffer)]
        buffer[: len(part)] = part
        self._content = self._content[len(part) :]
        return len(part)
