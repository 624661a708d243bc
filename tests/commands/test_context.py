"""``context``: what it keeps, shows and refuses; never a secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kshell import api, cli
from kshell.engine.result import Report
from kshell.engine.session import Session
from kshell.errors import UsageError
from tests.commands.shell import lines, rows, run

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="hunter2";'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("KSHELL_CONTEXT", "KSHELL_CONFIG", "KSHELL_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(session: Session, name: str) -> Any:
    result = run(session, f"context show {name}")
    assert isinstance(result, Report)
    return result.sections[0].body


def test_from_none_to_one_and_back(sample: Session, home: Path) -> None:
    assert rows(sample, "context list") == rows(sample, "context") == []
    run(sample, "context add prod -q a:1,b:2")
    run(sample, "context add copy -d data")
    run(sample, "context use prod")
    found = {row["name"]: row for row in rows(sample, "context list")}
    assert found["prod"]["bootstrapControllers"] == "a:1,b:2"
    assert found["prod"]["current"] is True
    assert found["copy"]["directory"] == str(home / "data")
    assert found["copy"]["current"] is False
    run(sample, "context remove prod")
    assert [row["name"] for row in rows(sample, "context list")] == ["copy"]


def test_no_secret_is_kept_or_shown(sample: Session, home: Path) -> None:
    path = home / "c.properties"
    path.write_text(
        f"bootstrap.controllers=a:1\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config={JAAS}\n"
        "ssl.truststore.password=hunter3\nmy.key=hunter4\nacks=1\nhunter5\nClient.Id=x\n"
    )
    run(sample, "context add prod --config c.properties")
    stored = (home / "config" / "kshell" / "contexts.json").read_text()
    assert json.loads(stored)["contexts"] == {"prod": {"config": str(path)}}
    text = "\n".join(lines(sample, "context show prod") + lines(sample, "context list"))
    assert "hunter" not in stored + text
    assert "alice" not in stored + text
    body = shown(sample, "prod")
    assert (body["securityProtocol"], body["saslMechanism"], body["config"]) == ("SASL_SSL", "PLAIN", str(path))
    assert body["keys"] == [
        "Client.Id", "acks", "bootstrap.controllers", "my.key", "sasl.jaas.config", "sasl.mechanism",
        "security.protocol", "ssl.truststore.password",
    ]  # fmt: skip
    known, spelling, hidden = body["warnings"]
    assert known == f"{path}: line 6: my.key is not a client property that is known"
    assert spelling == f"{path}: line 9: Client.Id is not a client property that is known"
    assert hidden.startswith(f"{path}: line 8: not a client property that is known; the text is not shown")


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("context frobnicate", "frobnicate is none of"),
        ("context add", "add needs a name"),
        ("context list prod", "list takes no name"),
        ("context use prod", "no such context"),
        ("context remove prod", "no such context"),
        ("context show prod", "no such context"),
        ("context add prod", "are needed"),
        ("context add prod -q a:1 -b b:1", "exclude each other"),
        ("context add prod -q a", "the port is missing"),
        ("context add prod --config /nonexistent/c", "No such file"),
        ("context add prod --config empty", "sets neither"),
        ("context add prod --config both", r"bootstrap\.controllers and bootstrap\.servers"),
        ("context use prod -q a:1", "use takes no options"),
    ],
)
def test_faults_keep_nothing(sample: Session, home: Path, line: str, reason: str) -> None:
    (home / "empty").write_text("")
    (home / "both").write_text("bootstrap.controllers=a:1\nbootstrap.servers=a:1\n")
    with pytest.raises(UsageError, match=reason):
        run(sample, line)
    assert not (home / "config").exists()


def test_the_default_is_opened_where_no_source_is_given(capsys: pytest.CaptureFixture[str], sample: Session) -> None:
    from kshell.sources.choose import demo_directory

    run(sample, f"context add copy -d {demo_directory()}")
    run(sample, "context use copy")
    assert cli.main(["pwd"]) == 0
    assert cli.main(["ls", "/"]) == 0
    assert "image" in capsys.readouterr().out
    with api.open() as session:
        assert "image" in str(session.run("ls /"))
    with api.open(context="copy") as session:
        assert session.run("pwd").to_dict() == "/"


def test_a_context_that_cannot_be_opened_is_not_in_its_own_way(
    capsys: pytest.CaptureFixture[str], sample: Session, home: Path
) -> None:
    (home / "c").write_text("bootstrap.controllers=a:1\n")
    run(sample, "context add prod --config c")
    run(sample, "context use prod")
    (home / "c").unlink()
    assert cli.main(["ls", "/"]) == 2
    assert cli.main(["help"]) == 0
    assert cli.main(["context", "remove", "prod"]) == 0
    assert rows(sample, "context list") == []
    assert "No such file" in capsys.readouterr().err


def test_properties_on_the_command_line_and_in_python(
    capsys: pytest.CaptureFixture[str], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "c").write_text("client.idd=hunter2\n")
    assert cli.main(["--demo", "--config", "c", "-X", "clientid=hunter3", "pwd"]) == 0
    said = capsys.readouterr().err
    assert said.splitlines() == [
        "kshell: warning: c: line 1: client.idd is not a client property that is known",
        "kshell: warning: -X: clientid is not a client property that is known",
    ]
    assert cli.main(["--demo", "-X", "security.protocol=x", "pwd"]) == 2
    monkeypatch.setenv("KSHELL_DIRECTORY", str(Path(api.__file__).parent / "demo"))
    with pytest.warns(UserWarning, match="clientid"), api.open(properties={"clientid": "x"}):
        pass


def test_people_see_what_there_is(sample: Session, home: Path) -> None:
    """With directories alone there are no columns for addresses, and the directory is seen."""
    run(sample, "context add prod -d data")
    assert lines(sample, "context", width=200)[0].split() == ["name", "current", "directory"]
    run(sample, "context add live -q a:1")
    assert lines(sample, "context", width=200)[0].split() == ["name", "current", "directory", "bootstrapControllers"]
    assert set(rows(sample, "context")[0]) == {
        "name", "current", "directory", "bootstrapControllers", "bootstrapServers", "config"
    }  # fmt: skip


def test_a_property_on_the_line_is_refused_and_not_forgotten(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    for line in (
        ["context", "add", "p", "-q", "h:1", "-X", "sasl.jaas.config=hunter2"],
        ["context", "list", "-X", "a=hunter2"],
    ):
        assert cli.main(line) == 2
        out, error = capsys.readouterr()
        assert "-X is not stored in a context: a property may be a password" in error
        assert "hunter2" not in out + error
    assert not (home / "config").exists()
