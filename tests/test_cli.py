"""The command line, as a process: exit codes, streams, sources, and the ways to be given commands."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kshell import cli

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "kshell/demo"
FIXTURE = ROOT / "tests/fixtures/4.3.1/controller-3001"


def run(*words: str, stdin: str | None = "", **env: str) -> subprocess.CompletedProcess[str]:
    """One process; standard input is a pipe, and neither the environment nor a context names a source."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("KSHELL_")}
    return subprocess.run(
        [sys.executable, "-P", "-m", "kshell", *words],
        input=stdin,
        capture_output=True,
        text=True,
        env=clean | {"PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": os.devnull} | env,
        timeout=60,
        check=False,
    )


def answer(*words: str, stdin: str | None = "", **env: str) -> str:
    done = run(*words, stdin=stdin, **env)
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- ways to be given commands ---------------------------------------------------------------------------------------


def test_a_positional_command() -> None:
    assert answer("--demo", "cat", "/image/features/metadataVersion") == "4.3-IV0\n"


def test_what_ends_with_the_process_is_not_done_in_silence() -> None:
    for words in (["set", "output", "json"], ["alias", "ll", "ls -l"], ["cd", "/image"]):
        done = run("--demo", *words)
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.count("\n") == 1
        assert "is for later commands of the same process, and there are none: give each with -c LINE" in done.stderr
    assert run("--demo", "set", "output").stderr == ""
    assert run("--demo", "-c", "set output json", "-c", "pwd").stderr == ""


def test_what_the_lines_of_a_file_set_is_for_one_another(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("set output json\npwd\n")
    done = run("--demo", "source", str(script))
    assert (done.stdout, done.stderr) == ('"/"\n', "")


def test_words_are_not_split_again(tmp_path: Path) -> None:
    done = run("--demo", "cat", "/image/no such topic|x")
    assert done.returncode == 2
    assert "no such topic|x: no such path" in done.stderr


def test_c_and_f_in_order(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("\ufeff# a comment\n\ncd ..\npwd\n")  # with the mark that some editors put first
    assert answer("--demo", "-c", "cd /image/topics", "-c", "pwd", "-f", str(script)) == "/image/topics\n/image\n"


def test_standard_input_is_lines_of_commands() -> None:
    assert answer("--demo", stdin="cd /image/features\ncat metadataVersion\n") == "4.3-IV0\n"
    assert answer("--demo", "-f", "-", stdin="pwd\n") == "/\n"
    assert answer("--demo", stdin="\ufeffpwd\npwd\n") == "/\n/\n", "the mark that some editors put first"


def test_the_plan_of_a_query_is_drawn() -> None:
    drawn = answer("--demo", "sql", "EXPLAIN SELECT name FROM users").splitlines()
    (row,) = json.loads(answer("--demo", "sql", "EXPLAIN SELECT name FROM users", "-o", "json"))
    assert drawn == row["explain_value"].splitlines() and len(drawn) > 1
    named_alike = answer("--demo", "sql", "SELECT 'a' AS explain_key, 3 AS explain_value")
    assert named_alike.split() == ["explain_key", "explain_value", "a", "3"]


def test_pipes_and_files(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert answer("--demo", "-c", "ls /image | wc -l").strip() == "10", "one line for each family of /image"
    assert answer("--demo", "-c", f"pwd > {out}", "-c", f"pwd >> {out}") == ""
    assert out.read_text() == "/\n/\n"


def test_nothing_is_written_beside_the_data(tmp_path: Path) -> None:
    shutil.copytree(FIXTURE, tmp_path / "copy")
    inside = tmp_path / "copy/__cluster_metadata-0/out"
    done = run("-d", str(tmp_path / "copy"), "-c", f"pwd > {inside}")
    assert done.returncode == 2 and "writes nothing" in done.stderr
    assert not inside.exists()


# --- exit codes and streams -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--demo", "pwd"], 0, ""),
        (["--demo", "cat", "/image/nothing"], 2, "no such path"),
        (["--demo", "grep", "no-such-value-anywhere"], 1, ""),
        (["--demo", "lss"], 2, "did you mean ls"),
        (["--demo", "ls", "--wrong"], 2, "--wrong"),
        (["--wrong"], 2, "--wrong"),
        (["--demo", "-d", "x", "ls"], 2, "two sources"),
        (["--demo", "ls", "-o", "xml"], 2, "xml"),
        (["ls"], 2, "no source was given"),
        (["-d", "/nowhere/at/all", "ls"], 3, "no such file or directory"),
        (["-d", str(ROOT / "docs"), "ls"], 3, "holds no metadata log"),
        (["-q", "localhost", "ls"], 2, "character 10: the port is missing"),
        (["--demo", "exit", "7"], 7, ""),
    ],
)
def test_exit_codes(words: list[str], code: int, said: str) -> None:
    done = run(*words)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    if code == 2:
        assert done.stdout == ""


def test_damage_is_exit_code_4_with_the_last_good_state(tmp_path: Path) -> None:
    shutil.copytree(FIXTURE, tmp_path / "copy")
    log = tmp_path / "copy/__cluster_metadata-0/00000000000000000000.log"
    newest = sorted((tmp_path / "copy/__cluster_metadata-0").glob("*.checkpoint"))[-1]
    newest.unlink()
    raw = bytearray(log.read_bytes())
    raw[-10] ^= 1
    log.write_bytes(raw)
    done = run("-d", str(tmp_path / "copy"), "cat", "/image/provenance", "-o", "json")
    assert done.returncode == 4
    assert json.loads(done.stdout)["offset"] < 573
    assert "CRC" in done.stderr and "00000000000000000000.log: byte " in done.stderr


def test_a_torn_tail_is_a_note(tmp_path: Path) -> None:
    shutil.copytree(FIXTURE, tmp_path / "copy")
    log = tmp_path / "copy/__cluster_metadata-0/00000000000000000000.log"
    log.write_bytes(log.read_bytes()[:-5])
    done = run("-d", str(tmp_path / "copy"), "cat", "/image/features/metadataVersion")
    assert (done.returncode, done.stdout) == (0, "4.3-IV0\n")
    assert "torn tail" in done.stderr


def test_keep_going_gives_the_highest_code() -> None:
    stopped = run("--demo", "-c", "pwd", "-c", "cat /nope", "-c", "pwd")
    assert (stopped.returncode, stopped.stdout) == (2, "/\n")
    went_on = run("--demo", "--keep-going", "-c", "cat /nope", "-c", "lss", "-c", "pwd")
    assert (went_on.returncode, went_on.stdout) == (2, "/\n")


NOT_RUN = "kshell: note: the remaining lines were not run; --keep-going runs them all\n"


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (["-c", "helth", "-c", "pwd"], ""),
        ([], "helth\npwd\n"),
        (["-f", "-"], "helth\n\npwd\n"),
        (["-c", "grep RECOVERING /image/topics", "-c", "pwd"], ""),
    ],
)
def test_lines_that_are_left_out_are_told_of(words: list[str], stdin: str) -> None:
    done = run("--demo", *words, stdin=stdin)
    assert done.stdout == "" and done.returncode != 0
    assert done.stderr.endswith(NOT_RUN)


