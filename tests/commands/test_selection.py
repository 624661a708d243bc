"""``--where``, ``--sort``, ``--columns``, ``--limit``: the same on every command that gives rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kshell.engine import registry
from kshell.engine.arguments import parse
from kshell.engine.completion import complete
from kshell.engine.declaration import Command
from kshell.engine.result import Nothing, Result, Row, Rows
from kshell.engine.session import Session
from kshell.errors import UsageError
from kshell.render import render
from kshell.tables.declaration import Field, tables
from kshell.tables.selection import Conditions, RowArguments, asked_for, row_flags, select, wanted
from kshell.tables.where_grammar import ExpressionError
from tests.commands.shell import lines, rows, run
from tests.commands.test_loggers import live
from tests.docs_reference import place_for_examples
from tests.server import Quorum

FIELDS = (
    Field("name", "string", ""),
    Field("size", "int64", ""),
    Field("isr", ["int32"], ""),
    Field("more", {"*": "string"}, "", wide=True),
)
ROWS: list[dict[str, Any]] = [
    {"name": "b", "size": 10, "isr": [2, 1], "more": {"k": "2"}},
    {"name": "a", "size": None, "isr": [10], "more": {}},
    {"name": "c", "size": 9, "isr": [2], "more": None},
    {"name": "d", "size": 10, "isr": [], "more": {"k": "10"}},
]


def ran(session: Session, args: Any) -> Result:
    return Nothing()


COMMAND = Command("rows", "rows", ran, flags=row_flags(FIELDS), arguments=RowArguments)


def parsed(*words: str) -> RowArguments:
    args = parse(COMMAND, list(words))
    assert isinstance(args, RowArguments)
    return args


def chosen(*words: str) -> Rows:
    return select(FIELDS, ROWS, parsed(*words))


def names(*words: str) -> str:
    return "".join(row["name"] for row in chosen(*words))


class TestSort:
    @pytest.mark.parametrize(
        ("keys", "expected"),
        [
            ("name", "abcd"),
            ("-name", "dcba"),
            ("size", "cbda"),  # equal ones stay in order, null is last
            ("-size", "bdca"),  # null is last here, too
            ("size,-name", "cdba"),
            ("isr", "dcba"),  # by elements: numbers as numbers
            ("more", "adbc"),
            ("SIZE", "cbda"),
        ],
    )
    def test_orders(self, keys: str, expected: str) -> None:
        assert names("--sort", keys) == expected
        assert names(f"--sort={keys}") == expected

    def test_falling_as_a_word_of_its_own(self) -> None:
        assert names("--sort", "-size", "--limit", "1") == "b"


class TestWhere:
    def test_filters_before_the_limit(self) -> None:
        assert names("--where", "size == 10", "--limit", "1", "--sort", "-name") == "d"

    def test_points_at_the_column(self) -> None:
        with pytest.raises(ExpressionError) as raised:
            chosen("--where", "size > 1 and sice < 2")
        assert raised.value.column == 13
        assert "size" in (raised.value.hint or "")

    def test_kinds_are_checked(self) -> None:
        with pytest.raises(ExpressionError):
            chosen("--where", "name > 3")

    def test_reaches_into_objects_whose_keys_are_data(self) -> None:
        assert names("--where", "more.k == '10'") == "d"


class TestColumns:
    def test_choose_and_order(self) -> None:
        found = chosen("--columns", "more,name,more")
        assert [column.name for column in found.columns] == ["more", "name"]
        assert not any(column.wide for column in found.columns)

    @pytest.mark.parametrize("option", ["--columns", "--sort"])
    def test_an_unknown_one_proposes(self, option: str) -> None:
        with pytest.raises(UsageError) as raised:
            chosen(option, "name,siz")
        assert raised.value.message == "there is no field siz"
        assert raised.value.hint == "did you mean size?"

    @pytest.mark.parametrize("text", ["", "name,", ",", "zzz"])
    def test_nothing_is_no_field(self, text: str) -> None:
        with pytest.raises(UsageError) as raised:
            chosen("--columns", text)
        assert "name" in (raised.value.hint or "")

    def test_without_the_field_that_decides(self) -> None:
        found = chosen("--columns", "name", "--where", "size < 10", "--sort", "isr")
        assert json.loads("".join(render(found, "json"))) == [{"name": "c"}]

    def test_only_what_is_needed_is_wanted(self) -> None:
        def of(*words: str) -> Any:
            return wanted(FIELDS, parsed(*words))

        assert of() is None
        assert of("--where", "size > 1") is None
        assert of("--columns", "name") == {"name"}
        assert of("--columns", "name", "--sort", "-size", "--where", "len(isr) > 1") == {"name", "size", "isr"}


class TestStream:
    def test_rows_are_made_while_they_are_read(self) -> None:
        made = []

        def endless() -> Iterator[Row]:
            number = 0
            while True:
                made.append(number)
                yield {"name": str(number), "size": number}
                number += 1

        found = select(FIELDS, endless(), parsed("--where", "size > 2", "--limit", "2"))
        assert [row["name"] for row in found] == ["3", "4"]
        assert len(made) == 5

    def test_people_see_what_whoever_reads_first_has_left(self) -> None:
        """``watch`` reads the rows and puts a list in their place."""
        found = select(FIELDS, iter(ROWS), parsed(), readable=lambda row: {**row, "name": row["name"] * 2})
        found.rows = list(found)
        assert [row["name"] for row in found.readable] == ["bb", "aa", "cc", "dd"]  # type: ignore[union-attr]
        assert [row["name"] for row in found] == ["b", "a", "c", "d"]

    def test_a_limit_of_nothing(self) -> None:
        assert names("--limit", "0") == ""

    def test_a_limit_of_nothing_would_silence_an_alert(self) -> None:
        with pytest.raises(UsageError, match="leaves no row for --fail-if-any"):
            names("--limit", "0", "--fail-if-any")


def test_a_condition_asks_for_fields_by_their_whole_names() -> None:
    fields = tables()["partitions"].fields
    where = Conditions(fields)("partitionEpoch > 15 or 'leader' in topic")
    assert asked_for(fields, where) == {"partitionEpoch", "leader", "topic"}


def offered(session: Session, before: str) -> list[str]:
    assert session.image
    return [one.text.strip() for one in complete(session, before).candidates]


class TestCompletion:
    def test_fields(self, sample: Session) -> None:
        assert offered(sample, "partitions --columns topic,le") == [
            "topic,leader", "topic,leaderEpoch", "topic,leaderRecoveryState",
        ]  # fmt: skip
        assert offered(sample, "partitions --sort -leaderR") == ["-leaderRecoveryState"]
        assert "topic,topic" not in offered(sample, "partitions --columns topic,t")

    def test_conditions(self, sample: Session) -> None:
        assert "leader" in offered(sample, "partitions --where lea")
        assert any("==" in one for one in offered(sample, "partitions --where 'leader "))


WITH_ROWS = [command for command in registry.commands() if any("--columns" in flag.names for flag in command.flags)]
LINES = {
    "compare-logs": "compare-logs node-1 node-2",
    "drain-check": "drain-check 1",
    "explain": "explain 100",
    "loggers": "loggers 1",
    "strays": "strays --log-dirs log-dirs.json",
    "what-if": "what-if --kill 1",
}
LIVE = ("api-versions", "compat", "loggers")


def test_the_row_commands_are_these() -> None:
    expected = (
        "acls api-versions brokers compat configs controllers drain-check features health loggers partitions"
        " plan-restore quotas registrations skew strays tokens topics users what-if"
    )
    assert {*expected.split()} <= {command.name for command in WITH_ROWS}


@pytest.mark.parametrize("command", WITH_ROWS, ids=lambda one: one.name)
class TestEveryRowCommand:
    def test_has_all_four(self, command: Command) -> None:
        given = {name for flag in command.flags for name in flag.names}
        assert {"--where", "--sort", "--columns", "--limit"} <= given

    def test_shows_one_column_of_one_row(self, command: Command, sample: Session) -> None:
        line = LINES.get(command.name, command.name)
        with place_for_examples(), Quorum(controllers=1) as quorum:
            session = live(quorum) if command.name in LIVE else sample
            found = run(session, line)
            assert isinstance(found, Rows)
            total = len(list(found))
            for column in found.columns:
                some = rows(session, f"{line} --columns {column.name} --limit 1 --sort -{column.name}")
                assert len(some) == min(1, total)
                head = lines(session, f"{line} --columns {column.name} --limit 1")[0]
                assert head.strip() == column.name


def test_two_conditions_are_refused_as_one_of_them_would_be_lost(sample: Session) -> None:
    with pytest.raises(UsageError, match="--where is given twice") as caught:
        run(sample, "topics --where 'name == orders' --where 'offline > 0'")
    assert "and" in (caught.value.hint or "")
