"""Words of a line into typed arguments: the forms that are understood, the faults, and no other exception."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.cli import OPTIONS
from kshell.engine import plain, registry
from kshell.engine.arguments import SHAPING, flags_of, parse, parse_options
from kshell.engine.declaration import Command
from kshell.engine.execution import PatternWord
from kshell.engine.formats import FORMATS
from kshell.engine.language import Word
from kshell.engine.session import Session
from kshell.engine.source_flags import SOURCES
from kshell.errors import UsageError
from tests.commands.shell import run

OWN = (*SOURCES, *OPTIONS, *SHAPING)

GOOD: list[tuple[str, dict[str, Any]]] = [
    ("ls", {"long": False, "n1": False, "recursive": False, "path": [], "output": None, "help": False}),
    ("ls -l", {"long": True, "recursive": False}),
    ("ls -lR", {"long": True, "recursive": True}),
    ("ls -l1R /a", {"long": True, "n1": True, "recursive": True, "path": ["/a"]}),
    ("ls -1 /a", {"n1": True, "path": ["/a"]}),
    ("ls /a -l /b --recursive /c", {"long": True, "recursive": True, "path": ["/a", "/b", "/c"]}),
    ("ls -- -l --long", {"long": False, "path": ["-l", "--long"]}),
    ("ls -l -- --", {"long": True, "path": ["--"]}),
    ("ls -", {"path": ["-"]}),
    ("ls -o json", {"output": "json"}),
    ("ls -ojson", {"output": "json"}),
    ("ls -o=json", {"output": "json"}),
    ("ls --output=json", {"output": "json"}),
    ("ls --output json", {"output": "json"}),
    ("ls -lojson", {"long": True, "output": "json"}),
    ("ls -lo json", {"long": True, "output": "json"}),
    ("ls -o json -o yaml", {"output": "yaml"}),
    ("ls --as-of -1h /a", {"as_of": "-1h", "path": ["/a"]}),
    ("ls --as-of=-15m", {"as_of": "-15m"}),
    ("ls --as-of 12 --show-secrets --no-header", {"as_of": "12", "show_secrets": True, "no_header": True}),
    ("ls --timeout 0.5", {"timeout": 0.5}),
    ("ls --timeout=inf", {"timeout": 1e8}),
    ("ls /a --help -l", {"help": True, "long": True}),
    ("cat --help", {"help": True, "path": []}),
    ("cat -h", {"help": True}),
    ("cat /a /b -h", {"help": True, "path": ["/a", "/b"]}),
    ("pwd a b --help", {"help": True}),
    ("tree -L2", {"level": 2}),
    ("tree -L 2 /a", {"level": 2, "path": ["/a"]}),
    ("tree -L=2", {"level": 2}),
    ("tree --level=007", {"level": 7}),
    ("find /a -name x* -type d -maxdepth 1", {"name": "x*", "type": "d", "maxdepth": 1, "path": ["/a"]}),
    ("find --name=x -maxdepth=3", {"name": "x", "maxdepth": 3}),
    ("find -name -5", {"name": "-5"}),
    ("find -5", {"path": ["-5"]}),
    ("find -name=-x", {"name": "-x"}),
    ("grep x /a /b -i", {"pattern": "x", "path": ["/a", "/b"], "ignore_case": True}),
    ("grep -- -x", {"pattern": "-x", "path": []}),
    ("dump --type TOPIC_RECORD --type PARTITION_RECORD", {"type": ["TOPIC_RECORD", "PARTITION_RECORD"]}),
    ("dump --from 1 --to=2", {"from": 1, "to": 2}),
    ("dump", {"type": None, "from": None}),
    ("cd", {"path": None}),
    ("cd -", {"path": "-"}),
    ("set output json", {"name": "output", "value": "json"}),
    ("history -n 5", {"n": 5}),
    ("history -n5", {"n": 5}),
]

BAD = [
    ("ls --wrong", "ls: there is no option --wrong", None),
    ("ls --recursiv", "ls: there is no option --recursiv", "--recursive"),
    ("ls --lnog=3", "ls: there is no option --lnog", "--long"),
    ("ls -x", "ls: there is no option -x", None),
    ("ls -lx", "ls: there is no option -x (in -lx)", None),
    ("ls -2", "ls: there is no option -2", None),
    ("ls --long=yes", "ls: --long takes no value", None),
    ("ls -l=yes", "ls: -l takes no value", None),
    ("ls -o", "ls: -o needs a value, FORMAT", None),
    ("ls -lo", "ls: -o needs a value, FORMAT", None),
    ("ls -o -l", "ls: -o needs a value, FORMAT", None),
    ("ls -o -- json", "ls: -o needs a value, FORMAT", None),
    ("ls --as-of", "ls: --as-of needs a value, POINT", None),
    ("ls -o xml", f"ls: -o: 'xml' is none of {', '.join(FORMATS)}", None),
    ("ls --output=", "ls: --output: '' is none of text", None),
    ("ls --color=red", "ls: --color: 'red' is none of auto, always, never", None),
    ("ls --timeout x", "ls: --timeout: 'x' is not a positive number of seconds", None),
    ("ls --timeout 0", "ls: --timeout: '0' is not a positive number of seconds", None),
    ("ls --timeout nan", "ls: --timeout: 'nan' is not a positive number of seconds", None),
    ("ls --timeout=-1", "ls: --timeout: '-1' is not a positive number of seconds", None),
    ("tree -L x", "tree: -L: 'x' is not a whole number of 0 or more", None),
    ("tree -L -1", "tree: -L: '-1' is not a whole number of 0 or more", None),
    ("tree -L" + "9" * 5000, "is not a number of 18 digits or fewer", None),
    ("find -naem x", "find: there is no option -naem", "-name"),
    ("find -name", "find: -name needs a value, GLOB", None),
    ("find -name -type", "find: -name needs a value, GLOB", None),
    ("find -regex (", "'(' is not a regular expression", None),
    ("find -regex x{99999999999999999999}", "is not a regular expression", None),
    ("find -type partitoin", "partitoin: no node has that type", "partition"),
    ("dump --type NO_SUCH", "NO_SUCH: no record has that type", None),
    ("cat", "cat: PATH is missing", "help cat"),
    ("grep", "grep: PATTERN is missing", "help grep"),
    ("pwd a b", "pwd: too many arguments: a b", "help pwd"),
    ("cd a b", "cd: too many arguments: b", None),
    ("set a b c", "set: too many arguments: c", None),
]


def parsed(line: str) -> dict[str, Any]:
    name, *words = line.split()
    return vars(parse(registry.get(name), words))


@pytest.mark.parametrize(("line", "expected"), GOOD, ids=[line for line, _ in GOOD])
def test_good(line: str, expected: dict[str, Any]) -> None:
    found = parsed(line)
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(("line", "message", "hint"), BAD, ids=[line[:40] for line, _, _ in BAD])
def test_bad(line: str, message: str, hint: str | None) -> None:
    with pytest.raises(UsageError) as raised:
        parsed(line)
    assert message in raised.value.message
    assert raised.value.hint is None or (hint or "") in raised.value.hint


@pytest.mark.parametrize(
    ("line", "quoted"),
    [
        ("diff 5 2026-11-21 15:11:10", "diff 5 '2026-11-21 15:11:10'"),
        ("diff 2026-11-21 15:11:05 2026-11-21 15:11:10", "diff '2026-11-21 15:11:05' '2026-11-21 15:11:10'"),
        ("log --since 2026-11-21 15:11:20.5", "log --since '2026-11-21 15:11:20.5'"),
        ("log --since=2026-11-21 15:11:20 --until now", "log --since='2026-11-21 15:11:20' --until now"),
        ("topics --as-of 2026-11-21 15:12", "topics --as-of '2026-11-21 15:12'"),
        ("log --since 2026-11-21 16:11:20+01:00", "log --since '2026-11-21 16:11:20+01:00'"),
        ("timeline orders --until 2026-11-21 15:11:10Z", "timeline orders --until '2026-11-21 15:11:10Z'"),
    ],
)
def test_a_date_and_the_time_of_day_after_it_are_one_point(sample: Session, line: str, quoted: str) -> None:
    assert plain.value(run(sample, line)) == plain.value(run(sample, quoted))


def test_words_of_several_words_are_no_flags() -> None:
    assert parse(registry.get("grep"), ["-x y"]).pattern == "-x y"
    assert parse(registry.get("grep"), ["--", "x"]).pattern == "x"
    assert parse(registry.get("grep"), [""]).pattern == ""


def test_words_come_through_as_they_are() -> None:
    words = [PatternWord.of(Word("/a*", "/a\\*", 0)), PatternWord.of(Word("b", "b", 0))]
    assert all(one is other for one, other in zip(parse(registry.get("cat"), list(words)).path, words, strict=True))


def test_the_commands_own_flags_win() -> None:
    def run(session: Any, args: Any) -> Any:
        raise NotImplementedError

    command = Command("x", "x", run, flags=(SHAPING[0]._replace(names=("-o", "-h"), choices=(), default="d"),))
    assert {name for flag in flags_of(command) for name in flag.names}.isdisjoint({"--output", "--help"})
    assert vars(parse(command, ["-h", "v"]))["o"] == "v"
    assert vars(parse(command, []))["o"] == "d"


# --- kshell's own options ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected", "command"),
    [
        (["-d", "x", "ls", "-l", "--demo"], {"directory": ["x"], "demo": False}, ["ls", "-l", "--demo"]),
        (["-dx", "--", "-l"], {"directory": ["x"]}, ["-l"]),
        (["-vd", "x", "ls"], {"directory": ["x"], "verbose": True}, ["ls"]),
        (["--demo", "ls", "--", "x"], {"demo": True}, ["ls", "--", "x"]),
        (["-c", "a b", "-c", "c", "-f", "-"], {"c": ["a b", "c"], "f": ["-"]}, []),
        (["--as-of", "-1h", "pwd"], {"as_of": "-1h"}, ["pwd"]),
        (["-X", "a=b", "-Xc=d"], {"X": ["a=b", "c=d"]}, []),
        (["-"], {}, ["-"]),
    ],
)
def test_options_end_at_the_command(words: list[str], expected: dict[str, Any], command: list[str]) -> None:
    options, rest = parse_options("kshell", OWN, words)
    assert {name: vars(options)[name] for name in expected} == expected
    assert rest == command


def test_own_options_are_proposed() -> None:
    with pytest.raises(UsageError) as raised:
        parse_options("kshell", OWN, ["--direktory", "x"])
    assert raised.value.hint == "did you mean --directory?"
    with pytest.raises(UsageError) as raised:
        parse_options("kshell", OWN, ["--qqqqqq"])
    assert raised.value.hint == "`kshell --help` lists the options"


# --- any words at all ------------------------------------------------------------------------------------------------

NAMES = sorted({name for command in registry.commands() for flag in flags_of(command) for name in flag.names})
ODD = ["=", "-", "--", "json", "1", "9" * 30, "-1", "(", "[", "a b", "\\"]
PIECES = st.sampled_from([*NAMES, *ODD]) | st.text(max_size=5)
WORDS = st.lists(st.lists(PIECES, max_size=3).map("".join), max_size=6)


@given(st.sampled_from(registry.names()), WORDS)
def test_nothing_but_usage_errors(name: str, words: list[str]) -> None:
    command = registry.get(name)
    try:
        found = vars(parse(command, words))
    except UsageError as error:
        assert error.message
        return
    assert found.keys() == {flag.dest for flag in flags_of(command)} | {arg.name for arg in command.args}


@given(WORDS)
def test_nothing_but_usage_errors_of_own_options(words: list[str]) -> None:
    try:
        options, rest = parse_options("kshell", OWN, words)
    except UsageError as error:
        assert error.message
        return
    assert vars(options).keys() == {flag.dest for flag in OWN}
    assert words[len(words) - len(rest) :] == rest


@pytest.mark.parametrize("line", ["cat ''", "ls ''", "find ''", "hash ''", "cat /image/features ''"])
def test_an_empty_path_is_no_root(sample: Session, line: str) -> None:
    """As of a variable that is not set: an answer about everything would be taken for that of one name."""
    with pytest.raises(UsageError, match="an empty path"):
        run(sample, line)
