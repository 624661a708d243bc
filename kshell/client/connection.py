"""One connection to one node: frames over a socket, with or without TLS, and requests, one after another.

In: a host and port, and requests as dictionaries. Out: decoded responses, or NodeErrors. A :class:`Connection` uses the
network only through a :class:`Transport`, which tests replace. Threads may share a connection; they wait for each
other. After any failure a connection is closed and never used again: otherwise the late response to one request could
be taken for the response to the next. Deadlines are values of ``time.monotonic()``.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from kshell.client.address import name_of
from kshell.client.concurrency import start
from kshell.errors import ConnectError, NodeError, ProtocolError, SourceTimeoutError, UnsupportedVersionError
from kshell.protocol.api import API_VERSIONS_KEY, Api, correlation_of, decode_response, encode_request
from kshell.protocol.decoder import Message
from kshell.protocol.primitives import DecodeError
from kshell.protocol.schema import Versions

if TYPE_CHECKING:
    from kshell.client.settings import Settings


# --- frames over a socket ---------------------------------------------------------------------------------------------


MAX_FRAME = 64 << 20
"""Bytes of the largest response that is accepted; a larger claimed length is an error before anything is allocated."""
_TLS_ALERT = b"\x15\x03"
_HTTP = b"HTTP"
_SSH = b"SSH-"
NOT_KAFKA = "is it a Kafka listener, and is security.protocol that of the listener?"
"""The hint for an answer that is not of Kafka's protocol."""


class Transport(Protocol):
    """Sends and receives frames of a :class:`Connection`. Errors are NodeErrors; after one, the transport is closed."""

    node: str

    def send(self, frame: bytes, deadline: float) -> None:
        """Send one frame."""

    def receive(self, deadline: float, flow: Flow | None = None) -> bytes:
        """Return the next frame, without its length; it begins before ``deadline``, and by default ends before it."""

    def has_ended(self) -> bool:
        """Whether the peer closed the connection while no request was under way."""

    def close(self) -> None:
        """Release the socket; another thread may call this to end a call that waits."""


_AddressInfo = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]
"""As ``socket.getaddrinfo`` returns it."""


class Flow(NamedTuple):
    """How long an answer may take once it has begun: a slow link is no node that hangs.

    Attributes:
        deadline: the monotonic time at which the whole answer has to be there.
        stall: seconds in which some bytes have to come.
    """

    deadline: float
    stall: float


