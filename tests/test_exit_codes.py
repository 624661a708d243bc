"""Exit codes: 1 is an answer, and nothing else; what the codes mean is said in one place, and the same everywhere."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from pathlib import Path

import pytest

from kshell import cli
from kshell.engine import registry
from kshell.engine.declaration import Command
from kshell.engine.formats import FORMATS
from kshell.engine.predicates import FAIL_IF_ANY, code_of_verdicts
from kshell.errors import (
    EXIT_CODES,
    EXIT_DATA,
    EXIT_FINDING,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_SOURCE,
    EXIT_USAGE,
    DataError,
    Interrupted,
    KshellError,
    OutOfReachError,
    SourceError,
)
from tests.test_errors import KINDS

ROOT = Path(__file__).parents[1]
ROLLED = ROOT / "tests/fixtures/4.2.1-rolled/broker-0"
"""A directory whose log begins at offset 699: Kafka has deleted what its snapshots hold."""
COMMANDS = registry.commands()


def run(line: str, *, source: str = "--demo") -> tuple[int, str, str]:
    """(exit code, standard output, standard error) of one command line."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main([*shlex.split(source), *shlex.split(line)])
    return code, out.getvalue(), err.getvalue()


# --- one place -------------------------------------------------------------------------------------------------------


def flat(text: str) -> str:
    """Text without line breaks, code marks and the width of columns."""
    return re.sub(r"\s+", " ", text.replace("`", ""))


def readme_table() -> list[tuple[str, str]]:
    rows = (ROOT / "README.md").read_text(encoding="utf-8").partition("| exit code | meaning |\n")[2]
    table = re.match(r"(?:\|[^\n]*\n)+", rows)
    assert table is not None
    return re.findall(r"\| (\d+) \| (.*) \|\n", table[0])


def test_the_readme_has_the_table() -> None:
    assert readme_table() == [(str(code), meaning) for code, meaning in EXIT_CODES]


def test_help_of_the_program_has_the_table() -> None:
    shown = flat(run("--help", source="")[1])
    for code, meaning in EXIT_CODES:
        assert f" {code} {meaning}" in shown


@pytest.mark.parametrize("line", ["help exit-codes", "man exit-codes"])
def test_a_page_of_its_own_has_the_table_and_names_every_command_that_says_no(line: str) -> None:
    code, shown, _ = run(line, source="")
    assert code == 0
    for number, meaning in EXIT_CODES:
        assert f"- {number}: {meaning}" in flat(shown)
    for command in COMMANDS:
        assert (f"- {command.name}: {flat(command.exit_1_when)}" in flat(shown)) == bool(command.exit_1_when), (
            command.name
        )


def test_the_reference_has_the_table() -> None:
    text = (ROOT / "docs/reference/exit-codes.md").read_text(encoding="utf-8")
    for code, meaning in EXIT_CODES:
        assert f"- `{code}`: {meaning}\n" in text
    for command in COMMANDS:
        if command.exit_1_when:
            assert f"- `{command.name}`: {command.exit_1_when}\n" in text
            page = (ROOT / f"docs/reference/commands/{command.name}.md").read_text(encoding="utf-8")
            assert f"\nExit code 1: {command.exit_1_when}.\n" in page


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_manual_tells_of_1_only_where_a_command_says_no(command: Command) -> None:
    shown = flat(run(f"man {command.name}", source="")[1]).partition("EXIT CODES ")[2]
    exit_1_when = command.exit_1_when or FAIL_IF_ANY in command.flags
    assert ("- 1: " in shown) == bool(exit_1_when)
    for code, meaning in EXIT_CODES:
        assert code == EXIT_FINDING or f"- {code}: {meaning}" in shown


def test_no_page_tells_another_story() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for page in pages:
        text = flat(page.read_text(encoding="utf-8"))
        assert not re.search(r"\b1 (is|means) (a )?failure|a command failed", text), page.name


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_error_has_the_code_of_an_answer(kind: type[KshellError]) -> None:
    expected = EXIT_USAGE
    if issubclass(kind, SourceError) or kind.__name__ == "DeadlineError":
        expected = EXIT_SOURCE
    elif issubclass(kind, DataError) and not issubclass(kind, OutOfReachError):
        expected = EXIT_DATA
    elif issubclass(kind, Interrupted):
        expected = EXIT_INTERRUPTED
    assert kind.exit_code == expected


def test_a_fault_of_ours_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(argv: list[str]) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "_main", broken)
    code, _, err = run("pwd")
    assert (code, "a fault of kshell" in err) == (EXIT_USAGE, True)


