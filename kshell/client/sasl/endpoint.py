"""One HTTPS request to a token endpoint, within a deadline and a number of bytes, whatever the server sends.

``http.client`` reads a response; what it reads from is ours. A time limit for each read of a socket, which is all that
HTTP libraries offer, is none for a server that sends a byte now and then, or ``100 Continue`` without an end.
"""

from __future__ import annotations

import http.client
import io
import socket
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, urlsplit

from kshell.client.tls import context_of, server_name
from kshell.client.transport import open_socket

if TYPE_CHECKING:
    from kshell.client.tls import Tls

MOST_BYTES = 1 << 20
"""Of the body of an answer."""
_MOST_HEAD = 1 << 16
"""Bytes of status line and headers, those of interim responses (1xx) with them."""
_IN_URL = "/%:=&?~+!$,;'@()*[]"


class TooLargeError(Exception):
    """The answer has more bytes than any with a token in it."""


class Response(NamedTuple):
    """The status, and the body as it came (a content coding is not asked for)."""

    status: int
    body: bytes


def post(
    url: str, body: bytes, headers: Mapping[str, str], tls: Tls, *, connect: float, read: float, total: float
) -> Response:
    """Send one POST; redirections are not followed, and no proxy is used.

    Args:
        url: an ``https`` URL; a user and a password in it are passed over.
        body: what to send.
        headers: beside ``Host`` and ``Content-Length``.
        tls: whom to trust.
        connect: seconds until TLS is agreed on.
        read: seconds from then until the last byte of the answer is here.
        total: seconds for both.

    Raises:
        OSError: among others TimeoutError, ssl.SSLError.
        http.client.HTTPException: what came is not HTTP, or ends early.
        ValueError: the URL cannot be used.
        TooLargeError: headers or body have no end.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 443
    end = time.monotonic() + total
    deadline = min(end, time.monotonic() + connect)
    with open_socket(host, port, deadline) as plain:
        plain.settimeout(_left(deadline))
        with context_of(tls).wrap_socket(plain, server_hostname=server_name(host)) as connection:
            stream = _Stream(connection, min(end, time.monotonic() + read))
            exchange = _Connection(host, port, stream)
            target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
            exchange.request("POST", quote(target, safe=_IN_URL), body, dict(headers))
            response = exchange.getresponse()
            stream.most = stream.taken + MOST_BYTES
            found = bytearray()
            while part := response.read1(1 << 16):
                found += part
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            return Response(response.status, bytes(found))


class _Connection(http.client.HTTPConnection):
    """Over a stream that is there already."""

    default_port = 443

    def __init__(self, host: str, port: int, stream: _Stream) -> None:
        super().__init__(host, port)
        self._stream = stream

    def connect(self) -> None:
        self.sock = self._stream


class _Stream(io.RawIOBase):
    """A socket's bytes up to a deadline, and ``most`` of them; what ``http.client`` wants of a socket."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self.most = _MOST_HEAD
        self.taken = 0
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.taken >= self.most:
            raise TooLargeError
        self._connection.settimeout(_left(self._deadline))
        count = self._connection.recv_into(memoryview(buffer)[: self.most - self.taken])
        self.taken += count
        return count

    def sendall(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self._connection.settimeout(_left(self._deadline))
            rest = rest[self._connection.send(rest) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def close(self) -> None:
        """Whoever opened the socket closes it: ``http.client`` does it before the body was read."""


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
