"""The server as a client starts it: over standard input and output, with the official client library."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client

from kshell import cli
from kshell.engine import tools
from kshell.extras import install_command
from tests.mcp.asking import ROOT, conversation, demo, environment, questions

SLOW = "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range > b.range"
"""A query that takes longer than anybody waits."""


@pytest.mark.slow
def test_a_client_lists_and_calls_every_tool() -> None:
    asked = questions("orders", "160")

    async def talk(client: Client) -> tuple[Any, dict[str, Any], str]:
        listed = (await client.list_tools()).tools
        answers = {tool.name: await client.call_tool(tool.name, asked[tool.name]) for tool in listed}
        return listed, answers, client.instructions or ""

    listed, answers, instructions = conversation(["--demo"], talk)
    assert [tool.name for tool in listed] == [command.name for command in tools.offered()]
    assert "never an instruction" in instructions and "end-15m" in instructions
    calls = demo()
    for tool in listed:
        assert tool.annotations is not None and tool.annotations.read_only_hint is True
        assert tool.description and "Call this" in tool.description
        answer = answers[tool.name]
        assert not answer.is_error, answer
        # The client has held it against the tool's output schema.
        assert answer.structured_content == calls.call(tool.name, asked[tool.name])[0]
        assert json.loads(answer.content[0].text) == answer.structured_content


@pytest.mark.slow
def test_a_call_that_is_cancelled_makes_room_for_the_next() -> None:
    async def talk(client: Client) -> tuple[bool, Any, Any, float]:
        error = await client.call_tool("topics", {"nonsense": 1})
        with anyio.move_on_after(1.0) as scope:
            await client.call_tool("sql", {"query": SLOW})
        begun = time.monotonic()
        answer = await client.call_tool("topics", {"limit": 1})
        return scope.cancelled_caught, error, answer, time.monotonic() - begun

    cancelled, error, answer, seconds = conversation(["--demo", "--timeout", "30"], talk)
    assert error.is_error and error.structured_content is None
    assert json.loads(error.content[0].text)["message"] == "topics: there is no argument nonsense"
    assert cancelled and not answer.is_error and seconds < 10


# --- without a library: bytes ----------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[subprocess.Popen[str]]:
    running = subprocess.Popen(
        [sys.executable, "-P", "-m", "kshell", "--demo", "mcp"], cwd=ROOT, env=environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
    )  # fmt: skip
    with running:
        yield running
        running.kill()


def send(server: subprocess.Popen[str], method: str, number: int | None = None, **params: Any) -> None:
    assert server.stdin is not None
    message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if number is None else {"id": number})
    server.stdin.write(json.dumps(message) + "\n")
    server.stdin.flush()


def shake_hands(server: subprocess.Popen[str]) -> dict[str, Any]:
    client = {"name": "test", "version": "1"}
    send(server, "initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
    assert server.stdout is not None
    answer: dict[str, Any] = json.loads(server.stdout.readline())
    send(server, "notifications/initialized")
    return answer


@pytest.mark.slow
def test_nothing_but_the_protocol_is_on_standard_output(server: subprocess.Popen[str]) -> None:
    assert shake_hands(server)["result"]["serverInfo"]["name"] == "kshell"
    assert server.stdin is not None and server.stdout is not None and server.stderr is not None
    server.stdin.write("this is no JSON\n")
    send(server, "tools/call", 2, name="cat", arguments={"path": ["/nowhere"]})
    send(server, "tools/call", 3, name="sql", arguments={"query": "SELECT 1 AS one"})
    answers: dict[int, Any] = {}
    while not {2, 3} <= set(answers):
        message = json.loads(server.stdout.readline())
        assert message["jsonrpc"] == "2.0"
        if message.get("id") is not None:
            answers[message["id"]] = message["result"]
    assert answers[2]["isError"] and answers[3]["structuredContent"]["result"] == [{"one": 1}]
    server.stdin.close()
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in server.stdout.read().splitlines())
    assert server.wait(10) == 0
    assert "Traceback" not in server.stderr.read()


@pytest.mark.slow
@pytest.mark.parametrize("busy", [False, True])
def test_a_client_that_is_killed_leaves_nothing_behind(server: subprocess.Popen[str], busy: bool) -> None:
    """What a killed process leaves: both pipes closed, whatever the server was doing."""
    shake_hands(server)
    if busy:
        send(server, "tools/call", 2, name="sql", arguments={"query": SLOW})
        time.sleep(0.5)
    assert server.stdin is not None and server.stdout is not None and server.stderr is not None
    server.stdout.close()
    server.stdin.close()
    assert server.wait(10) == 0
    assert "Traceback" not in server.stderr.read()


# --- the command line ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--demo", "--show-secrets", "mcp"], "secrets stay redacted"),
        (["mcp", "--demo", "--show-secrets"], "secrets stay redacted"),
        (["--demo", "--as-of", "100", "mcp"], "--as-of is an argument of each call"),
        (["mcp", "--demo", "--nonsense"], "there is no option --nonsense"),
        (["mcp", "--demo", "-d", "{demo}", "-d", "{demo}"], "is given twice"),
        (["--demo", "-c", "mcp"], "started by the command line alone"),
        (["mcp"], "no source was given"),
    ],
)
def test_what_cannot_be_served_is_a_usage_error(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(Path(cli.__file__).parent / "demo")
    assert cli.main([word.format(demo=folder) for word in words]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.out == ""


def test_without_the_library_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert cli.main(["--demo", "mcp"]) == 2
    error = capsys.readouterr().err
    assert "mcp needs the package mcp, which is not installed" in error
    assert install_command("mcp") in error
    assert cli.main(["mcp", "--tools"]) == 0  # the list needs no library
