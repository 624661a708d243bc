"""A command is one file, a record type is one declaration: each made here, seen everywhere, and taken away again."""

from __future__ import annotations

import codecs
import importlib
import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import kshell.commands
from kshell import cli
from kshell.client.negotiation import connect
from kshell.client.properties import Properties
from kshell.client.sasl.mechanisms import MECHANISMS, Exchange, Login, SaslMechanism, mechanism
from kshell.client.settings import Settings
from kshell.engine import registry
from kshell.engine.completion import complete
from kshell.engine.formats import FORMATS as FORMATS_DECLARED
from kshell.engine.formats import Format
from kshell.engine.result import Nothing, Report, Rows, Text, Tree, Value
from kshell.engine.session import Session
from kshell.errors import AuthenticationError, UsageError
from kshell.history.records import record_type
from kshell.metadata import image, records
from kshell.metadata.delta import Delta
from kshell.metadata.health import check
from kshell.metadata.image import Family, family
from kshell.metadata.names import encode_name
from kshell.metadata.records import RecordType, decode_value, record
from kshell.metadata.values import Origin
from kshell.protocol.api import api
from kshell.render import render
from kshell.render.options import RenderOptions
from kshell.tables.leaf_types import leaf_types
from tests import builders, docs_reference
from tests.builders import encode_value
from tests.commands.shell import FORMATS, lines, opened, rows, run, sections, value, words
from tests.server import Quorum, settings

COUNT_DOWN = '''
"""``count-down``: numbers, the highest first."""

from kshell.engine.arguments import count
from kshell.engine.result import Column, Rows
from kshell.engine.declaration import Arg, Command, Example, Flag


def run(session, args):
    numbers = range(int(args.start), args.stop or 0, -1)
    return Rows(columns=(Column("number"),), rows=[{"number": number} for number in numbers])


COMMAND = Command(
    name="count-down",
    summary="numbers, the highest first",
    run=run,
    args=(Arg("start", "the highest"),),
    flags=(Flag(("--stop",), "end above that", metavar="N", convert=count, complete=lambda session, word: ["1", "2"]),),
    examples=(Example("count-down 3", "three numbers"), Example("count-down 3 --stop 2", "one")),
)
'''


@pytest.fixture
def count_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One file more among the commands."""
    (tmp_path / "count_down.py").write_text(textwrap.dedent(COUNT_DOWN))
    monkeypatch.setattr(kshell.commands, "__path__", [*kshell.commands.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    registry.names.cache_clear()
    yield
    monkeypatch.undo()
    sys.modules.pop("kshell.commands.count_down", None)
    importlib.invalidate_caches()
    registry.names.cache_clear()


@pytest.mark.usefixtures("count_down")
def test_a_command_is_one_file(sample: Session) -> None:
    assert "count-down" in registry.names()
    assert rows(sample, "count-down 2") == [{"number": 2}, {"number": 1}]
    assert rows(sample, "count-down 3 --stop 2") == [{"number": 3}]
    with pytest.raises(UsageError, match="START is missing"):
        run(sample, "count-down")
    with pytest.raises(UsageError):
        run(sample, "count-down 3 --stop x")
    assert ("count-down", "numbers, the highest first") in [(r["name"], r["summary"]) for r in rows(sample, "help")]
    assert words(sample, "count-down --help").startswith("`count-down [--stop N] START`")
    assert "## OPTIONS" in words(sample, "man count-down")
    assert sample.image
    assert [one.text.strip() for one in complete(sample, "count").candidates] == ["count-down"]
    assert "--stop" in [one.text.strip() for one in complete(sample, "count-down --s").candidates]
    assert [one.text.strip() for one in complete(sample, "count-down --stop ").candidates] == ["1", "2"]
    for fmt in FORMATS:
        assert "2" in "".join(render(run(sample, "count-down 2"), fmt))
    assert docs_reference.commands()["commands/count-down.md"].startswith("# count-down\n")


def test_and_gone_again() -> None:
    assert "count-down" not in registry.names()


# --- a record type ---------------------------------------------------------------------------------------------------


class Motto(NamedTuple):
    """What a team says of itself."""

    text: str
    since: int
    secret_sign: str


class Declared(NamedTuple):
    """The declaration that a test made."""

    kind: RecordType
    family: Family


@pytest.fixture
def motto(monkeypatch: pytest.MonkeyPatch) -> Iterator[Declared]:
    """A record type and the family of its values, declared as the modules of ``metadata.families`` do it."""
    records.load_families()
    monkeypatch.setattr(records, "_TYPES", dict(records.record_types()))
    monkeypatch.setattr(image, "_FAMILIES", dict(image.families()))
    monkeypatch.setattr(records, "_HEADS", {})
    declared = family(Family("mottos", ("teams", "mottos"), (encode_name,), "motto", secret=("secretSign",)))

    @record(
        99,
        "TeamMottoRecord",
        "0-1",
        """
  team        string
  text        string
  since       int64
  secretSign  string  1+  tag 0  secret