@pytest.mark.parametrize("stdin", ["helth\n", "pwd\nhelth", "helth\n\n"])
def test_nothing_is_told_of_where_the_last_line_failed(stdin: str) -> None:
    assert NOT_RUN not in run("--demo", stdin=stdin).stderr
    assert run("--demo", "--keep-going", stdin=f"{stdin}\npwd\n").stdout.endswith("/\n")


def test_who_writes_to_a_pipe_is_not_waited_for_after_a_failure() -> None:
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "kshell", "--demo"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"helth\n")
        process.stdin.flush()
        assert process.wait(30) == 2


def test_nor_where_a_quote_is_open_in_the_lines_that_are_left_out() -> None:
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "kshell", "--demo"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(b"#" * 8185 + b"\nhelth\n" + b"cat 'open\n")
        process.stdin.flush()  # what comes after helth is not read with it, in pieces of 8192 bytes
        assert process.wait(30) == 2


def piped(line: str) -> subprocess.CompletedProcess[str]:
    """A pipe of bash that begins with kshell, whose exit code is printed after what comes out of it."""
    return subprocess.run(
        ["bash", "-c", f"{sys.executable} -P -m kshell {line}; echo ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )


def test_a_closed_pipe_ends_quietly() -> None:
    done = piped("--demo find / | head -n 1")
    assert done.stdout == "/\n0\n"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("can User:intern READ TOPIC:customer-profiles --super-user User:root", 1),
        ("partitions --offline --fail-if-any", 1),
        ("brokers --where 'rack == rack-a' --fail-if-any", 1),
        ("health", 1),
        ("can User:svc-orders DESCRIBE TOPIC:orders", 0),
        ("log", 0),
    ],
)
def test_an_answer_keeps_its_exit_code_when_nobody_reads_it(line: str, code: int) -> None:
    """`kshell … | grep -q …` in a script with pipefail must not take a no for a yes, whoever is faster."""
    done = piped(f"--demo {line} | true")
    assert (done.stdout, done.stderr) == (f"{code}\n", "")