# --- what is not there -----------------------------------------------------------------------------------------------

NOT_THERE = {
    "acls": ["acls --as-of @nosuch"],
    "alias": ["alias nosuch"],
    "api-versions": ["api-versions --columns nosuch"],
    "as-of": ["as-of @nosuch", "as-of yesterweek"],
    "blame": ["blame /image/nosuch", "blame /image/features --as-of @nosuch"],
    "brokers": ["brokers --sort nosuch", "brokers --as-of @nosuch"],
    "can": ["can User:alice RAED TOPIC:orders", "can User:alice READ TOPIK:orders"],
    "cat": ["cat /image/nosuch", "cat /image/features/*nosuch", "cat / --as-of @nosuch"],
    "cd": ["cd /image/nosuch", "cd /image/features/metadataVersion"],
    "clear": ["clear nosuch"],
    "compare-logs": ["compare-logs one"],
    "compat": ["compat nosuch"],
    "completion": ["completion", "completion nosuch"],
    "configs": ["configs TOPIC:nosuch", "configs TOPIC:nosuch*", "configs check TOPIC:orders retention.ms"],
    "context": ["context use nosuch", "context remove nosuch"],
    "controllers": ["controllers --as-of @nosuch"],
    "diff": ["diff @nosuch now", "diff 100 /no/such/path", "diff 100 now /image/nosuch"],
    "drain-check": ["drain-check 99", "drain-check one"],
    "dump": ["dump --snapshot nosuch", "dump --type NOSUCH", "dump --from @nosuch"],
    "exit": ["exit nosuch"],
    "explain": ["explain 999999", "explain nosuch", "explain 0 --snapshot 9-9"],
    "export": ["export --format csv --table nosuch place", "export --format nosuch place"],
    "features": ["features --can-upgrade 9.9", "features nosuch", "features --as-of @nosuch"],
    "find": ["find /image/nosuch"],
    "follow": ["follow --from @nosuch"],
    "grep": ["grep x /image/nosuch", "grep '('"],
    "hash": ["hash /image/nosuch", "hash --expect nosuch", "hash --as-of @nosuch"],
    "health": ["health --fail-on nosuch", "health --as-of @nosuch"],
    "help": ["help nosuch"],
    "history": ["history -n nosuch"],
    "info": ["info nosuch", "info --as-of @nosuch"],
    "log": ["log --since @nosuch", "log --type NOSUCH", "log --until yesterweek"],
    "loggers": ["loggers --nosuch"],
    "ls": ["ls /image/nosuch", "ls /image/nosuch*"],
    "man": ["man nosuch", "man config no.such.config"],
    "mark": ["mark here @nosuch", "mark --remove nosuch"],
    "mcp": ["mcp -d nosuch --tools extra", "mcp --nosuch"],
    "partitions": ["partitions --where 'nosuch == 1'", "partitions --as-of @nosuch"],
    "plan-restore": ["plan-restore --from @nosuch", "plan-restore nosuch"],
    "pwd": ["pwd nosuch"],
    "quit": ["quit nosuch"],
    "quorum": ["quorum nosuch"],
    "quotas": ["quotas --as-of @nosuch"],
    "recover": ["recover", "recover one --to place", "recover one --to place --voters nosuch"],
    "registrations": ["registrations --columns nosuch"],
    "reload": ["reload nosuch"],
    "save": ["save", "save place --as-of @nosuch"],
    "set": ["set nosuch", "set output nosuch"],
    "skew": ["skew --by nosuch", "skew --as-of @nosuch"],
    "source": ["source nosuch"],
    "sql": ["sql 'SELECT * FROM nosuch'", "sql 'SELECT 1' --as-of @nosuch"],
    "stat": ["stat /image/nosuch"],
    "status": ["status --as-of @nosuch"],
    "strays": ["strays", "strays --log-dirs nosuch"],
    "report": ["report", "report --to place --as-of @nosuch", "report --to place --since @nosuch"],
    "support-bundle": ["support-bundle", "support-bundle place --as-of @nosuch"],
    "timeline": ["timeline nosuch-topic-0", "timeline --since @nosuch"],
    "tokens": ["tokens --as-of @nosuch"],
    "top": ["top /no/such/directory"],
    "topics": ["topics --where 'name ~ ('", "topics --as-of @nosuch"],
    "tree": ["tree /image/nosuch"],
    "unalias": ["unalias nosuch"],
    "users": ["users --as-of @nosuch"],
    "verify": ["verify nosuch", "verify --where 'verdict == nosuch'", "verify --as-of @nosuch"],
    "version": ["version nosuch"],
    "watch": ["watch nosuch", "watch --times 1 cat /image/nosuch"],
    "what-if": ["what-if", "what-if --kill 99", "what-if --rack nosuch", "what-if --unclean nosuch-0"],
    "when": ["when nosuch --where true", "when topics --where nosuch", "when topics --where true --since @nosuch"],
    "why": ["why nosuch-0", "why broker-77", "why controller-77", "why orders-99", "why orders-0 --as-of @nosuch"],
}
"""Command -> lines that name something which the sample does not have."""


