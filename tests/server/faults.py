"""What a server does wrong, as functions that spoil one reply; :meth:`tests.server.Node.on` says when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kshell.protocol.api import Api
from kshell.protocol.decoder import Message

UNSUPPORTED_VERSION = 35


class Reply:
    """One answer on its way. ``raw``, where set, is sent in place of the frame, its length included.

    ``pause`` is in seconds, after ``pause_after`` bytes; the connection ends after ``cut`` bytes (all are sent where
    it is ``None``), with a reset where ``reset`` is set. Without a ``body`` nothing is sent.
    """

    def __init__(self, api: Api, version: int, correlation_id: int, request: Message) -> None:
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.request = request
        self.body: Message | None = None
        self.raw: bytes | None = None
        self.pause = 0.0
        self.pause_after = 0
        self.cut: int | None = None
        self.reset = False


Fault = Callable[[Reply], None]


def hang_up(reply: Reply) -> None:
    """The connection ends without an answer."""
    reply.cut = 0


def cut(after: int, *, reset: bool = False) -> Fault:
    """The connection ends after so many bytes of the answer."""

    def spoil(reply: Reply) -> None:
        reply.cut, reply.reset = after, reset

    return spoil


def slow(seconds: float, *, after: int = 0) -> Fault:
    """A pause before the answer, or inside it."""

    def spoil(reply: Reply) -> None:
        reply.pause, reply.pause_after = seconds, after

    return spoil


def length(claimed: int) -> Fault:
    """Four bytes that claim so many more, which never come."""
    return raw(claimed.to_bytes(4, "big", signed=True))


def raw(data: bytes) -> Fault:
    """Bytes that are no answer; the frame's length is for the caller to add."""

    def spoil(reply: Reply) -> None:
        reply.raw = data

    return spoil


def frame(data: bytes) -> Fault:
    """A frame that holds the request's correlation id, and then ``data``."""

    def spoil(reply: Reply) -> None:
        inside = reply.correlation_id.to_bytes(4, "big") + data
        reply.raw = len(inside).to_bytes(4, "big") + inside

    return spoil


def wrong_correlation(reply: Reply) -> None:
    """The answer to another request."""
    reply.correlation_id += 1


def other_version(version: int) -> Fault:
    """The answer in the layout of another version than the one that was asked."""

    def spoil(reply: Reply) -> None:
        reply.version = version

    return spoil


def change(edit: Callable[[Message], Any]) -> Fault:
    """The body edited in place."""

    def spoil(reply: Reply) -> None:
        if reply.body is not None:
            edit(reply.body)

    return spoil


def refuse_version(*, listed: bool = True, low: int = 0, high: int = 0) -> Fault:
    """Error 35 to ApiVersions, in a body of version 0: with what the node would take (KIP-511), or with no list."""

    def spoil(reply: Reply) -> None:
        entry = {"apiKey": 18, "minVersion": low, "maxVersion": high}
        reply.body = {"errorCode": UNSUPPORTED_VERSION, "apiKeys": [entry] if listed else []}
        reply.version = 0

    return spoil


def error(code: int, *, whole: bool = False, message: str | None = None) -> Fault:
    """An error code where the API has it; ``whole``: for the whole request where it has one for a partition too."""

    def spoil(reply: Reply) -> None:
        reply.body = _with_error(reply.api.name, reply.body or {}, code, message, whole=whole)

    return spoil


def _with_error(api: str, body: Message, code: int, message: str | None, *, whole: bool) -> Message:
    topics = body.get("responses" if api == "Fetch" else "topics") or []
    if api in ("Fetch", "FetchSnapshot", "DescribeQuorum") and not whole:
        for partition in (partition for topic in topics for partition in topic["partitions"]):
            partition.update(errorCode=code, errorMessage=message)
            partition.pop("divergingEpoch", None)
            if api == "Fetch":
                partition.pop("snapshotId", None)
                partition["records"] = b""
        return body
    if api in ("Fetch", "FetchSnapshot", "DescribeQuorum"):
        return {"errorCode": code, "errorMessage": message}
    if api == "ApiVersions":
        return {"errorCode": code}
    if api in ("DescribeConfigs", "IncrementalAlterConfigs"):
        for result in body["results" if api == "DescribeConfigs" else "responses"]:
            result.update(errorCode=code, errorMessage=message, configs=[])
        return body
    return {**body, "errorCode": code, "errorMessage": message}
