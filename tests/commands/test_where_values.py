"""Conditions on columns whose values are known: what a column can never have is refused, what it can is proposed."""

from __future__ import annotations

import contextlib
import io
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kshell.engine import registry
from kshell.engine.completion import complete
from kshell.engine.execution import prepare
from kshell.engine.result import Rows
from kshell.engine.session import Session
from kshell.errors import OutOfReachError, UsageError
from kshell.sources.choose import demo_directory
from kshell.sources.directory.source import DirectorySource
from kshell.tables.declaration import tables, where_type
from kshell.tables.enumeration import Enumeration
from kshell.tables.selection import Conditions
from kshell.tables.where import ExpressionError, compile_where, complete_where
from tests import builders

FIXTURES = Path(__file__).parents[1] / "fixtures"


def session_on(directory: str | Path) -> Session:
    return Session(DirectorySource(str(directory)))


def refuse(line: str, session: Session | None = None) -> UsageError:
    with pytest.raises(UsageError) as caught:
        prepare(session or session_on(demo_directory()), line)
    return caught.value


# --- what can never be -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        (
            "partitions --where 'state == underMinISR'",
            "no value of state is underMinISR",
            "did you mean under-min-isr?",
        ),
        ("partitions --where 'state = oflline'", "no value of state is oflline", "did you mean offline"),
        ("partitions --where 'state != oflline'", "no value of state is oflline", "did you mean offline"),
        ("partitions --where '\"oflline\" == state'", 'no value of state is "oflline"', "did you mean offline"),
        ("partitions --where 'state in [online, oflline]'", "no value of state is oflline", "did you mean offline"),
        ("partitions --where 'not state in [oflline]'", "no value of state is oflline", "did you mean offline"),
        ("partitions --where 'state not in [oflline]'", "no value of state is oflline", "did you mean offline"),
        ("partitions --where 'state ~ oflline'", "no value of state matches oflline", "values: online, offline"),
        ("partitions --where \"state !~ '^off$'\"", "no value of state matches ^off$", "values: online, offline"),
        ("partitions --where \"'ofl' in state\"", "no value of state has 'ofl' in it", "offline"),
        ("partitions --where 'oflline in problems'", "no value of problems is oflline", "did you mean offline"),
        ("partitions --where 'any(problems, it == oflline)'", "no value of it is oflline", "did you mean offline"),
        ("partitions --where 'problems.0 == oflline'", "no value of problems.0 is oflline", "did you mean offline"),
        ("partitions --where 'problems == [oflline]'", "no value of problems is oflline", "did you mean offline"),
        ("partitions --where 'leader == 1 or state == x'", "no value of state is x", "values: online, offline"),
        ("partitions --where 'leaderRecoveryState == recovered'", "is recovered", "did you mean RECOVERED?"),
        ("partitions --where 'partition == 1.5'", "no value of partition is 1.5", "a whole number from -2147483648"),
        ("partitions --where 'leader == 4294967296'", "no value of leader is 4294967296", "to 2147483647"),
        ("partitions --where '1.5 in isr'", "no value of isr is 1.5", "a whole number"),
        ("topics --where 'replicationFactor in [3, 70000]'", "no value of replicationFactor is 70000", "32767"),
        ("acls --where 'operation == reed'", "no value of operation is reed", "did you mean READ"),
        ("acls --where 'permissionType == deny'", "no value of permissionType is deny", "did you mean DENY?"),
        ("acls --where 'resourceType == topics'", "no value of resourceType is topics", "did you mean TOPIC"),
        ("acls --where 'patternType == PREFIX'", "no value of patternType is PREFIX", "did you mean PREFIXED"),
        ("configs --where 'source == DYNAMIC_TOPIC'", "no value of source is DYNAMIC_TOPIC", "DYNAMIC_TOPIC_CONFIG"),
        ("configs --where 'type == int'", "no value of type is int", "did you mean INT?"),
        ("configs --where 'any(synonyms, source == STATIC)'", "no value of source is STATIC", "CONFIG"),
        ("users --where \"mechanism == 'SCRAM-SHA256'\"", "'SCRAM-SHA256'", "did you mean SCRAM-SHA-256?"),
        ("brokers --where 'any(listeners, securityProtocol == SASL)'", "is SASL", "SASL_"),
        ("brokers --where 'softwareSource == guessed'", "no value of softwareSource is guessed", "reported"),
        ("brokers --where 'fenced == yes'", "there is no field yes", ""),
        ("health --where 'level == errors'", "no value of level is errors", "did you mean error"),
        ("health --where 'finding == underMinISR'", "no value of finding is underMinISR", "did you mean underMinIsr?"),
        ("registrations --where 'kind == brokers'", "no value of kind is brokers", "did you mean broker"),
        ("plan-restore --where 'kind == topics'", "no value of kind is topics", "did you mean topic"),
        ("strays --where 'finding == lost'", "no value of finding is lost", "set-aside"),
        ("drain-check 2 --where 'risk == lastInSync'", "no value of risk is lastInSync", "did you mean last-in-sync?"),
        ("what-if --kill 2 --where 'what == off-line'", "no value of what is off-line", "did you mean offline?"),
        ("compare-logs a b --where 'state == diverge'", "no value of state is diverge", "did you mean diverged"),
        ("loggers 1 --where 'level == debug'", "no value of level is debug", "did you mean DEBUG?"),
        ("loggers 1 --where 'source == DEFAULT'", "no value of source is DEFAULT", "DEFAULT_CONFIG"),
        ("compat --where 'feature == share-group'", "no value of feature is share-group", "did you mean share-group"),
        ("compat --where \"kip == 'KIP-9999'\"", "no value of kip is 'KIP-9999'", "KIP-"),
        ("api-versions --where 'apiName == fetch'", "no value of apiName is fetch", "did you mean Fetch?"),
        ("log --where 'type == PARTITION'", "no value of type is PARTITION", "PARTITION_RECORD"),
        ("blame /image --where 'type == TOPIC_RECORDS'", "is TOPIC_RECORDS", "did you mean TOPIC_RECORD"),
        ("diff 160 now --where 'change == add'", "no value of change is add", "did you mean added"),
        ("diff 160 now --where 'type == partitions'", "no value of type is partitions", "did you mean partition"),
    ],
)
def test_a_value_that_a_column_can_never_have_is_a_usage_error(line: str, message: str, hint: str) -> None:
    error = refuse(line)
    assert message in error.message
    assert hint in (error.hint or "")