def test_lines_before_the_one_that_nobody_reads_count() -> None:
    words = "--demo --keep-going -c 'cat /nope' -c 'find / --values'"
    done = piped(f"{words} 2>/dev/null | head -n 1")
    assert done.stdout.splitlines()[-1] == "2"


@pytest.mark.parametrize(
    ("line", "code"),
    [("health", 3), ("partitions --under-min-isr --fail-if-any", 3), ("can User:a READ TOPIC:b", 3),
     ("grep x /", 3), ("diff 0 now", 3), ("when brokers --where fenced", 3), ("hash", 0), ("configs", 0),
     ("partitions --under-min-isr", 0), ("status", 0), ("ls /", 0)],
)  # fmt: skip
def test_a_log_without_a_record_answers_no_question(
    line: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "__cluster_metadata-0" / f"{0:020}.log").touch()
    assert cli.main(["-d", str(tmp_path), *line.split()]) == code
    assert "the metadata log is empty" in capsys.readouterr().err


def test_an_interrupt_is_130(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "kshell", "--demo", "-c", "pwd | sleep 30"],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    time.sleep(1.5)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "interrupted" in said and "Traceback" not in said


def test_timeout() -> None:
    started = time.monotonic()
    done = run("--demo", "--timeout", "0.5", "-c", "pwd | exec sleep 20")
    assert done.returncode == 3 and "gave up after 0.5 s" in done.stderr
    assert time.monotonic() - started < 15


@pytest.mark.parametrize("way", ["stdin", "file", "source"])
def test_a_quote_that_is_open_goes_on_in_the_next_line(way: str, tmp_path: Path) -> None:
    script = 'sql "\nSELECT count(*) AS n\nFROM brokers\n" -o csv\npwd\n'
    path = tmp_path / "script"
    path.write_text(script)
    if way == "stdin":
        done = run("--demo", stdin=script)
    else:
        done = run("--demo", *(("-f", str(path)) if way == "file" else ("source", str(path))))
    assert (done.returncode, done.stdout) == (0, "n\n3\n/\n"), done.stderr


def test_a_quote_that_nobody_closes_is_told_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text("pwd\ncat 'image\npwd\n")
    done = run("--demo", "--keep-going", "-f", str(path))
    assert (done.returncode, done.stdout) == (2, "/\n")
    assert "the quote ' is not closed" in done.stderr
    assert "cat 'image\n" in done.stderr


UNCLOSED = "pwd\npwd; cat 'a\nb' 'image\n" + "pwd\n" * 300


@pytest.mark.parametrize("way", ["stdin", "file", "source"])
def test_nothing_from_an_open_quote_on_is_run(way: str, tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text(UNCLOSED)
    words = {"stdin": [], "file": ["-f", str(path)], "source": ["source", str(path)]}[way]
    place = "line 3" if way == "stdin" else f"{path}: line 3"
    done = run("--demo", "--keep-going", *words, stdin=UNCLOSED if way == "stdin" else "")
    assert (done.returncode, done.stdout) == (2, "/\n")
    excerpt = "" if way == "source" else "  b' 'image\n     ^\n"
    hint = "the quoted text goes on to the end: no line from here on was run\n"
    assert done.stderr == f"kshell: {place}: the quote ' is not closed\n{excerpt}{hint}"


@pytest.mark.parametrize("way", ["stdin", "-", "file", "source"])
def test_lines_end_at_newlines_and_carriage_returns_only(way: str, tmp_path: Path) -> None:
    script = "cd /image\rpwd\r\n\nsql \"SELECT\r\n'a\x0cb\u2028c' AS n\" -o jsonl\nnope\n".encode()
    path = tmp_path / "script"
    path.write_bytes(script)
    words = {"stdin": [], "-": ["-f", "-"], "file": ["-f", str(path)], "source": ["source", str(path)]}[way]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "kshell", "--demo", *words],
        input=script,
        capture_output=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )
    assert done.stdout.decode() == '/image\n{"n":"a\\fb\\u2028c"}\n'
    assert ("line 6: nope" in done.stderr.decode()) == (way == "source")


# --- options ----------------------------------------------------------------------------------------------------------


def test_shaping_options_before_and_after() -> None:
    before = answer("--demo", "-o", "json", "--as-of", "160", "cat", "/image/provenance")
    after = answer("--demo", "cat", "/image/provenance", "--as-of", "160", "-o", "json")
    assert before == after
    assert json.loads(after)["offset"] == 160