""",
    )
    def team_motto(delta: Delta, data: dict[str, Any], origin: Origin) -> None:
        delta.put("mottos", data["team"], Motto(data["text"], data["since"], data.get("secretSign", "")), origin)

    yield Declared(team_motto, declared)


def test_a_record_type_is_one_declaration(motto: Declared, tmp_path: Path) -> None:
    kind = motto.kind
    said = {"team": "a/b", "text": "on we go", "since": 2**40, "secretSign": "canary"}
    raw = encode_value(kind, 1, said)
    decoded = decode_value(raw)
    assert (decoded.name, decoded.version, decoded.data) == ("TEAM_MOTTO_RECORD", 1, said)
    values = [raw, encode_value(kind, 0, said | {"team": "c"}), encode_value(kind, 1, {"team": "d", "text": "x"})]
    builders.write_log(tmp_path, builders.control_batch([builders.leader_change()]), builders.batch(values, 1))
    session = opened(tmp_path)
    assert lines(session, "ls /image/teams/mottos") == ["a%2Fb", "c", "d"]
    shown = {"text": "on we go", "since": 2**40, "secretSign": "[redacted]"}
    assert value(session, "cat /image/teams/mottos/a%2Fb") == shown
    assert value(session, "cat /image/teams/mottos/a%2Fb --show-secrets")["secretSign"] == "canary"
    assert json.loads("".join(render(run(session, "cat /image/teams/mottos/a%2Fb"), "json"))) == shown
    assert "motto" in leaf_types()
    assert len(rows(session, "find / -type motto")) == 3
    assert sections(session, "stat /image/teams/mottos/c")[""]["record"] == "TEAM_MOTTO_RECORD"
    assert record_type("team-motto") == "TEAM_MOTTO_RECORD"
    dumped = rows(session, "dump --type TEAM_MOTTO_RECORD")
    assert [(row["offset"], row["version"]) for row in dumped] == [(1, 1), (2, 0), (3, 1)]
    assert dumped[0]["data"] == said | {"secretSign": "[redacted]"}
    report = sections(session, "info")
    assert report["image"]["counts"]["mottos"] == 3
    assert {(row["type"], row["version"]): row["count"] for row in report["records"]}["TEAM_MOTTO_RECORD", 1] == 2
    assert report["problems"] == []
    page = docs_reference.records()
    assert "### TEAM_MOTTO_RECORD\n\napi key 99, versions 0-1\n" in page
    assert "| `secretSign` | `string` | 1+ | 0 |  | yes |" in page


class MoodyMotto(NamedTuple):
    """A motto, as a later version of its record has it."""

    text: str
    since: int
    mood: str | None


@pytest.mark.usefixtures("motto")
def test_a_field_is_a_line_of_the_declaration_and_one_of_the_value(tmp_path: Path) -> None:
    del records._TYPES[99], image._FAMILIES["mottos"]
    family(Family("mottos", ("teams", "mottos"), (encode_name,), "motto"))

    @record(99, "TeamMottoRecord", "0-2", "team string\ntext string\nsince int64\nmood string 2+\n")
    def team_motto(delta: Delta, data: dict[str, Any], origin: Origin) -> None:
        delta.put("mottos", data["team"], MoodyMotto(data["text"], data["since"], data.get("mood")), origin)

    said = {"team": "a", "text": "on we go", "since": 7, "mood": "merry"}
    values = [encode_value(team_motto, 2, said), encode_value(team_motto, 1, said | {"team": "b"})]
    builders.write_log(tmp_path, builders.control_batch([builders.leader_change()]), builders.batch(values, 1))
    session = opened(tmp_path)
    assert value(session, "cat /image/teams/mottos/a")["mood"] == "merry"
    assert value(session, "cat /image/teams/mottos/b")["mood"] is None
    assert rows(session, "dump --type TEAM_MOTTO_RECORD")[0]["data"] == said
    assert rows(session, "find /image/teams --values")[0]["value"]["mood"] == "merry"
    assert "| `mood` | `string` | 2+ |" in docs_reference.records()


def test_and_unknown_again(tmp_path: Path) -> None:
    assert decode_value(b"\x01\x63\x00").name == "UNKNOWN_99"


# --- an output format ------------------------------------------------------------------------------------------------


@pytest.fixture
def rot13(monkeypatch: pytest.MonkeyPatch) -> None:
    """A format, declared as kshell/engine/formats.py does it, and the module that it names."""

    def rotated(result: Any, options: RenderOptions) -> Iterator[str]:
        for chunk in render(result, "jsonl"):
            yield codecs.encode(chunk, "rot13")

    module = ModuleType("kshell.render.rot13")
    kinds = (Text, Value, Rows, Tree, Report, Nothing)
    module.__dict__["FORMATS"] = {"rot13": dict.fromkeys(kinds, rotated)}
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(FORMATS_DECLARED, "rot13", Format("rot13", "rot13", "hard to read", between="~\n"))


@pytest.mark.usefixtures("rot13")
def test_a_format_is_one_declaration_and_its_module(sample: Session, capsys: pytest.CaptureFixture[str]) -> None:
    assert "".join(render(run(sample, "ls /image"), "rot13")).startswith('"npyf"')
    assert cli.main(["--demo", "ls", "/image", "-o", "rot13"]) == 0
    assert capsys.readouterr().out.startswith('"npyf"')
    assert "rot13" in [candidate.text.strip() for candidate in complete(sample, "ls -o ro").candidates]
    run(sample, "set output rot13")
    assert sample.settings["output"] == "rot13"
    assert cli.main(["--demo", "watch", "-n", "0.01", "--times", "1", "pwd", "-o", "rot13"]) == 0
    assert capsys.readouterr().out == '"/"\n'


def test_and_no_format_again(sample: Session) -> None:
    with pytest.raises(UsageError, match="rot13: no such format"):
        render(run(sample, "pwd"), "rot13")


# --- a health check --------------------------------------------------------------------------------------------------


@pytest.fixture
def lonely(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A check, declared as the modules of kshell/metadata/health do it."""
    check.checks()
    monkeypatch.setattr(check, "_CHECKS", dict(check._CHECKS))
    check.checks.cache_clear()

    @check.topic_check("lonelyTopic", check.WARNING, "a topic has one partition", "add partitions to {topic}")
    def lonely_topic(state: check.CheckedState, topic: check.TopicState) -> check.Observation | None:
        if topic.partitions != 1:
            return None
        return check.Observation(topic.path, "1 partition", {"topic": topic.topic.name})

    yield
    monkeypatch.undo()
    check.checks.cache_clear()