class SocketTransport:
    """A transport over TCP, with TLS if ``settings.tls`` is set. Connects when it is made; raises NodeError."""

    def __init__(self, host: str, port: int, deadline: float, settings: Settings | None = None) -> None:
        self.node = name_of(host, port)
        self._tls = settings.tls if settings is not None else None
        self._answered = False
        self._socket = _connect(host, port, self.node, deadline)
        if settings is not None and settings.tls is not None:
            self._socket = _wrap_tls(self._socket, host, port, settings, deadline)

    def send(self, frame: bytes, deadline: float) -> None:
        """Send one frame, with its length. Raises ConnectError, SourceTimeoutError, TlsError."""
        rest = memoryview(struct.pack(">i", len(frame)) + frame)
        try:
            while rest:  # not sendall: with TLS, each of its writes would get the whole timeout again
                self._socket.settimeout(seconds_left(deadline))
                rest = rest[self._socket.send(rest) :]
        except OSError as error:
            raise self._failed(error) from None

    def receive(self, deadline: float, flow: Flow | None = None) -> bytes:
        """Return the next frame. Raises ConnectError, SourceTimeoutError, TlsError, ProtocolError for a bad length."""
        head = self._exactly(4, deadline)
        self._answered = True
        (size,) = struct.unpack(">i", head)
        if not 0 <= size <= MAX_FRAME:
            self.close()
            raise ProtocolError(
                self.node, _not_kafka(head) or f"an answer of {size} bytes is claimed", hint=_hint(head)
            )
        if flow is None:
            return self._exactly(size, deadline)
        return self._exactly(size, max(deadline, flow.deadline), flow.stall)

    def has_ended(self) -> bool:
        """Whether there is anything to read: without a request, that is the end (or as bad as that). Never raises."""
        try:
            poll = select.poll()
            poll.register(self._socket, select.POLLIN)
            return bool(poll.poll(0))
        except (OSError, ValueError):
            return True

    def close(self) -> None:
        """Shut down and close the socket. Never raises."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self._socket.close()

    def _exactly(self, size: int, deadline: float, stall: float = inf) -> bytes:
        buffer = bytearray(size)
        view = memoryview(buffer)
        received = 0
        while received < size:
            try:
                self._socket.settimeout(min(seconds_left(deadline), stall))
                got = self._socket.recv_into(view[received:])
            except OSError as error:
                raise self._failed(error) from None
            if not got:
                self.close()
                where = f"after {received} of {size} bytes" if received or self._answered else "before it answered"
                raise ConnectError(self.node, f"the peer closed the connection {where}")
            received += got
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


def seconds_left(deadline: float) -> float:
    """Return the seconds until a deadline. Raises TimeoutError if it has passed."""
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise TimeoutError
    return remaining


def open_socket(host: str, port: int, deadline: float) -> socket.socket:
    """Open a TCP connection to the first IP address of ``host`` that accepts it.

    The addresses share the time until ``deadline``, so one that does not answer leaves time for the next. Raises
    OSError; ValueError or OverflowError for a host or port that is not valid.
    """
    addresses = _addresses_of(host, port, deadline)
    failure: OSError = TimeoutError()
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        connection = socket.socket(family, kind, protocol)
        try:
            connection.settimeout(seconds_left(deadline) / (len(addresses) - number))
            connection.connect(address)
        except BaseException as error:
            connection.close()
            if not isinstance(error, OSError):
                raise
            failure = error
        else:
            return connection
    raise failure


def _addresses_of(host: str, port: int, deadline: float) -> Sequence[_AddressInfo]:
    """Resolve a host name. The system's resolver knows no deadline, so it is left behind in a thread where it hangs."""
    remaining = seconds_left(deadline)
    resolving = start(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    try:
        return resolving.result(remaining)
    except concurrent.futures.TimeoutError:
        raise socket.gaierror(socket.EAI_AGAIN, "no answer from the name server in time") from None


def _connect(host: str, port: int, node: str, deadline: float) -> socket.socket:
    """Call :func:`open_socket` and turn its errors into ConnectError or SourceTimeoutError."""
    try:
        connection = open_socket(host, port, deadline)
    except socket.gaierror as error:
        hint = "is the host name right, and can this machine resolve it?"
        raise ConnectError(node, f"the name cannot be resolved: {error.strerror}", hint=hint) from None
    except TimeoutError:
        hint = "is the port open to this machine? socket.connection.setup.timeout.ms sets how long to wait"
        raise SourceTimeoutError(node, "no connection in time", hint=hint) from None
    except (OSError, ValueError, OverflowError) as error:  # the latter two: a host name or port that is not valid
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise ConnectError(node, f"cannot be reached: {reason}", hint="does a node listen there?") from None
    with contextlib.suppress(OSError):  # the peer may have closed the connection already; the first read reports it
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _wrap_tls(plain: socket.socket, host: str, port: int, settings: Settings, deadline: float) -> socket.socket:
    """Do the TLS handshake, or close the socket. Raises TlsError, SourceTimeoutError, UsageError for bad stores."""
    from kshell.client.tls import context_of, explain, server_name

    assert settings.tls is not None
    node = name_of(host, port)
    try:
        context = context_of(settings.tls)
        plain.settimeout(seconds_left(deadline))
        return context.wrap_socket(plain, server_hostname=server_name(host))
    except TimeoutError:
        plain.close()
        hint = "is it a TLS listener, and does the node run? Without TLS, or when it hangs, it answers no handshake"
        raise SourceTimeoutError(node, "the TLS handshake did not end in time", hint=hint) from None
    except (OSError, EOFError, ValueError) as error:
        plain.close()
        raise explain(error, node, presents=settings.tls.presents) from None
    except BaseException:
        plain.close()
        raise


def _not_kafka(head: bytes) -> str | None:
    if head.startswith(_TLS_ALERT):
        return "the listener speaks TLS, but security.protocol is one without TLS"
    if head in (_HTTP, _SSH):
        return f"the answer begins with {head.decode()}: this is no Kafka listener"
    return None


def _hint(head: bytes) -> str:
    if head.startswith(_TLS_ALERT):
        return "set security.protocol=SSL or SASL_SSL (--config FILE, or -X security.protocol=SSL)"
    return NOT_KAFKA


# --- versions of APIs (KIP-35, KIP-584) -------------------------------------------------------------------------------


Range = tuple[int, int]
PRODUCE = 0
_NO_VERSIONS: Mapping[Any, Any] = {}


class NodeVersions(NamedTuple):
    """What a node reported in ApiVersions; valid only for the connection on which it did.

    ``ranges`` is API key -> (lowest, highest) version, ``supported`` is feature -> (lowest, highest) level,
    ``finalized`` is feature -> finalized level. ``software`` is (name, version), known only with the dialect
    ``kip-885-apiversions`` (a draft's message: :mod:`kshell.protocol.messages.drafts`). ``assumed`` is set if the node
    did not answer: then ``ranges`` are those of this release (``broker.version.fallback``).
    """

    ranges: Mapping[int, Range]
    supported: Mapping[str, Range] = _NO_VERSIONS
    finalized: Mapping[str, int] = _NO_VERSIONS
    software: tuple[str | None, str | None] = (None, None)
    assumed: str | None = None

    @property
    def is_broker(self) -> bool:
        """Whether the node offers Produce; before 3.7, nothing else distinguishes a broker from a controller."""
        return PRODUCE in self.ranges


def versions_of(body: Message) -> NodeVersions:
    """Read the body of an ApiVersions response of any version or dialect."""
    return NodeVersions(
        {item["apiKey"]: (item["minVersion"], item["maxVersion"]) for item in body["apiKeys"]},
        {item["name"]: (item["minVersion"], item["maxVersion"]) for item in body.get("supportedFeatures", ())},
        {item["name"]: item["maxVersionLevel"] for item in body.get("finalizedFeatures", ())},
        (body.get("brokerSoftwareName"), body.get("brokerSoftwareVersion")),
    )


def choose_version(
    api: Api, node: str, offered: NodeVersions, excluded: Mapping[str, frozenset[int]], accepted: Versions | None = None
) -> int:
    """Return the highest version of an API that the node offers, kshell knows and the caller and the settings allow.

    ``accepted`` are the versions that the caller can work with (``None``: all), ``excluded`` those that the settings
    exclude, by API name. Raises UnsupportedVersionError, which names the versions of both sides.
    """
    ours = api.versions
    low, high = offered.ranges.get(api.key, (0, -1))
    banned = excluded.get(api.name, frozenset())
    for version in range(min(high, ours.high if ours.high is not None else high), max(low, ours.low) - 1, -1):
        if version not in banned and (accepted is None or version in accepted):
            return version
    theirs = f"the node offers {low}-{high}" if low <= high else "the node does not offer it"
    mine = f"kshell knows {ours}" + (f" and needs {accepted}" if accepted else "")
    left_out = f", without {', '.join(map(str, sorted(banned)))} (api.versions.exclude)" if banned else ""
    hint = "`api-versions` shows what each node offers"
    raise UnsupportedVersionError(node, f"UnsupportedVersion: {theirs}, {mine}{left_out}", api=api.name, hint=hint)


# --- requests ---------------------------------------------------------------------------------------------------------


_LARGEST_ID = 0x7FFFFFFF
_PATIENCE = 5.0
_STALL = 3.0
"""Seconds without a byte after which an answer that has begun does not go on."""
_DIALECT = "a dialect was asked for: does the node speak it?"
_NOTHING_EXCLUDED: Mapping[str, frozenset[int]] = {}


class Reply(NamedTuple):
    """The body of a response, and the version of the request and response."""

    version: int
    body: Message


class Connection:
    """Sends requests to one node and returns the responses, one at a time.

    :func:`.negotiation.connect` makes a connection that is ready for use; then :meth:`request` is the usual call.
    ``versions`` are what the node offers; ``excluded`` is API name -> versions not to use; ``dialect_apis`` is API
    key -> the API as a dialect declares it; ``timeout`` is in seconds, for each response.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        client_id: str = "kshell",
        timeout: float = 30.0,
        excluded: Mapping[str, frozenset[int]] = _NOTHING_EXCLUDED,
        dialect_apis: Mapping[int, Api] | None = None,
    ) -> None:
        self.node = transport.node
        self.versions = NodeVersions({})
        self.is_open = True
        self.excluded = excluded
        self.timeout = timeout
        self.retires_at = inf
        """The monotonic time from which on the node closes the connection at the next request (KIP-368)."""
        self.awaited: Api | None = None
        """The API of the request that waits for its answer, or waited for it when an interrupt or a deadline came."""
        self._transport = transport
        self._client_id = client_id
        self._dialect_apis = dialect_apis or {}
        self._next_id = 1
        self._turn = threading.Lock()

    @property
    def patience(self) -> float:
        """Seconds to wait for what a node has in memory, at most 5: a node that hangs must not delay the next one."""
        return min(_PATIENCE, self.timeout)

    def request(
        self,
        api: Api,
        message: Message,
        *,
        accepted: Versions | None = None,
        timeout: float | None = None,
        whole: float | None = None,
    ) -> Reply:
        """Send a request with the highest common version that is ``accepted``; return the answer. Raises NodeError.

        Args:
            api: the API.
            message: the request's body.
            accepted: the versions that the caller can work with; ``None``: all.
            timeout: seconds until the answer, ``request.timeout.ms`` by default.
            whole: seconds for an answer that has begun within ``timeout``, if bytes of it keep coming: a large one may
                take long over a slow link. ``None``: the whole answer has to come within ``timeout``.
        """
        api = self.api(api)
        version = choose_version(api, self.node, self.versions, self.excluded, accepted)
        return Reply(version, self.exchange(api, version, message, timeout=timeout, whole=whole))

    def api(self, api: Api) -> Api:
        """Return the API as the dialect in use declares it, or else unchanged."""
        return self._dialect_apis.get(api.key, api)

    def is_usable(self) -> bool:
        """Whether the connection is still open, and its session has not expired; closed here if that is not so.

        A server ends idle connections (``connections.max.idle.ms``), and expired ones only at their next request.
        """
        if not self.is_open or not self._turn.acquire(blocking=False):
            return self.is_open
        try:
            if time.monotonic() >= self.retires_at or self._transport.has_ended():
                self.close()
        finally:
            self._turn.release()
        return self.is_open

    def offers(self, api: Api, version: int = 0) -> bool:
        """Whether the node serves ``version`` of an API or a later one."""
        return self.versions.ranges.get(api.key, (0, -1))[1] >= version

    def exchange(
        self, api: Api, version: int, message: Message, *, timeout: float | None = None, whole: float | None = None
    ) -> Message:
        """Send a request with that version, whatever was negotiated; return the response's body. Raises NodeError.

        ``whole`` is as for :meth:`request`.
        """
        return self.decoded(api, version, self.exchange_raw(api, version, message, timeout=timeout, whole=whole))

    def decoded(self, api: Api, version: int, frame: bytes) -> Message:
        """Decode a response. Raises ProtocolError if it is not one of that version or dialect."""
        try:
            body = decode_response(api, version, frame)[1]
        except DecodeError as error:
            raise self.not_understood(api, version, error) from None
        if api.key in self._dialect_apis:
            from kshell.protocol.messages.drafts import why_not_in_dialect

            reason = why_not_in_dialect(api, version, body)
            if reason is not None:
                raise self.not_understood(api, version, DecodeError(reason, len(frame)))
        return body

    def exchange_raw(
        self, api: Api, version: int, message: Message, *, timeout: float | None = None, whole: float | None = None
    ) -> bytes:
        """The same as :meth:`exchange`, but return the response undecoded, with its header."""
        with self._turn:
            request_id = self._next_id
            self._next_id = request_id % _LARGEST_ID + 1
            began = time.monotonic()
            deadline = began + (self.timeout if timeout is None else timeout)
            flow = None if whole is None else Flow(began + whole, _STALL)
            self.awaited = api
            try:
                self._transport.send(encode_request(api, version, request_id, self._client_id, message), deadline)
                frame = self._transport.receive(deadline, flow)
            except NodeError as error:
                self.awaited = None
                self.close()
                raise self._with_api_and_hint(error, api) from None
            except BaseException:
                self.close()  # an interrupt leaves an answer under way
                raise
            self.awaited = None
            self._check(frame, request_id, api)
            return frame

    def not_understood(self, api: Api, version: int, error: DecodeError) -> ProtocolError:
        """Close the connection, and return the error for a response that is not one of that version."""
        self.close()
        hint = _DIALECT if api.key in self._dialect_apis else None
        reason = f"the answer is not a {api.response.name} v{version}: {error}"
        return ProtocolError(self.node, reason, api=api.name, hint=hint)

    def _with_api_and_hint(self, error: NodeError, api: Api) -> NodeError:
        """Return the same error with the name of the API, and with a hint if it has none."""
        if error.api is not None:
            return error
        hint = error.hint
        if hint is None and isinstance(error, SourceTimeoutError):
            key = "socket.connection.setup" if api.key == API_VERSIONS_KEY else "request"
            hint = f"{key}.timeout.ms sets how long to wait"
        if hint is None and api.key in self._dialect_apis:
            hint = _DIALECT  # Kafka hangs up on a request that it cannot read
        return type(error)(error.node, error.reason, api=api.name, hint=hint)

    def _check(self, frame: bytes, request_id: int, api: Api) -> None:
        if len(frame) < 4:
            self.close()
            raise ProtocolError(self.node, f"an answer of {len(frame)} bytes has no header", api=api.name)
        if (answered := correlation_of(frame)) != request_id:
            self.close()
            reason = f"the answer is to request {answered}, but request {request_id} was sent"
            raise ProtocolError(self.node, reason, api=api.name)

    def close(self) -> None:
        """End the connection; a call that waits in another thread ends with an error."""
        self.is_open = False
        self._transport.close()
