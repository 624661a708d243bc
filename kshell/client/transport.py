"""Frames over a socket: four bytes of length, then so many bytes; in the clear or inside TLS.

A transport is all that a connection knows of the network, so a test can put another one in its place. Every call has a
deadline, a value of ``time.monotonic()``.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from typing import TYPE_CHECKING, Protocol

from kshell.client.address import name_of
from kshell.errors import ConnectError, NodeError, ProtocolError, SourceTimeoutError

if TYPE_CHECKING:
    from kshell.client.settings import Settings

MAX_FRAME = 64 << 20
"""Bytes of an answer that are believed in; nothing is allocated for more."""
_TLS_ALERT = b"\x15\x03"
_HTTP = b"HTTP"
_SSH = b"SSH-"
_WRONG_NAME = (62, 64)
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH."""


class Transport(Protocol):
    """What a connection needs. Errors are NodeErrors; after one, the transport is closed."""

    node: str

    def send(self, frame: bytes, deadline: float) -> None:
        """Sends one frame."""

    def receive(self, deadline: float) -> bytes:
        """The next frame, without its length."""

    def has_ended(self) -> bool:
        """Whether the peer hung up while nothing was asked."""

    def close(self) -> None:
        """Lets go of the socket; may be called from another thread to end a call that waits."""


class SocketTransport:
    """Over TCP, and inside TLS where ``settings`` are given that say how."""

    def __init__(self, host: str, port: int, deadline: float, settings: Settings | None = None) -> None:
        self.node = name_of(host, port)
        self._tls = settings.tls if settings is not None else None
        self._answered = False
        self._socket = _connected(host, port, self.node, deadline)
        if settings is not None and settings.tls is not None:
            self._socket = _secured(self._socket, host, port, settings, deadline)

    def send(self, frame: bytes, deadline: float) -> None:
        """Raises ConnectError, SourceTimeoutError."""
        rest = memoryview(struct.pack(">i", len(frame)) + frame)
        try:
            while rest:  # not sendall: inside TLS it gives each of its writes the whole time again
                self._socket.settimeout(_left(deadline))
                rest = rest[self._socket.send(rest) :]
        except OSError as error:
            raise self._failed(error) from None

    def receive(self, deadline: float) -> bytes:
        """Raises ConnectError, SourceTimeoutError, ProtocolError for a length that no answer has."""
        head = self._exactly(4, deadline)
        self._answered = True
        (size,) = struct.unpack(">i", head)
        if not 0 <= size <= MAX_FRAME:
            self.close()
            raise ProtocolError(
                self.node, _not_kafka(head) or f"an answer of {size} bytes is claimed", hint=_hint(head)
            )
        return self._exactly(size, deadline)

    def has_ended(self) -> bool:
        """Something to read that nobody asked for is the end (or as good as that). Never raises."""
        try:
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            return bool(poll.poll(0))
        except (OSError, ValueError):
            return True

    def close(self) -> None:
        """Never raises."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self._socket.close()

    def _exactly(self, size: int, deadline: float) -> bytes:
        buffer = bytearray(size)
        view = memoryview(buffer)
        done = 0
        while done < size:
            try:
                self._socket.settimeout(_left(deadline))
                got = self._socket.recv_into(view[done:])
            except OSError as error:
                raise self._failed(error) from None
            if not got:
                self.close()
                where = f"after {done} of {size} bytes" if done or self._answered else "before it answered"
                raise ConnectError(self.node, f"the peer closed the connection {where}")
            done += got
        return bytes(buffer)

    def _failed(self, error: OSError) -> NodeError:
        self.close()
        if isinstance(error, TimeoutError):
            return SourceTimeoutError(self.node, "no answer in time")
        if self._tls is not None:
            import ssl

            from kshell.client.tls import explain

            if isinstance(error, ssl.SSLError):
                return explain(error, self.node, presents=self._tls.presents, handshake=False)
        return ConnectError(self.node, f"the connection ended: {error.strerror or type(error).__name__}")


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def open_socket(host: str, port: int, deadline: float) -> socket.socket:
    """A TCP connection to one of the addresses that the name has. Raises OSError, ValueError, OverflowError.

    The addresses share the time up to ``deadline``: one that does not answer leaves its part to the next.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    failure: OSError = TimeoutError()
    for number, (family, kind, protocol, _, address) in enumerate(found):
        made = socket.socket(family, kind, protocol)
        try:
            made.settimeout(_left(deadline) / (len(found) - number))
            made.connect(address)
        except BaseException as error:
            made.close()
            if not isinstance(error, OSError):
                raise
            failure = error
        else:
            return made
    raise failure


def _connected(host: str, port: int, node: str, deadline: float) -> socket.socket:
    """Tries each address that the name has. Raises ConnectError, SourceTimeoutError."""
    try:
        made = open_socket(host, port, deadline)
    except socket.gaierror as error:
        hint = "is the host name right, and can this machine resolve it?"
        raise ConnectError(node, f"the name cannot be resolved: {error.strerror}", hint=hint) from None
    except TimeoutError:
        hint = "is the port open to this machine? socket.connection.setup.timeout.ms sets how long to wait"
        raise SourceTimeoutError(node, "no connection in time", hint=hint) from None
    except (OSError, ValueError, OverflowError) as error:  # the latter two: a name or a port that cannot be
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise ConnectError(node, f"cannot be reached: {reason}", hint="does a node listen there?") from None
    with contextlib.suppress(OSError):  # the peer may be gone again; the first read says so
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def _secured(plain: socket.socket, host: str, port: int, settings: Settings, deadline: float) -> socket.socket:
    """TLS agreed on. Raises TlsError, SourceTimeoutError, UsageError for stores that cannot be used."""
    from kshell.client.tls import context, explain, server_name

    assert settings.tls is not None
    node = name_of(host, port)
    try:
        made = context(settings)
        plain.settimeout(_left(deadline))
        return made.wrap_socket(plain, server_hostname=server_name(host))
    except TimeoutError:
        plain.close()
        hint = "is it a TLS listener? One without TLS waits for something else"
        raise SourceTimeoutError(node, "TLS was not agreed on in time", hint=hint) from None
    except (OSError, EOFError, ValueError) as error:
        plain.close()
        names = _names_of(host, port, settings, error)
        raise explain(error, node, names=names, presents=settings.tls.presents) from None
    except BaseException:
        plain.close()
        raise


def _names_of(host: str, port: int, settings: Settings, error: BaseException) -> list[str]:
    """For what names the certificate is, where it is for another one: the message says it."""
    import ssl

    if not isinstance(error, ssl.SSLCertVerificationError) or error.verify_code not in _WRONG_NAME:
        return []
    from kshell.client.tls_errors import presented_names

    return presented_names(host, port, settings, settings.connect_timeout)


def _not_kafka(head: bytes) -> str | None:
    if head.startswith(_TLS_ALERT):
        return "the listener speaks TLS, and kshell was told not to"
    if head in (_HTTP, _SSH):
        return f"the answer begins with {head.decode()}: this is no Kafka listener"
    return None


def _hint(head: bytes) -> str:
    if head.startswith(_TLS_ALERT):
        return "set security.protocol=SSL or SASL_SSL (--config FILE, or -X security.protocol=SSL)"
    return "is it a Kafka listener, with the security.protocol that kshell was told?"