def test_every_command_is_asked_for_what_is_not_there() -> None:
    assert set(NOT_THERE) == set(registry.names()), "give NOT_THERE lines that name something which is not there"


@pytest.mark.parametrize("line", [line for lines in NOT_THERE.values() for line in lines])
def test_what_is_not_there_ends_with_2(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run(line)
    assert code == EXIT_USAGE, err
    assert err.startswith("kshell: ")


@pytest.mark.parametrize("point", ["0", "3", "2001-01-01"])
@pytest.mark.parametrize("command", ["topics --as-of", "diff now", "blame /image/topics --as-of"])
def test_a_point_before_all_that_a_source_has_ends_with_2(command: str, point: str) -> None:
    """Nothing is wrong with the data: Kafka deletes what a snapshot holds."""
    code, _, err = run(f"{command} {point}", source=f"-d {ROLLED}")
    assert code == EXIT_USAGE, err


def test_a_file_that_cannot_be_written_ends_with_2(tmp_path: Path) -> None:
    assert run(f"-c 'pwd > {tmp_path}/no/such/file'")[0] == EXIT_USAGE


def test_a_program_that_fails_ends_with_2_whatever_its_own_code() -> None:
    assert run("-c 'pwd | exit 1'")[0] == EXIT_USAGE


# --- answers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("health", EXIT_FINDING),
        ("health --where 'level == info'", EXIT_OK),
        ("diff 160 now", EXIT_FINDING),
        ("diff now now", EXIT_OK),
        ("can User:intern READ TOPIC:customer-profiles", EXIT_FINDING),
        ("grep RECOVERING /image/topics", EXIT_FINDING),
        ("grep -l RECOVERED /image/topics", EXIT_OK),
        ("drain-check 2", EXIT_FINDING),
        ("drain-check 3", EXIT_OK),
        ("what-if --kill 2", EXIT_FINDING),
        ("what-if --kill 3", EXIT_OK),
        ("configs check TOPIC:orders min.insync.replicas=0", EXIT_FINDING),
        ("configs check TOPIC:orders min.insync.replicas=1", EXIT_OK),
        ("watch --times 1 --until 'false' pwd", EXIT_FINDING),
        ("watch --times 1 grep RECOVERING /image/topics", EXIT_FINDING),
        ("when partitions --where 'leader == 77'", EXIT_FINDING),
        ("when partitions --where 'leader == -1'", EXIT_OK),
        ("-c 'health' --keep-going", EXIT_FINDING),
        ("--keep-going -c 'cat /nosuch' -c health", EXIT_USAGE),
        ("--keep-going -c health -c 'brokers -q'", EXIT_USAGE),
    ],
)
def test_an_answer_is_0_or_1(line: str, code: int) -> None:
    assert run(line)[0] == code


def test_what_nobody_knows_is_not_a_no() -> None:
    assert code_of_verdicts([True, True]) == EXIT_OK
    assert code_of_verdicts([True, None]) == EXIT_SOURCE
    assert code_of_verdicts([None, False]) == EXIT_FINDING
    assert code_of_verdicts([]) == EXIT_OK


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_only_a_command_that_declares_it_says_no(command: Command) -> None:
    for example in command.examples:
        if example.exit_code == EXIT_FINDING:
            assert command.exit_1_when or FAIL_IF_ANY.names[0] in example.line, example.line


# --- --fail-if-any ---------------------------------------------------------------------------------------------------

TABLES = [command for command in COMMANDS if any("--columns" in flag.names for flag in command.flags)]


def test_every_table_has_it() -> None:
    assert len(TABLES) >= 15
    for command in (*TABLES, *(command for command in COMMANDS if command.name in ("log", "blame"))):
        assert FAIL_IF_ANY in command.flags, command.name