def test_a_time_zone_before_and_after() -> None:
    """It holds for times in answers, and for those that the user types."""
    zone = ("--tz", "Europe/Berlin")
    before = answer("--demo", *zone, "log", "--since", "2026-11-21 16:11:23")
    assert "T16:11:23." in before
    assert before == answer("--demo", "log", "--since", "2026-11-21 16:11:23", *zone)
    assert "offset 133" in answer("--demo", *zone, "--as-of", "2026-11-21 16:11:10", "status")


def test_as_of_takes_a_time_ago_as_its_own_word() -> None:
    done = run("--demo", "--as-of", "-3000d", "pwd")
    assert done.returncode == 2 and "the state at " in done.stderr and " is not known: " in done.stderr


def test_sources_by_level(tmp_path: Path) -> None:
    assert answer("cat", "/image/features/metadataVersion", KSHELL_DIRECTORY=str(DEMO)) == "4.3-IV0\n"
    older = ROOT / "tests/fixtures/3.9.2/controller-3001"
    assert answer("-d", str(older), "cat", "/image/features/metadataVersion", KSHELL_DIRECTORY=str(DEMO)) == "3.9-IV0\n"
    two = run("pwd", KSHELL_DIRECTORY="x", KSHELL_CONTEXT="y")
    assert two.returncode == 2 and "KSHELL_DIRECTORY and KSHELL_CONTEXT" in two.stderr


def test_the_java_shells_option() -> None:
    newest = sorted((DEMO / "__cluster_metadata-0").glob("*.checkpoint"))[-1]
    assert answer("--snapshot", str(newest), "cat", "/image/features/metadataVersion") == "4.3-IV0\n"


def test_help_and_version_need_no_source() -> None:
    assert answer("--version").startswith("kshell ")
    assert "--directory" in answer("--help")
    assert "find" in answer("help")
    assert "find" in answer("help", "find")
    assert max(map(len, answer("--help").splitlines())) <= 110


def test_no_color_at_a_pipe_and_color_on_demand() -> None:
    assert "\x1b[" not in answer("--demo", "cat", "/image/cluster/brokers/1")
    assert "\x1b[" in answer("--demo", "--color", "always", "cat", "/image/cluster/brokers/1")
    assert "\x1b[" in answer("--demo", "cat", "/image/cluster/brokers/1", FORCE_COLOR="1")
    assert "\x1b[" not in answer("--demo", "cat", "/image/cluster/brokers/1", FORCE_COLOR="1", NO_COLOR="1")


def test_the_one_shot_path_imports_only_what_it_needs() -> None:
    code = (
        "import sys; from kshell.cli import main; main(['--demo', 'cat', '/image/features/metadataVersion']);"
        "heavy = {'prompt_toolkit', 'pygments', 'yaml', 'IPython', 'pandas', 'importlib.metadata', 'subprocess',"
        " 'asyncio', 'difflib', 'urllib.parse', 'dataclasses', 'inspect', 'argparse', 'gettext', 'locale', 'shutil',"
        " 'json', 'base64', 'kshell.render.progress', 'kshell.render.table', 'kshell.sources.directory.describe'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_settings_shape_a_script_and_the_command_line_is_the_first_of_them() -> None:
    script = "set output json\ncat /image/features/metadataVersion\n"
    assert answer("--demo", stdin=script) == '"4.3-IV0"\n'
    went_on = run("--demo", stdin="set keep-going on\ncat /nope\npwd\n")
    assert (went_on.returncode, went_on.stdout) == (2, "/\n")
    narrow = answer("--demo", "-c", "set width 40", "-c", "ls /image")
    assert max(map(len, narrow.splitlines())) <= 40 and len(narrow.splitlines()) < 10


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-"])
def test_a_closed_stream_is_no_crash(closed: str) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -P -m kshell --demo cat /image/features/metadataVersion {closed}"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("" if closed == ">&-" else "4.3-IV0\n")


# --- found by trying to break it -------------------------------------------------------------------------------------


def test_a_lone_source_file_is_never_written_to(tmp_path: Path) -> None:
    copy = tmp_path / "one.checkpoint"
    shutil.copy(sorted((FIXTURE / "__cluster_metadata-0").glob("*.checkpoint"))[-1], copy)
    before = copy.read_bytes()
    (tmp_path / "link").symlink_to(copy)
    for target in ("one.checkpoint", "link"):
        done = run("-d", str(copy), "-c", f"find /image > {tmp_path / target}")
        assert done.returncode == 2 and "writes nothing" in done.stderr
    assert copy.read_bytes() == before
    assert run("-d", str(copy), "-c", f"pwd > {tmp_path / 'other'}").returncode == 0


def test_the_log_directory_around_the_metadata_is_not_written_to(tmp_path: Path) -> None:
    shutil.copytree(FIXTURE, tmp_path / "copy")
    meta = tmp_path / "copy/meta.properties"
    done = run("-d", str(tmp_path / "copy"), "-c", f"pwd > {meta}")
    assert done.returncode == 2 and "cluster.id" in meta.read_text()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--as-of", "-999999999999w", "pwd"], 2),
        (["--as-of", "0001-01-01T00:00:00+23:59", "pwd"], 2),
        (["--as-of", "9" * 5000, "pwd"], 2),
        (["cat", "/image/topics/byName/orders/" + "9" * 5000], 2),
        (["ls", "/image/" + "{a,b}" * 30], 2),
        (["-d", "x", "pwd"], 2),
    ],
)
def test_odd_input_is_an_error_and_no_traceback(words: list[str], code: int) -> None:
    done = run("--demo", *words)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr and "fault of kshell" not in done.stderr


