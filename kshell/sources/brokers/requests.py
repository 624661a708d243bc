"""Send requests to the brokers of a cluster; repeat them while an error may pass, else raise a NodeError."""

from __future__ import annotations

import time
from math import inf
from typing import NamedTuple

from kshell.client import codes
from kshell.client.backoff import Backoff
from kshell.client.connection import Connection
from kshell.client.nodes import Nodes
from kshell.errors import ConnectError, NodeError, SourceTimeoutError
from kshell.metadata.partial import reported_by
from kshell.metadata.values import Origin
from kshell.protocol.api import Api
from kshell.protocol.decoder import Message
from kshell.protocol.names import is_retriable
from kshell.protocol.schema import Versions

_PATIENCE = 5.0
"""The most seconds in which a broker has to accept a connection after another question had no answer in time."""


class NodeAnswer(NamedTuple):
    """The body of an answer, and the origin of the values in it: the node and the API."""

    body: Message
    origin: Origin

    @property
    def node(self) -> str:
        """The ``host:port`` that answered."""
        return self.origin.place.file


def ask(
    nodes: Nodes, api: Api, message: Message, accepted: Versions | None = None, *, seconds: float = inf
) -> NodeAnswer:
    """Ask any node, and again, perhaps another one, for ``default.api.timeout.ms`` or ``seconds``, whichever is less.

    Raises NodeError.
    """
    settings = nodes.settings
    end = time.monotonic() + min(settings.api_timeout, seconds)
    backoff = Backoff(settings.retry_backoff, settings.retry_backoff_max, end)
    failure: NodeError | None = None
    while True:
        try:
            connection = nodes.any(timeout=backoff.seconds_left)
            answer = ask_at(connection, api, message, accepted, timeout=min(connection.timeout, backoff.seconds_left))
            code = answer.body.get("errorCode", 0)
            if not code:
                return answer
            failure = codes.failure(answer.node, code, api.name, answer.body.get("errorMessage"))
            if not is_retriable(code):
                raise failure
        except (ConnectError, SourceTimeoutError) as error:
            if failure is None or backoff.seconds_left:  # an error caused by the deadline must not hide the earlier one
                failure = error
        if backoff.is_over:
            raise failure
        backoff.wait()


def raise_if_no_broker_answers(nodes: Nodes, error: ConnectError | SourceTimeoutError) -> None:
    """Raise ``error`` if no broker can be connected to any more: then other questions would wait in vain, too."""
    try:
        nodes.any(timeout=_PATIENCE)
    except (ConnectError, SourceTimeoutError):
        raise error from None


def ask_at(
    connection: Connection,
    api: Api,
    message: Message,
    accepted: Versions | None = None,
    *,
    timeout: float | None = None,
) -> NodeAnswer:
    """Ask one node, once; the caller has to check the answer for an error code. Raises NodeError."""
    answer = connection.request(api, message, accepted=accepted, timeout=timeout)
    return NodeAnswer(answer.body, reported_by(connection.node, api.name, answer.version))