def test_the_fault_is_pointed_at() -> None:
    error = refuse("partitions --where 'leader == 1 and state in [online, oflline]'")
    assert isinstance(error, ExpressionError)
    assert error.column is not None and error.text[error.column :].startswith("oflline")


def test_a_typo_is_no_answer_on_the_command_line() -> None:
    from kshell import cli

    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        assert cli.main(["--demo", "partitions", "--where", "state == oflline", "--fail-if-any"]) == 2
    assert "did you mean offline" in err.getvalue()


def test_until_of_watch_does_not_wait_for_what_can_never_be() -> None:
    call = prepare(session_on(demo_directory()), "watch --until 'state == onlin' partitions")
    assert call is not None
    with pytest.raises(UsageError, match="no value of state is onlin"):
        for _ in call.run().parts:  # type: ignore[attr-defined]
            break


# --- what can be -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "state == null", "state != offline", "state ~ 'min-isr$'", "'under' in state", "state in 'online offline'",
        "state in problems", "state == topic", "problems == [offline, under-min-isr]", "len(state) > 3",
        "state < online", "leader == 1.0", "leader == -1", "minIsr < 1.5", "leader > 99999999999",
        "state == leader or 1 in isr",
    ],
)  # fmt: skip
def test_other_conditions_are_taken(text: str) -> None:
    fields = {field.name: where_type(field.type) for field in tables()["partitions"].fields}
    try:
        compile_where(text, fields)
    except ExpressionError as error:
        assert "no value of" not in error.message


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("operation", "UNKNOWN(99)"),
        ("operation", "UNKNOWN(-3)"),
        ("resourceType", "UNKNOWN(8)"),
        ("permissionType", "UNKNOWN"),
    ],
)
def test_a_value_newer_than_kshell_stays_askable(column: str, value: str) -> None:
    fields = {field.name: where_type(field.type) for field in tables()["acls"].fields}
    for text in (
        f"{column} == '{value}'",
        f"{column} in ['{value}']",
        f"{column} ~ '^UNKNOWN'",
        f"'{value}' in {column}",
    ):
        assert compile_where(text, fields)({column: value})
    with pytest.raises(ExpressionError):
        compile_where(f"{column} == 'UNKNOWN(x)'", fields)


