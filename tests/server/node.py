"""One node: a listening socket, a thread a connection, requests answered in order, faults that spoil answers."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.protocol.api import Api
from kshell.protocol.decoder import Message, decoder
from kshell.protocol.primitives import DecodeError
from tests.server import sasl
from tests.server.apis import apis
from tests.server.faults import Fault, Reply, refuse_version
from tests.server.frames import decode_header, encode_response

if TYPE_CHECKING:
    from tests.server.quorum import Quorum

Range = tuple[int, int]
_BEFORE_LOGIN = ("ApiVersions", "SaslHandshake", "SaslAuthenticate")


class Asked(NamedTuple):
    """One request that a node read. ``connection`` counts a node's connections from 1 on."""

    node_id: int
    connection: int
    api: str
    version: int
    client_id: str | None
    body: Message


class _Rule:
    """A fault, and for which requests; ``left`` is how often still, ``None`` for ever."""

    def __init__(self, api: str | None, versions: range | None, fault: Fault, left: int | None, skip: int) -> None:
        self.api = api
        self.versions = versions
        self.fault = fault
        self.left = left
        self.skip = skip

    def takes(self, reply: Reply) -> bool:
        """Whether the reply is to be spoiled; counts."""
        if self.left == 0 or self.api not in (None, reply.api.name):
            return False
        if self.versions is not None and reply.version not in self.versions:
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.left is not None:
            self.left -= 1
        return True


class Session:
    """What a connection remembers between requests."""

    def __init__(self) -> None:
        self.mechanism: str | None = None
        self.exchange: sasl.Exchange | None = None
        self.is_authenticated = False
        self.ends = False
        """Set by an answer after which the server hangs up."""


class Node:
    """``kind`` is ``controller`` or ``broker``. ``ranges`` is what ApiVersions says; change it as you like."""

    def __init__(self, quorum: Quorum, node_id: int, kind: str, ranges: Mapping[int, Range]) -> None:
        self.quorum = quorum
        self.id = node_id
        self.kind = kind
        self.ranges = dict(ranges)
        self.cluster_id: str | None = None
        """Another cluster's id than the quorum's, where that is set."""
        self.tls: ssl.SSLContext | None = None
        self.connections = 0
        self._rules: list[_Rule] = []
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener: socket.socket | None = None
        self.port = 0
        self.start()

    # --- life ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Listens, at the port of before where there was one."""
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=50)
        self.port = self._listener.getsockname()[1]
        self._begin(self._accept, self._listener)

    def stop(self) -> None:
        """As a killed process: every socket is closed."""
        listener, self._listener = self._listener, None
        if listener is not None:
            _close(listener)
        self.disconnect()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(5)
        self._threads = [thread for thread in self._threads if thread.is_alive()]

    def disconnect(self) -> None:
        """Ends the connections that are open."""
        for connection in list(self._open):
            _close(connection)

    @property
    def is_up(self) -> bool:
        """Whether it listens."""
        return self._listener is not None

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"127.0.0.1:{self.port}"

    # --- faults --------------------------------------------------------------------------------------------------

    def on(
        self,
        api: str | None,
        fault: Fault,
        *,
        times: int | None = None,
        skip: int = 0,
        versions: range | None = None,
    ) -> None:
        """Spoils answers to ``api`` (``None``: to any): ``times`` of them after the first ``skip``, or all."""
        self._rules.append(_Rule(api, versions, fault, times, skip))

    def well(self) -> None:
        """Forgets every fault."""
        self._rules = []

    # --- serving -------------------------------------------------------------------------------------------------

    def _begin(self, target: object, *args: object) -> None:
        assert callable(target)
        thread = threading.Thread(target=target, args=args, name=f"{self.kind} {self.id}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            self.connections += 1
            self._begin(self._serve, connection, self.connections)

    def _serve(self, connection: socket.socket, number: int) -> None:
        if self.tls is not None:
            try:
                connection = self.tls.wrap_socket(connection, server_side=True)
            except OSError:
                return _close(connection)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._open.add(connection)
        if self._listener is None:
            _close(connection)  # it came while the node was stopped
        session = Session()
        try:
            for frame in _frames(connection):
                if not self._answer(connection, frame, number, session):
                    break
        except (OSError, DecodeError):
            pass  # the client went, or sent what no server of that release can read: hang up, as Kafka does
        finally:
            self._open.discard(connection)
            _close(connection)
        return None

    def _answer(self, connection: socket.socket, frame: bytes, number: int, session: Session) -> bool:
        """Whether the connection goes on."""
        reply = self._read(frame, number)
        if reply is None:
            return False
        if self.quorum.users and not session.is_authenticated and reply.api.name not in _BEFORE_LOGIN:
            return False
        self._fill(reply, session)
        for rule in list(self._rules):
            if rule.takes(reply):
                rule.fault(reply)
        return self._send(connection, reply) and not session.ends

    def _read(self, frame: bytes, number: int) -> Reply | None:
        """The request; ``None`` for one that the node does not know, on which Kafka hangs up."""
        head = decode_header(frame)
        api = self.quorum.dialects.get(head.api_key) or apis().get(head.api_key)
        if api is None:
            return None
        head = decode_header(frame, api.request.flexible)
        low, high = self.ranges.get(head.api_key, (0, -1))
        if not low <= head.version <= high or head.version not in api.versions:
            if api.name != "ApiVersions":
                return None
            self.quorum.note(Asked(self.id, number, api.name, head.version, head.client_id, {}))
            return self._unsupported(api, head.version, head.correlation_id)
        body, _ = decoder(api.request, head.version)(frame, head.body)  # as Kafka, which reads what it knows
        self.quorum.note(Asked(self.id, number, api.name, head.version, head.client_id, body))
        return Reply(api, head.version, head.correlation_id, body)

    def _unsupported(self, api: Api, version: int, correlation_id: int) -> Reply:
        reply = Reply(api, version, correlation_id, {})
        low, high = self.ranges[api.key]
        refuse_version(listed=self.quorum.lists_versions, low=low, high=high)(reply)
        return reply

    def _fill(self, reply: Reply, session: Session) -> None:
        if reply.body is None:
            from tests.server.answers import answer

            reply.body = answer(self, reply.api, reply.version, reply.request, session)

    def _send(self, connection: socket.socket, reply: Reply) -> bool:
        data = reply.raw
        if data is None:
            assert reply.body is not None
            frame = encode_response(reply.api, reply.version, reply.correlation_id, reply.body)
            data = struct.pack(">i", len(frame)) + frame
        if reply.pause:
            connection.sendall(data[: reply.pause_after])
            self.quorum.over.wait(reply.pause)
            data = data[reply.pause_after :]
        if reply.cut is not None:
            connection.sendall(data[: reply.cut])
            return _hang_up(connection, reset=reply.reset)
        allowed, reset = self.quorum.spend(len(data))
        connection.sendall(data[:allowed])
        return allowed == len(data) or _hang_up(connection, reset=reset)


def _frames(connection: socket.socket) -> Iterator[bytes]:
    while True:
        head = _exactly(connection, 4)
        if head is None:
            return
        frame = _exactly(connection, struct.unpack(">i", head)[0])
        if frame is None:
            return
        yield frame


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    parts = bytearray()
    while len(parts) < size:
        got = connection.recv(size - len(parts))
        if not got:
            return None
        parts += got
    return bytes(parts)


def _hang_up(connection: socket.socket, *, reset: bool) -> bool:
    """Ends the connection, orderly or so that the peer sees a reset."""
    if reset:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    return False


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        connection.close()
