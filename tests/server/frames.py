"""The server's half of requests and responses: decode the header of a request, encode a response.

Frames are without the four bytes of their length, as in :mod:`kshell.protocol.api`.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kshell.protocol.api import API_VERSIONS_KEY, NEVER, Api, _skip_tags
from kshell.protocol.decoder import Message
from kshell.protocol.encoder import encode
from kshell.protocol.primitives import DecodeError

_HEAD = struct.Struct(">hhih")


class RequestHeader(NamedTuple):
    """The header of a request; ``body`` is the position after it."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    body: int


def decode_header(frame: bytes, flexible: int = NEVER) -> RequestHeader:
    """Decode the header of a request whose API is flexible from version ``flexible`` on. Raises DecodeError."""
    if len(frame) < _HEAD.size:
        raise DecodeError("the request ends inside its header", len(frame))
    key, version, correlation, size = _HEAD.unpack_from(frame)
    pos = _HEAD.size
    name = frame[pos : pos + size].decode("utf-8", "surrogateescape") if size >= 0 else None
    pos += max(size, 0)
    if pos > len(frame):
        raise DecodeError("the client id runs past the end", pos)
    return RequestHeader(key, version, correlation, name, _skip_tags(frame, pos) if version >= flexible else pos)


def encode_response(api: Api, version: int, correlation_id: int, message: Message) -> bytes:
    """Encode a response, without the four bytes of its length."""
    tags = b"\0" if api.is_flexible(version) and api.key != API_VERSIONS_KEY else b""
    return struct.pack(">i", correlation_id) + tags + encode(api.response, version, message)