@pytest.mark.parametrize("output", FORMATS)
def test_a_row_that_is_left_ends_with_1_in_every_format(output: str) -> None:
    assert run(f"partitions --offline --fail-if-any -o {output}")[0] == EXIT_FINDING
    assert run(f"partitions --where 'leader == 77' --fail-if-any -o {output}")[0] == EXIT_OK
    assert run(f"partitions -o {output}")[0] == EXIT_OK


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("brokers --where fenced", EXIT_FINDING),
        ("brokers --where 'fenced and rack == nowhere'", EXIT_OK),
        ("brokers --limit 0", EXIT_USAGE),  # it would silence every alert
        ("topics --sort name --limit 1", EXIT_FINDING),
        ("health", EXIT_FINDING),
        ("health --where 'level == info'", EXIT_FINDING),
        ("health --where 'path == nowhere'", EXIT_OK),
        ("health -o wide", EXIT_FINDING),
        ("drain-check 2 --where 'topic == nowhere'", EXIT_OK),
        ("drain-check 2", EXIT_FINDING),
        ("features", EXIT_FINDING),
        ("features map --where 'level == 12345'", EXIT_OK),
        ("sql 'SELECT * FROM topics'", EXIT_FINDING),
        ("sql 'SELECT * FROM topics WHERE false'", EXIT_OK),
        ("log --type TOPIC", EXIT_FINDING),
        ("log --type TOPIC -o json", EXIT_FINDING),
        ("log --type TOPIC --newest-first --count 1", EXIT_FINDING),
        ("log --where 'offset > 99999'", EXIT_OK),
        ("log --count 0", EXIT_USAGE),
        ("log --stat", EXIT_USAGE),  # counts, and has rows for every log
        ("blame /image/configs", EXIT_FINDING),
        ("blame /image/configs -o json", EXIT_FINDING),
        ("blame /image/topics/byName/legacy-import/0 --where 'field == leader'", EXIT_FINDING),
        ("blame /image/configs --where 'offset > 99999'", EXIT_OK),
        ("blame /image/configs --limit 0", EXIT_USAGE),
        ("watch --times 1 partitions --offline", EXIT_FINDING),
        ("watch --times 1 partitions --where 'leader == 77'", EXIT_OK),
    ],
)
def test_with_fail_if_any_the_rows_that_are_left_decide(line: str, code: int) -> None:
    assert run(f"{line} --fail-if-any")[0] == code


def test_python_has_the_code_too() -> None:
    import kshell
    from kshell.sources.choose import demo_directory

    with kshell.open(directory=demo_directory()) as session:
        assert session.run("partitions --offline --fail-if-any").exit_code == EXIT_FINDING
        assert session.run("partitions --where 'leader == 77' --fail-if-any").exit_code == EXIT_OK


# --- source and data -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source", ["-d /no/such/directory", "-q 127.0.0.1:1", "-b 127.0.0.1:1", "-d /dev/null", "-d README.md"]
)
def test_a_source_that_cannot_be_read_ends_with_3(source: str) -> None:
    code, _, err = run("ls /image", source=f"{source} -X default.api.timeout.ms=2000" if "127" in source else source)
    assert code == EXIT_SOURCE, err


def test_what_takes_too_long_ends_with_3() -> None:
    code, _, err = run("follow --timeout 0.2")
    assert (code, "gave up" in err) == (EXIT_SOURCE, True)


def damaged(folder: Path) -> Path:
    """A copy of the sample with a batch in its middle damaged."""
    from kshell.sources.choose import demo_directory

    copy = folder / "copy"
    shutil.copytree(demo_directory(), copy)
    segment = sorted(copy.glob("**/*.log"))[-1]
    raw = bytearray(segment.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    segment.write_bytes(raw)
    return copy


@pytest.mark.parametrize(
    "line", ["topics", "info", "dump", "health", "partitions --offline --fail-if-any", "diff now now"]
)
def test_damage_ends_with_4_whatever_the_answer(line: str, tmp_path: Path) -> None:
    assert run(line, source=f"-d {damaged(tmp_path)}")[0] == EXIT_DATA


def test_the_highest_code_counts_with_keep_going(tmp_path: Path) -> None:
    copy = damaged(tmp_path)
    assert run("--keep-going -c 'ls /nosuch' -c topics -c pwd", source=f"-d {copy}")[0] == EXIT_DATA
    assert run("--keep-going -c 'grep RECOVERING /image/topics' -c 'ls /nosuch' -c pwd")[0] == EXIT_USAGE
    assert run("-c 'grep RECOVERING /image/topics' -c 'ls /nosuch'")[0] == EXIT_FINDING


def test_the_pipeline_has_the_same_table() -> None:
    from kshell.spark.verbs.help import overview

    for code, meaning in EXIT_CODES:
        assert f"- `{code}`: {meaning}" in overview()
