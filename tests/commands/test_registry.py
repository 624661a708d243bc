"""Every command there is: its declaration, its words, its examples in every format, its page in the reference."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import kshell.commands
from kshell.engine import registry, usage
from kshell.engine.arguments import flags_of
from kshell.engine.completion import complete
from kshell.engine.declaration import Command
from kshell.engine.execution import prepare
from kshell.engine.result import Exit, Many, Nothing
from kshell.errors import KshellError, UsageError
from kshell.render import render
from tests.annotations import unannotated
from tests.commands.shell import FORMATS, words
from tests.docs_reference import REFERENCE, place_for_examples, run_example, sample_session

COMMANDS = registry.commands()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
class TestEach:
    def test_is_declared_in_full(self, command: Command) -> None:
        assert command.name in registry.names()
        assert command.summary
        assert not command.summary.endswith(".")
        assert len(command.examples) >= 2
        assert all(flag.help for flag in command.flags)
        assert all(arg.help for arg in command.args)
        assert len({example.line for example in command.examples}) == len(command.examples)

    def test_flags_do_not_collide(self, command: Command) -> None:
        names = [name for flag in flags_of(command) for name in flag.names]
        assert len(names) == len(set(names))
        attributes = [flag.dest for flag in flags_of(command)] + [arg.name for arg in command.args]
        assert len(attributes) == len(set(attributes))

    def test_arguments_are_annotated_as_they_are_declared(self, command: Command) -> None:
        assert unannotated(command) == {}

    def test_help_and_man_say_everything(self, command: Command) -> None:
        session = sample_session()
        manual = words(session, f"man {command.name}")
        for text in (words(session, f"help {command.name}"), words(session, f"{command.name} --help"), manual):
            assert usage.synopsis(command) in text
            assert all(name in text for flag in command.flags for name in flag.names)
            assert all(example.line in text for example in command.examples)
        assert command.description in manual
        assert "--as-of" in manual

    def test_examples_end_as_they_say(self, command: Command) -> None:
        session = sample_session()
        with place_for_examples():
            for example in command.examples:
                assert run_example(session, example.line)[1] == example.exit_code, example.line

    @pytest.mark.parametrize("fmt", FORMATS)
    def test_answers_render(self, command: Command, fmt: str) -> None:
        session = sample_session()
        with place_for_examples():
            for example in command.examples:
                call = prepare(session, example.line)
                assert call is not None
                try:
                    result = call.run()
                except (Exit, KshellError):
                    continue  # which examples fail is another test's concern
                for given in [part.result for part in result.parts] if isinstance(result, Many) else [result]:
                    if given is not None and not isinstance(given, Nothing):
                        chunks = list(render(given, fmt))
                        assert all(chunk.endswith("\n") for chunk in chunks)

    def test_completes(self, command: Command) -> None:
        session = sample_session()
        assert session.image
        assert command.name in [one.text.strip() for one in complete(session, command.name[:2]).candidates]
        offered = {one.text.strip() for one in complete(session, f"{command.name} --").candidates}
        for flag in command.flags:
            long = {name for name in flag.names if name.startswith("--")}
            assert not long or long & offered, flag.names
        for flag in command.flags:
            if flag.complete is not None and flag.metavar != "MARK":  # the sample has none
                assert list(flag.complete(session, "")), flag.names
        for arg in command.args:
            if arg.complete is not None and arg.name != "file":
                assert list(arg.complete(session, "")), arg.name

    def test_is_in_the_reference(self, command: Command) -> None:
        assert f"](commands/{command.name}.md)" in (REFERENCE / "commands.md").read_text(encoding="utf-8"), (
            "run ./dev docs"
        )
        page = REFERENCE / "commands" / f"{command.name}.md"
        assert page.read_text(encoding="utf-8").startswith(f"# {command.name}\n")


def test_no_command_prints() -> None:
    for path in Path(kshell.commands.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            assert not (isinstance(node, ast.Name) and node.id == "print"), path


def test_listing_names_imports_no_command() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from kshell.engine import registry; registry.names();"
        "print([m for m in sys.modules if m.startswith('kshell.commands.') and '.base' not in m])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("typed", ["l", "dum", "catt"])
def test_a_wrong_name_proposes_right_ones(typed: str) -> None:
    with pytest.raises(UsageError) as raised:
        registry.get(typed)
    assert raised.value.hint