def test_an_unknown_operation_of_a_log_is_found_by_its_number(tmp_path: Path) -> None:
    acl = builders.value(
        "ACCESS_CONTROL_ENTRY", id=builders.uuid(7), resourceType=99, resourceName="x", patternType=3,
        principal="User:a", host="*", operation=98, permissionType=3,
    )  # fmt: skip
    (tmp_path / f"{0:020d}.log").write_bytes(builders.batch([acl], 0, 1))
    session = session_on(tmp_path / f"{0:020d}.log")
    for where in ("operation == 'UNKNOWN(98)'", "resourceType ~ '99'"):
        call = prepare(session, f'acls --where "{where}"')
        assert call is not None
        assert [row["resourceName"] for row in call.run()] == ["x"]  # type: ignore[attr-defined]


# --- every column of every table -------------------------------------------------------------------------------------

OPEN = frozenset(
    "about acl address cell clusterId clientId command commands comparedWith copy damage directoryId"
    " documentation entity evidence feature field highestSoftwareVersion host id imageTopicId incarnationId"
    " inTheWay ip key lastRelease logDir lowestSoftwareVersion metadataVersion name nextStep note owner path"
    " principal rack reason release renewers resourceName snapshot softwareName softwareVersion subject time"
    " tokenId tokenRequester topic topicId user value changed cordonedDirectories directories configs fields hash"
    " hex file checked witness inSyncUntil".split()
)
"""Columns of text that may hold anything: names, ids, sentences, times. Every other one declares its values."""


def with_where() -> Iterator[tuple[str, Conditions]]:
    """(a command's name, its conditions) of every command that takes some on declared fields."""
    for name in registry.names():
        for flag in registry.get(name).flags:
            if isinstance(flag.convert, Conditions):
                yield name, flag.convert


def texts(declared: Any, name: str) -> Iterator[tuple[str, str]]:
    """(the name, the type) of all text in a type."""
    if isinstance(declared, str):
        if declared == "string":
            yield name, declared
    elif isinstance(declared, Mapping):
        for below, kind in declared.items():
            yield from texts(kind, name if below == "*" else below)
    else:
        yield from texts(declared[0], name)


def test_the_tables_are_among_those_with_conditions() -> None:
    names = {name for name, _ in with_where()}
    assert set(tables()) - names == {"provenance"}
    assert {"log", "diff", "blame", "health", "strays", "loggers"} <= names


@pytest.mark.parametrize(("name", "conditions"), list(with_where()), ids=[name for name, _ in with_where()])
def test_every_column_of_text_is_open_or_declares_its_values(name: str, conditions: Conditions) -> None:
    for field in conditions.fields:
        for column, kind in texts(field.type, field.name):
            assert isinstance(kind, Enumeration) or column in OPEN, f"{name}: {column}"


LINES = {
    "blame": "blame /image",
    "compare-logs": "compare-logs {0} {0}",
    "diff": "diff {first} now",
    "drain-check": "drain-check {broker}",
    "log": "log --noop",
    "strays": "",
    "what-if": "what-if --all --kill {broker}",
    "api-versions": "",
    "compat": "",
    "loggers": "",
}
"""Those that need more than their name; empty for what no directory can answer."""
SOURCES = [
    demo_directory(),
    *(str(path) for path in sorted(FIXTURES.glob("*/*")) if (path / "__cluster_metadata-0").is_dir()),
]


def rows_of(line: str, session: Session) -> Iterator[Mapping[str, Any]]:
    call = prepare(session, line)
    assert call is not None
    result = call.run()
    assert isinstance(result, Rows)
    yield from result


JSON = ("data", "old", "new", "value")
"""Columns that hold what no declaration tells."""


def asked(row: Mapping[str, Any]) -> Iterator[str]:
    """A condition that is true of the row for every text and number in it, in its lists and their objects."""
    for name, value in row.items():
        if name in JSON:
            continue
        if isinstance(value, list):
            for item in value:
                if isinstance(item, dict):
                    below = [f"{key} == {written(inner)}" for key, inner in item.items() if is_plain(inner)]
                    yield f"any({name}, {' and '.join(below)})"
                else:
                    yield f"{written(item)} in {name}"
        elif is_plain(value):
            yield f"{name} == {written(value)}"


