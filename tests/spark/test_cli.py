"""``kshell-pipeline``: verbs, options, help, streams and exit codes. No session is started here."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.result import Rows, Text, typed
from kshell.errors import CorruptDataError, SourceError, UsageError
from kshell.spark import cli, verbs
from kshell.version import __version__
from tests.annotations import unannotated
from tests.spark.here import process


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """(exit code, standard output, standard error)"""
    code = cli.main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def use(monkeypatch: pytest.MonkeyPatch, run: Any) -> None:
    """A verb ``try`` that does this."""
    verb = verbs.Verb("try", "a verb of the tests", run, flags=verbs.SPARK_FLAGS)
    monkeypatch.setattr(verbs, "get", lambda name: verb)


def test_every_verb_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    code, overview, _ = call(capsys, "help")
    assert code == 0
    for name in verbs.names():
        verb = verbs.get(name)
        assert verb.name == name
        assert f"`{name}`" in overview
        code, told, _ = call(capsys, "help", name)
        assert code == 0
        assert told.startswith(f"`kshell-pipeline {name}")
        assert call(capsys, name, "--help")[1] == told
        for flag in verb.flags:
            assert flag.names[0] in told
        assert verb.examples
        assert unannotated(verb.declared()) == {}
        for example in verb.examples:
            program, *words = shlex.split(example.line)
            assert program == "kshell-pipeline"
            assert words[0] == name
            verb.parsed(words[1:])


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_the_overview(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    assert call(capsys, *words) == call(capsys, "help")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "--version") == (0, f"kshell-pipeline {__version__}\n", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("docto",), "docto: no such verb\ndid you mean doctor?\n"),
        (("zzz",), f"zzz: no such verb\nthere are {', '.join(verbs.names())}"),
        (("help", "zzz"), "zzz: no such verb\n"),
        (("doctor", "--as-of", "4"), "doctor: there is no option --as-of\n`help doctor` lists them\n"),
        (("doctor", "--show-secrets"), "doctor: there is no option --show-secrets\n"),
        (("doctor", "--qick"), "doctor: there is no option --qick\ndid you mean --quick?\n"),
        (("doctor", "more"), "doctor: too many arguments: more\n"),
        (("doctor", "--conf", "x=y"), "doctor: --conf: 'x=y' is not spark.NAME=VALUE\n"),
        (("doctor", "--quick", "--master", "local[0]"), "local[0]: no master on this machine\n"),
        (("--nope",), "there is no option --nope\n"),
    ],
)
def test_usage(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str) -> None:
    code, out, err = call(capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"kshell-pipeline: {said}")


def test_options_stand_before_or_behind_the_verb(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, lambda args: Rows(typed("a:int64"), [{"a": 1}]))
    assert json.loads(call(capsys, "-o", "json", "try")[1]) == [{"a": 1}]
    assert json.loads(call(capsys, "try", "-o", "json")[1]) == [{"a": 1}]
    assert call(capsys, "-o", "json", "try", "-o", "csv")[1] == "a\n1\n"
    assert call(capsys, "try", "-o", "csv", "--no-header")[1] == "1\n"


def test_settings_of_spark(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, lambda args: Text(repr((args.master, args.conf, args.spark_log))))
    words = ("--master", "yarn", "--conf", "spark.a=b=c", "--conf", "spark.d=")
    assert call(capsys, "try", *words)[1] == "('yarn', [('spark.a', 'b=c'), ('spark.d', '')], 'error')\n"


def raises(error: BaseException) -> Any:
    def run(args: Any) -> Text:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("no", hint="do this"), 2, "no\ndo this\n"),
        (SourceError("not\x1b[31m there"), 3, "not\\x1b[31m there\n"),
        (CorruptDataError("f", 7, "bad"), 4, "f: byte 7: bad\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_exit_codes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str
) -> None:
    use(monkeypatch, raises(error))
    assert call(capsys, "try") == (code, "", f"kshell-pipeline: {said}")


def test_a_finding(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, lambda args: Text("found", exit_code=1))
    assert call(capsys, "try") == (1, "found\n", "")


def test_a_fault_shows_its_place_and_not_its_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, raises(ValueError("a password")))
    code, out, err = call(capsys, "try")
    assert (code, out) == (2, "")
    assert "this is a fault of kshell, not of the data: ValueError at test_cli.py:" in err
    assert "a password" not in err
    assert "raise error" in call(capsys, "-v", "try")[2]


def test_a_deadline(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    use(monkeypatch, lambda args: time.sleep(30))
    code, out, err = call(capsys, "try", "--timeout", "0.1")
    assert (code, out) == (3, "")
    assert err.startswith("kshell-pipeline: gave up after 0.1 s\n")


def test_help_needs_no_spark(tmp_path: Path) -> None:
    program = (
        "import sys; from kshell.spark import cli; cli.main(['help', 'doctor']);"
        "print([name for name in ('pyspark', 'pyarrow', 'pandas', 'py4j') if name in sys.modules], file=sys.stderr)"
    )
    done = process("-c", program, home=tmp_path)
    assert (done.returncode, done.stderr) == (0, "[]\n")
