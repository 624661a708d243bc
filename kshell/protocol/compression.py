"""Decompress the records of a batch, by the number of the codec in its attributes.

gzip comes from the standard library; snappy (xerial's framing, which Kafka writes, or one raw block), lz4 frames and
zstd come from ``cramjam``, which the extra ``codecs`` installs. Where a library is missing, reading fails with an error
that names the codec; data is never skipped.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from kshell.errors import MissingCodecError
from kshell.protocol.batches import MAX_BATCH
from kshell.protocol.primitives import DecodeError

if TYPE_CHECKING:
    from types import ModuleType

NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

MAX_DECOMPRESSED = MAX_BATCH
"""Bytes that the records may have after decompression: Kafka limits metadata batches before it compresses them."""

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16


def decompress(codec: int, data: bytes) -> bytes:
    """Decompress the records of a batch. Raises DecodeError for bad data, MissingCodecError without the library."""
    if codec == 1:
        return _gunzip(data)
    if codec >= len(NAMES):
        raise DecodeError(f"compression codec {codec} is not one that Kafka defines", 0)
    library = _cramjam(NAMES[codec])
    try:
        if codec == 2:
            return _unsnappy(library, data)
        return _grow(library.lz4 if codec == 3 else library.zstd, data)
    except library.DecompressionError as error:
        raise DecodeError(f"the {NAMES[codec]} data of the batch cannot be decompressed ({error})", 0) from None


def _cramjam(name: str) -> ModuleType:
    try:
        import cramjam
    except ImportError:
        from kshell.extras import install_command

        raise MissingCodecError(
            f"this batch is compressed with {name}, and the library for it is not installed",
            hint=install_command("codecs"),
        ) from None
    return cramjam


def _gunzip(data: bytes) -> bytes:
    inflater = zlib.decompressobj(wbits=31)
    try:
        out = inflater.decompress(data, MAX_DECOMPRESSED)
    except zlib.error as error:
        raise DecodeError(f"the gzip data of the batch cannot be decompressed ({error})", 0) from None
    if inflater.unconsumed_tail:
        raise _too_large()
    if not inflater.eof:
        raise DecodeError("the gzip data of the batch ends too early", len(data))
    return out


def _grow(module: ModuleType, data: bytes) -> bytes:
    """Decompress into a buffer of limited size; the size that the data itself claims is not used for an allocation."""
    size = max(64 * 1024, 4 * len(data))
    while True:
        buffer = bytearray(min(size, MAX_DECOMPRESSED))
        try:
            length = module.decompress_into(data, buffer)
            with memoryview(buffer) as view:  # a slice of the buffer itself would be one more copy
                return bytes(view[:length])
        except Exception as error:
            if "whole buffer" not in str(error):
                raise
            if size >= MAX_DECOMPRESSED:
                raise _too_large() from None
        size *= 8


def _unsnappy(library: ModuleType, data: bytes) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _raw_snappy(library, data, MAX_DECOMPRESSED)
    if len(data) < _XERIAL_HEADER:
        raise DecodeError("the snappy data of the batch ends inside its header", len(data))
    out = bytearray()
    pos = _XERIAL_HEADER
    while pos < len(data):
        size = int.from_bytes(data[pos : pos + 4], "big")
        pos += 4
        if size > len(data) - pos or pos > len(data):
            raise DecodeError(f"a snappy block of {size} bytes runs past the end", pos)
        out += _raw_snappy(library, data[pos : pos + size], MAX_DECOMPRESSED - len(out))
        pos += size
    return bytes(out)


def _raw_snappy(library: ModuleType, block: bytes, limit: int) -> bytes:
    if library.snappy.decompress_raw_len(block) > limit:
        raise _too_large()
    return bytes(library.snappy.decompress_raw(block))


def _too_large() -> DecodeError:
    return DecodeError(f"the batch decompresses to more than {MAX_DECOMPRESSED} bytes", 0)
