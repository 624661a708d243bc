"""Tools are derived from commands: what is offered, what is not, and how a call becomes words."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from kshell.engine import registry, tools
from kshell.engine.arguments import flags_of, parse
from kshell.engine.declaration import Command
from kshell.errors import UsageError
from tests import goldens

OFFERED = Path(__file__).parent / "offered.json"
"""Tool -> its arguments. An option that a command gets later shows up here: may a model give it?"""
jsonschema: Any = importlib.import_module("jsonschema")  # it comes with the library mcp, and has no types
TOOLS = tools.offered()
BY_NAME = {command.name: command for command in TOOLS}


def test_a_model_may_give_these_arguments_and_no_others() -> None:
    found = {command.name: sorted(tools.input_schema(command, ())["properties"]) for command in TOOLS}
    if goldens.are_written():
        OFFERED.write_text(json.dumps(found, indent=2) + "\n")
    assert found == json.loads(OFFERED.read_text()), goldens.differs(OFFERED)


def test_a_command_that_is_not_there_is_left_out_and_appears_when_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    names = registry.names()
    monkeypatch.setattr(registry, "names", lambda: tuple(name for name in names if name != "acls"))
    assert "acls" not in [command.name for command in tools.offered()]
    with pytest.raises(UsageError, match="acls: no such tool"):
        tools.get("acls")
    monkeypatch.setattr(registry, "names", lambda: names)
    assert tools.get("acls").name == "acls"


@pytest.mark.parametrize("command", TOOLS, ids=lambda one: one.name)
class TestEachTool:
    def test_has_a_schema_and_says_what_it_is_for(self, command: Command) -> None:
        schema = tools.input_schema(command, ("a", "b"))
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["required"][0] == "source"
        assert schema["additionalProperties"] is False
        assert all(one["description"] for one in schema["properties"].values())
        text = tools.description(command)
        assert command.summary.split(",")[0][1:] in text and "Call this" in text
        assert " -o " not in text and len(text) < 2000

    def test_refuses_what_is_not_offered(self, command: Command) -> None:
        known = set(tools.input_schema(command, ())["properties"])
        for flag in flags_of(command):
            if flag.dest not in known:
                with pytest.raises(UsageError, match=f"{command.name}: there is no argument {flag.dest}"):
                    tools.command_tokens(command, {flag.dest: True})

    def test_offers_nothing_of_a_terminal_a_file_or_a_secret(self, command: Command) -> None:
        known = set(tools.input_schema(command, ())["properties"])
        assert not known & {"show_secrets", "output", "color", "timeout", "watch", "interval", "fail_if_any", "to"}


def test_arguments_become_what_the_command_line_would_have_given() -> None:
    given: dict[str, Any] = {
        "where": "name ~ '^-'", "columns": ["name", "offline"], "sort": ["-offline", "name"],
        "as_of": "-1h", "limit": 5,
    }  # fmt: skip
    found = parse(BY_NAME["topics"], tools.command_tokens(BY_NAME["topics"], given))
    assert list(found.columns) == ["name", "offline"]
    assert [(key.name, key.falling) for key in found.sort] == [("offline", True), ("name", False)]
    assert found.as_of == "-1h" and found.limit is None
    assert found.where({"name": "-a"}) and not found.where({"name": "a"})
    found = parse(BY_NAME["can"], tools.command_tokens(BY_NAME["can"], {
        "principal": "User:a", "operation": "READ", "resource": "--show-secrets", "super_user": ["User:b", "User:c"],
        "allow_if_no_acl": False,
    }))  # fmt: skip
    assert found.resource == "--show-secrets" and not found.show_secrets
    assert found.super_user == ["User:b", "User:c"] and not found.allow_if_no_acl
    assert parse(BY_NAME["blame"], tools.command_tokens(BY_NAME["blame"], {"path": "/"})).limit == tools.MOST_ROWS


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("topics", {"colums": ["name"]}, "there is no argument colums"),
        ("why", {"number": 3}, "number needs target, too"),
        ("why", {}, "TARGET is missing"),
        ("topics", {"where": {"a": 1}}, "give text, a number"),
        ("find", {"maxdepth": "x"}, "--maxdepth: 'x' is not a whole number"),
        ("health", {"fail_on": "loud"}, "'loud' is none of"),
    ],
)
def test_wrong_arguments_are_usage_errors(tool: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse(BY_NAME[tool], tools.command_tokens(BY_NAME[tool], arguments))


@pytest.mark.parametrize("limit", [0, -1, True, "10", 1.5])
def test_a_limit_is_a_number_of_rows(limit: object) -> None:
    with pytest.raises(UsageError, match=r"limit: .* is not a whole number from 1 to 2000"):
        tools.limit_of({"limit": limit})
