"""Declare an API of Kafka, encode its requests and decode its responses, with their headers.

Each API is declared once, in :mod:`kshell.protocol.messages`; the client, the test server, the dialects (KIP drafts)
and the test against Kafka's own definitions use that declaration. Frames are without the four bytes of their length.
Headers of flexible versions have tagged fields (KIP-482); that of an ApiVersions response never has.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kshell.protocol.decoder import Message, decode
from kshell.protocol.encoder import encode
from kshell.protocol.primitives import DecodeError, read_uvarint
from kshell.protocol.schema import Schema, Versions

NEVER = 1 << 15
"""The value of ``flexible`` for an API without flexible versions: higher than any version."""

API_VERSIONS_KEY = 18
_HEAD = struct.Struct(">hhi")
_CORRELATION = struct.Struct(">i")


class Api(NamedTuple):
    """The declaration of an API; the request and its response have the same versions."""

    name: str
    key: int
    request: Schema
    response: Schema
    most_elements: int = 500_000
    """Elements that all arrays of a response may have in total: it limits the memory that a peer can make us use."""

    @property
    def versions(self) -> Versions:
        """The versions that kshell knows."""
        return self.request.versions

    def is_flexible(self, version: int) -> bool:
        """Whether headers and bodies of ``version`` carry tagged fields."""
        return version >= self.request.flexible


def api(
    name: str,
    key: int,
    versions: str,
    *,
    flexible: int,
    request: str,
    response: str,
    most_elements: int = 500_000,
) -> Api:
    """Declare an API; its ``request`` and ``response`` are in the language of :mod:`kshell.protocol.schema`."""
    return Api(
        name,
        key,
        Schema(f"{name}Request", versions, request, flexible=flexible),
        Schema(f"{name}Response", versions, response, flexible=flexible),
        most_elements,
    )


def encode_request(api: Api, version: int, correlation_id: int, client_id: str, message: Message) -> bytes:
    """Encode a request, without the four bytes of its length: header v1, or v2 if the version is flexible."""
    name = client_id.encode("utf-8")
    head = _HEAD.pack(api.key, version, correlation_id) + struct.pack(">h", len(name)) + name
    return head + (b"\0" if api.is_flexible(version) else b"") + encode(api.request, version, message)


def decode_response(api: Api, version: int, frame: bytes) -> tuple[int, Message]:
    """Decode a response into (correlation id, body). Raises DecodeError."""
    pos = _CORRELATION.size
    if len(frame) < pos:
        raise DecodeError("the answer ends inside its header", len(frame))
    if api.is_flexible(version) and api.key != API_VERSIONS_KEY:
        pos = _skip_tags(frame, pos)
    return correlation_of(frame), decode(api.response, version, frame, pos, most_elements=api.most_elements)


def correlation_of(frame: bytes) -> int:
    """Return the correlation id of a response; the caller has checked that it has four bytes."""
    correlation_id: int = _CORRELATION.unpack_from(frame)[0]
    return correlation_id


def _skip_tags(frame: bytes, pos: int) -> int:
    """Return the position after the tagged fields of a header; Kafka defines none, so they are skipped."""
    count, pos = read_uvarint(frame, pos)
    for _ in range(count):
        _, pos = read_uvarint(frame, pos)
        size, pos = read_uvarint(frame, pos)
        pos += size
        if pos > len(frame):
            raise DecodeError("a tagged field runs past the end", pos)
    return pos