@pytest.mark.usefixtures("lonely")
def test_a_health_check_is_one_declaration(sample: Session) -> None:
    findings = [row for row in rows(sample, "health") if row["finding"] == "lonelyTopic"]
    lonely_ones = [row["name"] for row in rows(sample, "topics") if row["partitions"] == 1]
    assert [row["path"] for row in findings] == [f"/image/topics/byName/{name}" for name in lonely_ones]
    assert {(row["level"], row["evidence"]) for row in findings} == {("warning", "1 partition")}
    assert findings[0]["nextStep"] == f"add partitions to {lonely_ones[0]}"
    assert rows(sample, "health --where 'finding == lonelyTopic'") == findings


def test_and_no_check_again(sample: Session) -> None:
    assert all(row["finding"] != "lonelyTopic" for row in rows(sample, "health"))
    assert "lonelyTopic" not in {declared.name for declared in check.checks()}


# --- a message of the protocol ---------------------------------------------------------------------------------------


def test_an_api_message_is_one_declaration() -> None:
    """Its headers, codec, negotiation and the pretend server's answer derive from it."""
    weather = api(
        "Weather",
        999,
        "0-1",
        flexible=1,
        request="""
  place  string
  days   int8    1+  = 3
""",
        response="""
  errorCode  int16
  forecast   []string
""",
    )
    with Quorum() as quorum:
        quorum.bodies["Weather"] = {"errorCode": 0, "forecast": ["rain", "sun"]}
        quorum.dialects[999] = weather
        for version in (0, 1):
            for node in quorum.controllers:
                node.ranges[999] = (version, version)
            connection = quorum.keep(connect("127.0.0.1", quorum.leader.port, settings()))
            assert connection.request(weather, {"place": "Oslo"}).body["forecast"] == ["rain", "sun"]
        asked = quorum.asked_for("Weather")
    assert [(question.version, question.body.get("days")) for question in asked] == [(0, None), (1, 3)]