def test_a_source_given_twice_is_two_sources() -> None:
    done = run("-d", "a", "-d", "b", "pwd")
    assert done.returncode == 2 and "--directory and --directory are two sources" in done.stderr


def test_help_into_a_pipe_that_closes() -> None:
    command = f"{sys.executable} -P -m kshell --help | true; echo ${{PIPESTATUS[0]}}"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=environment, check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_an_unforeseen_fault_is_named_without_its_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from kshell import cli

    def fail(*_: object) -> int:
        raise ValueError("secret-value")

    monkeypatch.setattr(cli, "_main", fail)
    assert cli.main([]) == 2
    said = capsys.readouterr().err
    assert "a fault of kshell" in said and "ValueError" in said and "secret-value" not in said


def test_a_time_after_a_snapshot_without_a_log(tmp_path: Path) -> None:
    inner = tmp_path / "__cluster_metadata-0"
    inner.mkdir()
    for snapshot in (FIXTURE / "__cluster_metadata-0").glob("*.checkpoint"):
        shutil.copy(snapshot, inner)
    words = ["-d", str(tmp_path), "cat", "/image/provenance", "-o", "json"]
    assert json.loads(answer(*words, "--as-of", "2030-01-01"))["offset"] == 573
    assert run(*words, "--as-of", "2001-01-01").returncode == 2


def test_a_point_that_is_not_written_yet_says_so() -> None:
    done = run("--demo", "--as-of", "99999", "pwd", "--as-of", "99999")
    assert done.returncode == 0
    done = run("--demo", "cat", "/image/features/metadataVersion", "--as-of", "99999")
    assert done.returncode == 0 and "is not written yet: answers are the state at offset 206" in done.stderr


def test_an_interrupt_that_python_wraps_is_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While a class is made, Python 3.11 raises RuntimeError from what came in ``__set_name__``."""

    def making_a_class(argv: list[str]) -> int:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    monkeypatch.setattr(cli, "_main", making_a_class)
    assert cli.main([]) == 130
    assert capsys.readouterr().err == "kshell: interrupted\n"


def test_a_source_may_stand_after_the_command() -> None:
    """As every Kafka tool allows; a command's own option of that name stays its own."""
    there = answer("-d", str(FIXTURE), "topics", "-o", "json")
    for words in (("topics", "-d", str(FIXTURE), "-o", "json"), ("topics", "-o", "json", f"--directory={FIXTURE}")):
        assert answer(*words) == there
    words = ("dump", "--snapshot", "159-1", "-o", "jsonl")
    assert answer(*words, "--demo") == answer("--demo", *words)
    both = run("--demo", "topics", "-d", str(FIXTURE))
    assert both.returncode == 2 and "are two sources" in both.stderr


def test_a_directory_around_several_names_them_and_a_variable_is_named() -> None:
    parent = ROOT / "tests/fixtures/4.3.1"
    done = run("-d", str(parent), "topics")
    assert (
        done.returncode == 3 and f"there are some that do: {parent}/broker-0, {parent}/controller-3000" in done.stderr
    )
    done = run("topics", KSHELL_DIRECTORY="/nosuch")
    assert done.returncode == 3 and "the path is that of KSHELL_DIRECTORY" in done.stderr


@pytest.mark.parametrize("flag", ["-d", "-q", "-b", "--context"])
def test_a_source_that_is_named_by_nothing_is_not_the_one_of_the_environment(
    flag: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KSHELL_DIRECTORY", str(DEMO))
    assert cli.main([flag, "", "status"]) == 2
    out, error = capsys.readouterr()
    assert not out and "the value is empty" in error
