"""Tools called without a protocol, and over it with the official client."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from kshell.mcp.calls import Calls, open_sources

ROOT = Path(__file__).parents[2]
T = TypeVar("T")

QUESTIONS: dict[str, dict[str, Any]] = {
    "status": {},
    "health": {},
    "why": {"target": "{topic}-0"},
    "timeline": {"all": True},
    "diff": {"a": "{before}", "b": "now"},
    "log": {},
    "blame": {"path": "/image/topics/byName"},
    "when": {"table": "brokers", "where": "fenced"},
    "topics": {},
    "partitions": {},
    "brokers": {"load": True},
    "configs": {},
    "acls": {},
    "can": {"principal": "User:alice", "operation": "READ", "resource": "TOPIC:{topic}"},
    "features": {},
    "quorum": {},
    "sql": {"query": "SELECT * FROM configs"},
    "cat": {"path": ["/image"]},
    "find": {"path": ["/"], "values": True},
}
"""A question to each tool."""


def questions(topic: str, before: str = "3") -> dict[str, dict[str, Any]]:
    """The questions about one of the source's topics, and about changes since an offset."""
    return {
        tool: {
            name: value.format(topic=topic, before=before) if isinstance(value, str) else value
            for name, value in arguments.items()
        }
        for tool, arguments in QUESTIONS.items()
    }


def opened(*sources: tuple[str, str], timeout: float = 30.0) -> Calls:
    """The calls on sources, (kind, value) each."""
    found, _ = open_sources(list(sources), {}, SimpleNamespace(config=None, X=None, on_corruption=None))
    return Calls(found, timeout)


def demo(**options: Any) -> Calls:
    """The calls on the sample."""
    return opened(("demo", "demo"), **options)


def asked(calls: Calls, tool: str, **arguments: Any) -> dict[str, Any]:
    """The answer of a call that succeeds."""
    answer, is_error = calls.call(tool, arguments)
    assert not is_error, answer
    return answer


def refused(calls: Calls, tool: str, **arguments: Any) -> dict[str, Any]:
    """The error of a call that fails."""
    answer, is_error = calls.call(tool, arguments)
    assert is_error, answer
    assert set(answer) <= {"error", "message", "hint", "exitCode"}
    return answer


def environment() -> dict[str, str]:
    """The environment of a server under test."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def conversation(words: list[str], talk: Callable[[Client], Awaitable[T]]) -> T:
    """What the official client gets from ``kshell mcp`` over standard input and output."""
    server = StdioServerParameters(
        command=sys.executable, args=["-P", "-m", "kshell", "mcp", *words], env=environment(), cwd=ROOT
    )

    async def run() -> T:
        async with Client(stdio_client(server)) as client:
            return await talk(client)

    return asyncio.run(run())