# --- a SASL mechanism ------------------------------------------------------------------------------------------------


class Backwards:
    """Name and password, each backwards; the server must answer with the name as it is."""

    name = "BACKWARDS"

    def __init__(self, login: Login) -> None:
        self._login = login

    def exchange(self) -> Exchange:
        sasl = self._login.sasl
        assert sasl.username is not None and sasl.password is not None
        answer = yield b"%s %s" % (sasl.username.utf8()[::-1], sasl.password.utf8()[::-1])
        if answer != sasl.username.utf8():
            raise AuthenticationError(self._login.node, "BACKWARDS: the server does not know who this is")


@pytest.fixture
def backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mechanism, declared as those of kshell/client/sasl/mechanisms.py."""
    example = 'org.example.BackwardsLoginModule required username="…" password="…";'
    monkeypatch.setitem(MECHANISMS, "BACKWARDS", SaslMechanism(("BackwardsLoginModule",), example, Backwards))


@pytest.mark.usefixtures("backwards")
def test_a_sasl_mechanism_is_one_declaration() -> None:
    """Which login module it takes, hints, and the login itself derive from it."""
    given = {"security.protocol": "SASL_SSL", "sasl.mechanism": "backwards"}
    with pytest.raises(UsageError, match=r"is not set, and sasl\.mechanism=BACKWARDS needs it") as raised:
        Settings.of(Properties(given))
    assert "org.example.BackwardsLoginModule" in (raised.value.hint or "")
    jaas = 'x.BackwardsLoginModule required username="alice" password="secret";'
    configured = Settings.of(Properties(given | {"sasl.jaas.config": jaas}))
    exchange = mechanism(configured, "controller-1:9093", tls=True).exchange()
    assert next(exchange) == b"ecila terces"
    with pytest.raises(StopIteration):
        exchange.send(b"alice")
    exchange = mechanism(configured, "controller-1:9093", tls=True).exchange()
    next(exchange)
    with pytest.raises(AuthenticationError, match="does not know who this is"):
        exchange.send(b"bob")
    with pytest.raises(UsageError) as raised:
        Settings.of(Properties(given | {"sasl.mechanism": "forwards"}))
    assert "BACKWARDS" in (raised.value.hint or "")


def test_and_no_mechanism_again() -> None:
    with pytest.raises(UsageError, match="BACKWARDS is not supported"):
        Settings.of(Properties({"security.protocol": "SASL_SSL", "sasl.mechanism": "backwards"}))
