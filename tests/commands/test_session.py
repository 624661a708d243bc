"""Commands about the session: history, set, alias, unalias, source, reload, help, man, exit."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kshell.engine import registry
from kshell.engine.execution import prepare
from kshell.engine.result import Exit, Many, Nothing, Rows
from kshell.engine.session import Session
from kshell.engine.settings import complete_name, words_after
from kshell.errors import CommandError, CorruptDataError, KshellError, UsageError
from tests import builders
from tests.commands.shell import lines, opened, rows, run, value, words


def test_history(sample: Session) -> None:
    sample.history[:] = ["ls", "dump", "ls /image"]
    assert rows(sample, "history") == [
        {"number": 1, "line": "ls"},
        {"number": 2, "line": "dump"},
        {"number": 3, "line": "ls /image"},
    ]
    assert [row["number"] for row in rows(sample, "history -n 1")] == [3]
    assert rows(sample, "history -n 0") == []
    assert [row["number"] for row in rows(sample, "history ls")] == [1, 3]
    assert [row["number"] for row in rows(sample, "history ls -n 1")] == [3]
    assert lines(sample, "history dump") == ["    2  dump"]


def test_queries_in_the_history_can_be_pasted(sample: Session) -> None:
    sample.history[:] = ["sql 'SELECT\n\t1\x1b'"]
    assert lines(sample, "history") == ["    1  sql 'SELECT", "\t1\\x1b'"]


def test_set_shapes_answers(sample: Session) -> None:
    def shape(line: str) -> tuple[object, ...]:
        call = prepare(sample, line)
        assert call is not None
        return (call.shape.output, call.shape.color, call.shape.no_header, call.shape.timeout, call.shape.width)

    assert shape("ls") == (None, None, False, None, None)
    for line in ("output json", "color never", "header off", "timeout 2.5", "width 100"):
        assert isinstance(run(sample, f"set {line}"), Nothing)
    assert shape("ls") == ("json", "never", True, 2.5, 100)
    assert shape("ls -o yaml --color always --timeout 1") == ("yaml", "always", True, 1.0, 100)
    # Another view of the same session has the same settings.
    assert shape("ls --as-of 100")[0] == "json"
    run(sample, "set output --unset")
    assert shape("ls")[0] is None


def test_set_shows(sample: Session) -> None:
    run(sample, "set pager off")
    shown = {row["name"]: row for row in rows(sample, "set")}
    assert (shown["pager"]["value"], shown["pager"]["default"]) == ("off", "on")
    assert sample.settings["pager"] is False
    assert [row["name"] for row in rows(sample, "set timeout")] == ["timeout"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("set outptu json", "no setting outptu"),
        ("set output jsn", "'jsn' is not one of text"),
        ("set pager maybe", "'maybe' is not on or off"),
        ("set timeout 0", "not a positive number of seconds"),
        ("set timeout soon", "not a positive number of seconds"),
        ("set width 0", "not a number of columns"),
        ("set output json --unset", "takes no value"),
        ("set show-secrets on", "no setting show-secrets"),
    ],
)
def test_set_refuses(sample: Session, line: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run(sample, line)
    assert sample.settings == {}


def test_set_proposes_and_completes(sample: Session) -> None:
    with pytest.raises(UsageError) as raised:
        run(sample, "set outptu json")
    assert raised.value.hint == "did you mean output?"
    assert list(complete_name(sample, "ou")) == ["output"]
    assert "jsonl" in words_after(["output"])


def test_aliases(sample: Session) -> None:
    sample.aliases.clear()
    run(sample, "alias ll 'ls -l'")
    run(sample, "alias scram='ls /image/scram'")
    run(sample, "alias far cat '/image/configs/TOPIC:a b'")
    assert sample.aliases["far"] == "cat '/image/configs/TOPIC:a b'"
    assert lines(sample, "scram") == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    assert rows(sample, "ll /image")[0]["name"] == "acls"
    assert rows(sample, "alias ll") == [{"name": "ll", "line": "ls -l"}]
    assert words(sample, "help ll") == "ll is an alias for ls -l"
    # An alias may wrap the command whose name it takes.
    run(sample, "alias ls 'ls -1'")
    assert lines(sample, "ls /image/scram") == ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    run(sample, "unalias ls ll")
    assert sorted(sample.aliases) == ["far", "scram"]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("alias nothing", CommandError),
        ("alias a/b ls", UsageError),
        ("alias '' ls", UsageError),
        ("alias x 'ls > f'", UsageError),
        ("alias x 'ls | less'", UsageError),
        ("alias x ''", UsageError),
        ("unalias nothing", CommandError),
        ("unalias topics nothing", CommandError),
    ],
)
def test_aliases_that_are_refused(sample: Session, line: str, error: type[KshellError]) -> None:
    before = dict(sample.aliases)
    with pytest.raises(error):
        run(sample, line)
    assert sample.aliases == before


def sourced(session: Session, line: str) -> Many:
    result = run(session, line)
    assert isinstance(result, Many)
    return result


def test_lines_of_a_file_may_have_several_commands(sample: Session, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("cd /image; pwd\ngrep nowhere /image/features && pwd\ncat /nope; pwd\npwd &&\nSELECT 1 AS a;\n")
    parts = []
    for part in sourced(sample, f"source {file} --keep-going").parts:
        if isinstance(part.result, Rows):
            list(part.result.rows)
        parts.append(str(part.error) if part.error is not None else part.call and part.call.command.name)
    missing = f"{file}: line 4: a command is missing next to &&"
    assert parts == ["cd", "pwd", "grep", f"{file}: line 3: /nope: no such path", "pwd", missing, "sql"]


def test_an_alias_may_stand_before_what_it_means(sample: Session) -> None:
    run(sample, "alias big 'tt --where \"partitions > 3\"'")
    run(sample, "alias tt topics")
    run(sample, "alias features /image/features")
    assert all(row["partitions"] > 3 for row in rows(sample, "big")) and rows(sample, "big") != []


@pytest.mark.parametrize("line", ["alias two 'pwd; pwd'", "alias q 'SELECT 1'", "alias l = ls"])
def test_an_alias_of_what_is_no_command_is_refused(sample: Session, line: str) -> None:
    with pytest.raises(UsageError, match="alias: "):
        run(sample, line)


def test_source_runs_line_by_line(sample: Session, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("# set up\n\ncd /image/features\nset output json\npwd\ncat metadataVersion\n")
    parts = sourced(sample, f"source {file}").parts
    assert sample.cwd_path == "/"
    found = list(parts)
    assert [part.call.command.name for part in found if part.call] == ["cd", "set", "pwd", "cat"]
    # What a line set holds for the lines after it.
    assert found[2].call is not None
    assert found[2].call.shape.output == "json"
    assert sample.cwd_path == "/image/features"


def test_source_ends_at_the_first_failure(sample: Session, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("cd /image\ncat nothing\ncd /quorum\n")
    with pytest.raises(KshellError) as raised:
        list(sourced(sample, f"source {file}").parts)
    assert raised.value.message == f"{file}: line 2: /image/nothing: no such path"
    assert sample.cwd_path == "/image"
    assert sample.sourcing == []


def test_source_keeps_going_when_told(sample: Session, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("cat nothing\nnonsense\ncd /quorum\n")
    for line in (f"source {file} --keep-going", f"source {file}"):
        found = list(sourced(sample, line).parts)
        assert [part.error.exit_code for part in found if part.error] == [2, 2]
        assert sample.cwd_path == "/quorum"
        run(sample, "set keep-going on")


def test_source_within_source(sample: Session, tmp_path: Path) -> None:
    inner, outer, loop = tmp_path / "inner", tmp_path / "outer", tmp_path / "loop"
    inner.write_text("cd /quorum\n")
    outer.write_text(f"source {inner}\npwd\n")
    loop.write_text(f"source {loop}\n")

    def drain(many: Many) -> None:
        for part in many.parts:
            if isinstance(part.result, Many):
                drain(part.result)

    drain(sourced(sample, f"source {outer}"))
    assert sample.cwd_path == "/quorum"
    with pytest.raises(CommandError, match="source one another"):
        drain(sourced(sample, f"source {loop}"))


def test_source_of_what_is_no_text(sample: Session, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    for name, said in (("bytes", "not UTF-8 text"), ("missing", "No such file"), (".", "Is a directory")):
        with pytest.raises(CommandError, match=said):
            run(sample, f"source {tmp_path / name}")


def test_exit(sample: Session, tmp_path: Path) -> None:
    for line, code in (("exit", 0), ("exit 3", 3)):
        with pytest.raises(Exit) as raised:
            run(sample, line)
        assert raised.value.code == code
    for line in ("exit soon", "exit -1", "exit 256"):
        with pytest.raises(UsageError):
            run(sample, line)
    (tmp_path / "lines").write_text("exit 7\n")
    with pytest.raises(Exit):
        list(sourced(sample, f"source {tmp_path / 'lines'}").parts)


def test_reload(tmp_path: Path) -> None:
    log = builders.write_log(tmp_path, builders.control_batch([builders.leader_change()]))
    session = opened(tmp_path)
    assert value(session, "cat /log/endOffset") == 1
    run(session, "cd /log")
    topic = builders.value("TOPIC", name="t", topicId=builders.uuid(1))
    log.write_bytes(log.read_bytes() + builders.batch([topic], 1))
    assert value(session, "cat endOffset") == 1
    run(session, "reload")
    assert value(session, "cat endOffset") == 2


def test_a_reload_that_fails_keeps_what_was_there(tmp_path: Path) -> None:
    topic = builders.value("TOPIC", name="t", topicId=builders.uuid(1))
    path = builders.write_snapshot(tmp_path / "m", builders.snapshot([topic]), end_offset=5)
    session = opened(tmp_path / "m")
    assert lines(session, "ls /image/topics/byName") == ["t"]
    copy = tmp_path / "copy"
    shutil.copyfile(path, copy)
    copy.write_bytes(copy.read_bytes()[:-1])
    path.unlink()
    copy.rename(path)
    with pytest.raises(CorruptDataError):
        run(session, "reload")
    assert lines(session, "ls /image/topics/byName") == ["t"]


def test_help_and_man(sample: Session) -> None:
    assert [row["name"] for row in rows(sample, "help")] == list(registry.names())
    for line in ("help find", "find --help", "find -h"):
        assert words(sample, line).startswith("`find [-name GLOB]")
    assert "## EXIT CODES" in words(sample, "man find")
    for line in ("help fnd", "man fnd"):
        with pytest.raises(UsageError) as raised:
            run(sample, line)
        assert raised.value.hint == "did you mean find?"
