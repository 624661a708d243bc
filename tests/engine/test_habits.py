"""Wrong lines are answered with lines that work: each proposal is run here, or at least understood."""

from __future__ import annotations

import re

import pytest

from kshell.engine import registry
from kshell.engine.execution import prepare
from kshell.engine.habits import COMMANDS, OPTIONS, command_hint
from kshell.engine.help_pages import COOKBOOK
from kshell.engine.session import Session
from kshell.errors import UsageError
from tests.commands.shell import run
from tests.docs_reference import sample_session

VALUES = ("orders", "3", "json", "name")


@pytest.fixture
def sample() -> Session:
    return sample_session()


def hint_of(session: Session, line: str) -> str:
    with pytest.raises(UsageError) as raised:
        prepare(session, line)
    return raised.value.hint or ""


@pytest.mark.parametrize(
    ("line", "proposed"),
    [
        ("topics orders", "topics --where 'name == \"orders\"'"),
        (
            "partitions orders-0",
            'partitions --where \'topic == "orders-0" or topic == "orders" and partition == 0\'',
        ),
        ("partitions orders-007", "partitions --where 'topic == \"orders-007\"'"),
        ("topics orders-0", "topics --where 'name == \"orders-0\"'"),
        ("partitions orders payments.v2", 'partitions --where \'topic in ["orders", "payments.v2"]\''),
        ("users alice", "users --where 'name == \"alice\"'"),
        ("acls User:alice", "acls --where 'principal == \"User:alice\"'"),
        ("brokers 3", "brokers --where 'id == 3'"),
        ("skew broker-3", "skew --where 'broker == 3'"),
        ("what-if 2", "what-if --kill 2"),
        ("what-if broker-2", "what-if --kill broker-2"),
        ("what-if broker 2", "what-if --kill 2"),
        ("what-if --broker 2", "what-if --kill 2"),
        ("acls alice", "acls --where 'principal == \"User:alice\"'"),
        ("export --csv DIR", "export --format csv DIR"),
        ("dump --until 3", "dump --to 3"),
        ("can User:alice read topic orders", "can User:alice READ TOPIC:orders"),
        ("can alice read group analytics", "can User:alice READ GROUP:analytics"),
        ("what-if --kill 1 2", "what-if --kill 1,2"),
        ("report FILE", "report --to FILE"),
        ("health --json", "health -o json"),
        ("topics --format json", "topics -o json"),
        ("configs --topic orders", "configs TOPIC:orders"),
        ("log --tail 3", "log --newest-first --count 3"),
        ("log --limit=3", "log --count 3"),
        ("topics --describe", "partitions"),
        ("topics --list", "topics"),
        ("topics --offline", "partitions --offline"),
        ("dump --offset 182", "explain 182"),
        ("tree --depth 3", "tree -L 3"),
        ("topics --times 1", "watch --times 1 topics"),
    ],
)
def test_the_line_that_is_proposed_works(sample: Session, line: str, proposed: str) -> None:
    assert hint_of(sample, line) == f"did you mean `{proposed}`?"
    if not proposed.startswith(("report", "export")):  # which write files
        assert run(sample, proposed).exit_code in (0, 1)


def test_every_habit_has_a_target() -> None:
    """A renamed option would leave its habit without an answer, silently."""
    for option in OPTIONS:
        name, _, flag = option.rpartition(" ")
        commands = [name] if name else registry.names()
        tried = (f"{command} {flag} {value}" for command in commands for value in VALUES)
        assert any(_hint(line).startswith("did you mean `") for line in tried), option
    for word, hint in COMMANDS.items():
        lines = re.findall("`([^`]+)`", hint)
        assert lines, word
        for line in lines:
            assert prepare(sample_session(), line) is not None, line


def _hint(line: str) -> str:
    try:
        prepare(sample_session(), line)
    except UsageError as error:
        return error.hint or ""
    return ""


@pytest.mark.parametrize("name", registry.names())
def test_what_a_word_too_many_is_meant_for_exists(name: str) -> None:
    command = registry.get(name)
    if command.extra_words_for and command.extra_words_for not in {arg.name for arg in command.args}:
        number, word = hint_of(sample_session(), f"{name} 3"), hint_of(sample_session(), f"{name} x")
        assert f"`{name} {command.extra_words_for if command.extra_words_for[0] == '-' else '--where'}" in number + word


def test_a_source_in_the_wrong_place(sample: Session, tmp_path: object) -> None:
    assert hint_of(sample, "status -d prod") == "the source comes first, when kshell starts: `kshell -d DIR status`"
    assert hint_of(sample, f"verify {tmp_path}") == f"the source comes first: `kshell -d {tmp_path} verify`"
    for path in ("/image", "/image/topics/byName/orders"):
        assert hint_of(sample, f"verify {path}") == "`verify` takes no path of the tree"
        assert hint_of(sample, f"blame /image/configs {path}") == "`blame` takes one path"
    assert command_hint(str(tmp_path)) == f"{tmp_path} is a directory: `kshell -d {tmp_path} …` reads it"
    assert command_hint("localhost:9093") == "`kshell -q localhost:9093 …` connects to controllers, `-b` to brokers"
    assert command_hint("ls | head -1") == "a line in quotes follows -c: `kshell … -c 'ls | head -1'`"
    assert command_hint("kafka-topics.sh") == command_hint("kafka-topics") == COMMANDS["kafka-topics"]


@pytest.mark.parametrize("line", ["alias ll ls -l", "alias off=partitions --offline", "alias w top --json"])
def test_a_meaning_with_options_is_to_be_quoted(sample: Session, line: str) -> None:
    assert hint_of(sample, line) == "quote a meaning that has options: `alias NAME 'LINE'`"
    run(sample, "alias ll 'ls -l'")


def test_an_option_that_nobody_knows_is_no_endless_search(sample: Session) -> None:
    assert hint_of(sample, "pwd --limit 3") == "`help pwd` shows how it is used"


def test_questions_lead_to_their_command(sample: Session) -> None:
    with pytest.raises(UsageError) as raised:
        run(sample, "compat 4.4")
    assert raised.value.hint == "whether the cluster is ready for a release: `features --can-upgrade 4.4`"
    assert hint_of(sample, "sql select topic from partitions") == "did you mean `sql 'select topic from partitions'`?"
    assert "quote the whole condition: 'topic == …'" in hint_of(sample, "partitions --where topic == orders")
    assert "name ~ '^orders'" in hint_of(sample, "partitions --where \"topic like 'ord%'\"")
    assert "in no log" in registry.get("blame").summary


def test_every_line_of_the_cookbook_page_is_understood(sample: Session) -> None:
    lines = re.findall("`([^`]+)`", COOKBOOK)
    assert len(lines) > 15
    for line in lines:
        assert prepare(sample, line) is not None
