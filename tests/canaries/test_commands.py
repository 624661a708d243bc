"""Every command that there is, in every format: its own examples, and lines that name what is hostile."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from kshell.engine import registry
from kshell.metadata.names import encode_name
from kshell.tree.paths import join
from tests.canaries.planted import ESCAPE, HOSTILE, IMAGE, Canaries
from tests.canaries.shown import faults, shown
from tests.commands.shell import FORMATS, opened
from tests.docs_reference import place_for_examples

MORE = (
    "ls -lR /", "cat /", "tree --values /", "find / --values", "grep . /", "stat /image/*/*", "dump", "log --noop",
    "blame /image", "diff 206 now", "diff 206 now --json-patch", "explain 207", "explain 207 --record", "configs",
    "acls", "tokens", "users", "quotas", "topics", "partitions", "brokers -o wide", "controllers", "registrations",
    "features", "health", "plan-restore", "timeline --all", "skew --rack", "verify --deep", "info", "status",
    "what-if --kill 1", "when configs --where 'value != x'", "log --stat", "drain-check 1", "compare-logs . .",
    "sql 'SELECT * FROM configs'", "sql 'SELECT * FROM events'", "sql 'SELECT * FROM config_changes'",
    "sql 'SELECT * FROM topics'", "follow --since 207 --count 400",
)  # fmt: skip
EXAMPLES = tuple(
    (command.name, re.sub(" -o [a-z]+", "", example.line.partition(" | ")[0]))
    for command in registry.commands()
    for example in command.examples
)


OF_FILES = ("export", "report", "support-bundle", "save", "recover")
"""What these write has tests of its own, and takes long: their examples are the soak's."""


def named(name: str) -> Iterator[list[str]]:
    """Lines, as words, that name something hostile which is there, and in every other place where a name may stand."""
    topic = f"{name}{HOSTILE.index(name) + 1}"
    path = join(("image", "topics", "byName", encode_name(topic)))
    yield from (["cat", path], ["stat", path], ["blame", path], ["log", path], ["ls", "-l", path], ["grep", "-F", name])
    yield from (["why", f"{topic}-0"], ["why", topic], ["timeline", topic], ["configs", f"TOPIC:{topic}"])
    yield from (["find", "/", "-name", name], ["can", f"User:{name}", "READ", f"TOPIC:{topic}"], ["help", name])
    yield from (["when", "topics", "--where", f"name == {name!r}"], ["topics", "--where", name], ["sql", name])
    yield from (["mark", name, "100"], ["diff", name, "now"], ["topics", "--as-of", name], ["set", "output", name])
    yield from (
        ["topics", "--columns", name],
        ["topics", "--sort", name],
        [name],
        ["man", "config", name],
        ["cd", path],
    )
    yield from (["explain", name], ["context", "show", name], ["alias", name, name], ["hash", "--expect", name])
    yield from (["plan-restore", "--bootstrap-server", name], ["what-if", "--kill", name], ["what-if", "--rack", name])
    yield from (
        ["recover", name],
        ["strays", "--log-dirs", name],
        ["compare-logs", name],
        ["loggers", name, "set", name],
    )


def check(sample: Path, canaries: Canaries, asked: Iterable[tuple[str | Sequence[str], Sequence[str]]]) -> int:
    """Run lines, each in some formats, where the files are that examples name; return how many answers had text."""
    answers = 0
    with place_for_examples():
        session = opened(sample)
        for line, formats in asked:
            for fmt in formats:
                text = shown(session, line, fmt)
                assert faults(fmt, text, canaries) == [], (line, fmt)
                answers += any(text)
                if (line.split() if isinstance(line, str) else line)[0] in ("as-of", "cd", "set"):
                    session = opened(sample)
        assert not list(Path().glob("**/pwned"))
    return answers


def test_every_command_has_an_example() -> None:
    assert {name for name, _ in EXAMPLES} == set(registry.names())


@pytest.mark.parametrize("turn", range(len(FORMATS)))
def test_every_example_of_every_command(sample: Path, canaries: Canaries, turn: int) -> None:
    """Each line in one format, and in all of them in the soak."""
    lines = [*(line for name, line in EXAMPLES if name not in OF_FILES), *MORE][turn :: len(FORMATS)]
    asked = [(line, [FORMATS[(turn + number) % len(FORMATS)]]) for number, line in enumerate(lines)]
    assert check(sample, canaries, asked) > 20


@pytest.mark.parametrize("turn", range(len(FORMATS)))
def test_lines_that_name_what_is_hostile(sample: Path, canaries: Canaries, turn: int) -> None:
    """Some lines of each name, and all of them in the soak."""
    lines = [line for name in HOSTILE for line in named(name)][turn :: 7 * len(FORMATS)]
    assert check(sample, canaries, [(line, [FORMATS[(turn + n) % len(FORMATS)]]) for n, line in enumerate(lines)]) > 5


@pytest.mark.soak
@pytest.mark.parametrize("fmt", FORMATS)
def test_every_line_in_every_format(sample: Path, canaries: Canaries, fmt: str) -> None:
    lines = [*(line for _, line in EXAMPLES), *MORE, *(line for name in HOSTILE for line in named(name))]
    assert check(sample, canaries, ((line, [fmt]) for line in lines)) > 1000


def test_what_is_planted_is_seen_where_it_may_be(sample: Path, canaries: Canaries) -> None:
    """Else a test that sees nothing would prove nothing."""
    session = opened(sample)
    assert len(canaries.seen_in(shown(session, "dump --show-secrets", "json").answer)) > 15
    for name in HOSTILE:
        assert json.dumps(name)[1:-1] in shown(session, "topics", "json").answer, name
    for fmt, text in (
        ("html", IMAGE),
        ("markdown", IMAGE),
        ("markdown", "[x](http://evil.example)"),
        ("csv", "=1+cmd"),
    ):
        assert faults(fmt, text, canaries), fmt
    assert faults("text", ESCAPE, canaries) and faults("json", next(iter(canaries.made)), canaries)