def is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def written(value: str | float) -> str:
    """A constant as conditions have it."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(value)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: "/".join(Path(path).parts[-2:]))
def test_every_value_that_occurs_is_accepted(source: str) -> None:
    session = session_on(source)
    first = session.source.listing().log_start or 0
    count = 0
    for name, conditions in with_where():
        line = LINES.get(name, name)
        if not line:
            continue
        rows: list[Mapping[str, Any]] = []
        with contextlib.suppress(OutOfReachError, UsageError):  # not every log reaches back that far
            line = line.format(source, first=max(first, 300), broker=min(session.image["brokers"]))
            rows = list(rows_of(line, session))
        seen: set[str] = set()
        fields = {field.name for field in conditions.fields}  # what text alone shows has no conditions
        for row in rows:
            for condition in asked({field: value for field, value in row.items() if field in fields}):
                if condition not in seen and len(seen) < 1000:
                    seen.add(condition)
                    assert conditions(condition)(row), f"{name}: {condition}"
        count += len(seen)
    assert count > 50


# --- completion ------------------------------------------------------------------------------------------------------

PARTITIONS = {field.name: where_type(field.type) for field in tables()["partitions"].fields}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("state == ", ["state == online", "state == offline", "state == under-min-isr"]),
        ("state == off", ["state == offline"]),
        ("state != under-m", ["state != under-min-isr"]),
        ("state in [", ["state in [online", "state in [offline"]),
        ("state in [online, off", ["state in [online, offline"]),
        ("state not in [off", ["state not in [offline"]),
        ("leader == 1 and state == onl", ["leader == 1 and state == online"]),
        ("any(problems, it == un", ["any(problems, it == under-min-isr", "any(problems, it == unclean"]),
    ],
)
def test_values_are_completed(text: str, words: list[str]) -> None:
    found = complete_where(text, PARTITIONS)
    assert set(words) <= set(found)
    for one in found:
        if one.count("[") == one.count("]") and one.count("(") == one.count(")") and not one.endswith(("null", " ")):
            compile_where(one, PARTITIONS)


def test_a_value_that_is_also_a_field_or_no_word_is_completed_in_quotes() -> None:
    fields = {"type": where_type(Enumeration(("topic", "a b", "5"))), "topic": str}
    assert {"type == 'topic'", "type == 'a b'", "type == '5'"} <= set(complete_where("type == ", fields))


def test_the_shell_proposes_values() -> None:
    session = session_on(demo_directory())
    session.image  # noqa: B018  # loads
    found = complete(session, "partitions --where 'state == off")
    assert [one.text for one in found.candidates] == ["state == offline'"]
    found = complete(session, "acls --where 'operation == RE")
    assert [one.text for one in found.candidates] == ["operation == READ'"]


def test_a_column_type_can_be_sent_to_another_process() -> None:
    made = pickle.loads(pickle.dumps(Enumeration(lambda: ("a", "b"), ("UNKNOWN({})",))))
    assert (made, made.values, made.has("UNKNOWN(7)")) == ("string", ("a", "b"), True)


ORDRES = "no topic ordres in this state: did you mean orders?"


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("partitions --where 'topic == ordres' --under-min-isr --fail-if-any", ORDRES),
        ("topics --where 'name in [ORDERS, payments.v2]'", "no topic ORDERS in this state: did you mean orders?"),
        ("partitions --where 'leader == 9 or leader == -1'", "no broker 9 in this state: registered are 1, 2, 3"),
        ("partitions --where '2 in isr and not 8 in isr'", "no broker 8 in this state: registered are 1, 2, 3"),
        ("brokers --where 'id == 7'", "no broker 7 in this state: registered are 1, 2, 3"),
        ("skew --where 'broker == 7'", "no broker 7 in this state: registered are 1, 2, 3"),
        ("users --where 'name == alcie'", "no user alcie has a SCRAM credential: did you mean alice?"),
        ("acls --where 'principal == \"user:alice\"'",
         "no ACL or SCRAM credential names user:alice: did you mean User:alice?"),
        ("drain-check 2 --where 'topic != ordres'", ORDRES),
        ("what-if --kill 2 --where 'topic == ordres'", ORDRES),
        ("topics --where 'name == tmp-backfill' --as-of 160", None),
        ("partitions --where 'topic == orders and 2 in replicas and leader != -1 and topic ~ ordres'", None),
    ],
)  # fmt: skip
def test_a_name_that_nothing_has_is_a_note_and_no_error(line: str, note: str | None, sample: Session) -> None:
    call = prepare(sample, line)
    assert call is not None
    result = call.run()
    assert result.exit_code == (1 if line.startswith(("drain", "what")) else 0)
    assert call.session.remarks == ([] if note is None else [note])


@pytest.mark.parametrize(
    ("condition", "hint"),
    [
        ("problems == underMinIsr", "`underMinIsr in problems` looks for an element"),
        ("problems == 'under-min-isr'", "`'under-min-isr' in problems` looks for an element"),
        ("isr == 3", "`3 in isr` looks for an element"),
    ],
)
def test_a_list_that_is_compared_with_an_element(condition: str, hint: str) -> None:
    error = refuse(f'partitions --where "{condition}"')
    assert "is a list" in error.message and error.hint == hint
