"""One connection to one node: requests in order, each answered within its deadline.

Threads take turns. A connection that failed in any way is closed and never used again: an answer that comes late must
not be taken for the next one's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

from kshell.client.transport import Transport
from kshell.client.versions import NodeVersions, choose
from kshell.errors import NodeError, ProtocolError, SourceTimeoutError
from kshell.protocol.api import API_VERSIONS_KEY, Api, correlation_of, decode_response, encode_request
from kshell.protocol.decoder import Message
from kshell.protocol.primitives import DecodeError
from kshell.protocol.schema import Versions

_LARGEST_ID = 0x7FFFFFFF
_PATIENCE = 5.0
_DIALECT = "a dialect was asked for: does the node speak it?"
_NOTHING: Mapping[str, frozenset[int]] = {}


class Answer(NamedTuple):
    """The body of a response, and the version that was spoken."""

    version: int
    body: Message


class Connection:
    """``versions`` is what the node said in this connection's handshake; ``overlay`` holds a dialect's APIs by key."""

    def __init__(
        self,
        transport: Transport,
        *,
        client_id: str = "kshell",
        timeout: float = 30.0,
        excluded: Mapping[str, frozenset[int]] = _NOTHING,
        overlay: Mapping[int, Api] | None = None,
    ) -> None:
        self.node = transport.node
        self.versions = NodeVersions({})
        self.is_open = True
        self.excluded = excluded
        self.timeout = timeout
        self._transport = transport
        self._client_id = client_id
        self._overlay = overlay or {}
        self._next_id = 1
        self._turn = threading.Lock()

    @property
    def patience(self) -> float:
        """Seconds for an answer that a node has in memory: one that hangs must not keep us from the next node."""
        return min(_PATIENCE, self.timeout)

    def request(
        self, api: Api, message: Message, *, needed: Versions | None = None, timeout: float | None = None
    ) -> Answer:
        """Asks with the highest common version (of those ``needed``). Raises NodeError."""
        api = self.api(api)
        version = choose(api, self.node, self.versions, self.excluded, needed)
        return Answer(version, self.exchange(api, version, message, timeout=timeout))

    def api(self, api: Api) -> Api:
        """The API as it is declared, or as the dialect in use has it."""
        return self._overlay.get(api.key, api)

    def is_usable(self) -> bool:
        """Whether it makes sense to ask: a server ends connections that were idle (``connections.max.idle.ms``)."""
        if not self.is_open or not self._turn.acquire(blocking=False):
            return self.is_open
        try:
            if self._transport.has_ended():
                self.close()
        finally:
            self._turn.release()
        return self.is_open

    def offers(self, api: Api, version: int = 0) -> bool:
        """Whether the node serves ``version`` of an API or a later one."""
        return self.versions.ranges.get(api.key, (0, -1))[1] >= version

    def exchange(self, api: Api, version: int, message: Message, *, timeout: float | None = None) -> Message:
        """Asks with that version, whatever was negotiated. Raises NodeError."""
        return self.decoded(api, version, self.exchange_raw(api, version, message, timeout=timeout))

    def decoded(self, api: Api, version: int, frame: bytes) -> Message:
        """The body of an answer. Raises ProtocolError for one that is no response of that version or dialect."""
        try:
            body = decode_response(api, version, frame)[1]
        except DecodeError as error:
            raise self.not_understood(api, version, error) from None
        if api.key in self._overlay:
            from kshell.protocol.messages.drafts import doubt

            reason = doubt(api, version, body)
            if reason is not None:
                raise self.not_understood(api, version, DecodeError(reason, len(frame)))
        return body

    def exchange_raw(self, api: Api, version: int, message: Message, *, timeout: float | None = None) -> bytes:
        """As :meth:`exchange`, with the answer's bytes."""
        with self._turn:
            request_id = self._next_id
            self._next_id = request_id % _LARGEST_ID + 1
            deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
            try:
                self._transport.send(encode_request(api, version, request_id, self._client_id, message), deadline)
                frame = self._transport.receive(deadline)
            except NodeError as error:
                self.close()
                raise self._about(error, api) from None
            except BaseException:
                self.close()  # an interrupt leaves an answer under way
                raise
            self._check(frame, request_id, api)
            return frame

    def not_understood(self, api: Api, version: int, error: DecodeError) -> ProtocolError:
        """The error for an answer that is no response of that version; the connection is closed."""
        self.close()
        hint = _DIALECT if api.key in self._overlay else None
        reason = f"the answer is not a {api.response.name} v{version}: {error}"
        return ProtocolError(self.node, reason, api=api.name, hint=hint)

    def _about(self, error: NodeError, api: Api) -> NodeError:
        """The same error, with the API that was asked."""
        if error.api is not None:
            return error
        hint = error.hint
        if hint is None and isinstance(error, SourceTimeoutError):
            key = "socket.connection.setup" if api.key == API_VERSIONS_KEY else "request"
            hint = f"{key}.timeout.ms sets how long to wait"
        if hint is None and api.key in self._overlay:
            hint = _DIALECT  # Kafka hangs up on a request that it cannot read
        return type(error)(error.node, error.reason, api=api.name, hint=hint)

    def _check(self, frame: bytes, request_id: int, api: Api) -> None:
        if len(frame) < 4:
            self.close()
            raise ProtocolError(self.node, f"an answer of {len(frame)} bytes has no header", api=api.name)
        if (answered := correlation_of(frame)) != request_id:
            self.close()
            reason = f"the answer is to request {answered}, and request {request_id} was asked"
            raise ProtocolError(self.node, reason, api=api.name)

    def close(self) -> None:
        """Ends the connection; a call that waits in another thread ends with an error."""
        self.is_open = False
        self._transport.close()
