"""``sql``: queries over the tables, and nothing else."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import importlib
import json
import signal
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import duckdb
import pytest

from kshell.commands.sql import complete_query
from kshell.engine.execution import deadline
from kshell.engine.session import Session
from kshell.errors import (
    EXIT_USAGE,
    CommandError,
    CorruptDataError,
    DeadlineError,
    KshellError,
    UsageError,
)
from kshell.extras import install_command
from kshell.history.catalog import catalog
from kshell.result import Result
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.tables import declaration as tables_module
from kshell.tables import query as query_module
from kshell.tables.declaration import Table, tables
from kshell.tables.query import columns_of, named, plain
from tests.builders import node_name, recorded
from tests.commands.shell import opened, rows, run


def ask(session: Session, query: str) -> list[dict[str, Any]]:
    return rows(session, f"sql {json.dumps(query)}" if '"' not in query else f"sql '{query}'")


@pytest.mark.parametrize("node", recorded(), ids=node_name)
def test_every_table_is_what_its_command_gives(node: Path) -> None:
    session = opened(node / METADATA_DIRECTORY)
    for name, table in tables().items():
        exact = [
            {field.name: row.get(field.name) for field in table.fields}
            for row in table.rows(session, session.image, None)
        ]
        assert ask(session, f"SELECT * FROM {name}") == exact, name


class TestAnswers:
    def test_joins(self, sample: Session) -> None:
        found = ask(
            sample,
            "SELECT b.id, count(p.topic) AS n FROM brokers b LEFT JOIN partitions p ON p.leader = b.id"
            " GROUP BY b.id ORDER BY b.id",
        )
        load = {row["id"]: row["leaders"] for row in rows(sample, "brokers --load")}
        assert {row["id"]: row["n"] for row in found} == load

    def test_names_in_any_case_and_of_columns(self, sample: Session) -> None:
        assert ask(sample, "select COUNT(*) as n from Topics") == [{"n": 12}]
        assert ask(sample, "SELECT configs['retention.ms'] AS r FROM topics WHERE name = 'orders'") == [
            {"r": "1209600000"}
        ]

    def test_columns_of_one_name_stay_apart(self, sample: Session) -> None:
        assert ask(sample, "SELECT 1 AS a, 2 AS a, 3 AS a") == [{"a": 1, "a_2": 2, "a_3": 3}]

    def test_no_rows_have_columns(self, sample: Session) -> None:
        result = run(sample, "sql 'SELECT name, topicId FROM topics WHERE false'")
        assert [column.name for column in result.columns] == ["name", "topicId"]  # type: ignore[attr-defined]
        assert list(result) == []  # type: ignore[call-overload]

    @pytest.mark.parametrize("condition", ["true", "false"])
    def test_columns_have_the_types_of_the_query_also_without_a_row(self, sample: Session, condition: str) -> None:
        line = (
            "SELECT name, partitions, offline > 0 AS bad, partitions / 2 AS half, [partitions] AS list, now() AS at,"
            f" configs FROM topics WHERE {condition}"
        )
        result = Result(run(sample, f'sql "{line}"'))
        assert result.columns == {
            "name": "string", "partitions": "int64", "bad": "boolean", "half": "float64", "list": "[int64]",
            "at": "string", "configs": "json",
        }  # fmt: skip

    @pytest.mark.parametrize("more", ["", ", 1 AS a"])
    def test_times_keep_their_zone_and_bits_are_bits(self, sample: Session, more: str) -> None:
        (row,) = ask(
            sample,
            "SELECT TIMETZ '10:00:00+02' AS a, '0101'::BIT AS b, ['11'::BIT] AS l, {'BIT': TIMETZ '10:00:00+02'} AS s,"
            f" TIME '10:00:00' AS t{more}",
        )
        row.pop("a_2", None)
        zoned = "10:00:00+02"
        assert row == {"a": zoned, "b": "0101", "l": ["11"], "s": {"BIT": zoned}, "t": "10:00:00"}

    def test_numbers_of_any_length_are_digits(self, sample: Session) -> None:
        assert ask(sample, "SELECT '-123456789012345678901234567890123456789012'::BIGNUM AS n") == [
            {"n": "-123456789012345678901234567890123456789012"}
        ]

    def test_equal_names_are_numbered_alike_where_rows_are_limited(self, sample: Session) -> None:
        for sample.is_confined in (False, True):
            assert ask(sample, 'SELECT 1 AS a, 2 AS a, 3 AS "A"') == [{"a": 1, "a_2": 2, "A": 3}]

    def test_whole_numbers_are_exact(self, sample: Session) -> None:
        (row,) = ask(
            sample, "SELECT sum(x) AS s, max(x) AS m FROM (VALUES (9223372036854775807), (9007199254740993)) t(x)"
        )
        assert row == {"s": 9232379236109516800, "m": 9223372036854775807}

    def test_other_types_are_plain(self, sample: Session) -> None:
        (row,) = ask(
            sample,
            "SELECT 1.5 AS d, DATE '2026-01-02' AS day, TIMESTAMP '2026-01-02 03:04:05.678' AS t,"
            " TIMESTAMPTZ '2026-01-02 03:04:05+02' AS z, 'ab'::BLOB AS b, NULL AS n, {'a': [1, 2]} AS s,"
            " map {'k': 1} AS m, INTERVAL 2 MONTH AS i, 'NaN'::DOUBLE AS nan",
        )
        assert row.pop("nan") != 0
        assert row == {
            "d": 1.5, "day": "2026-01-02", "t": "2026-01-02T03:04:05.678Z", "z": "2026-01-02T01:04:05.000Z",
            "b": "6162", "n": None, "s": {"a": [1, 2]}, "m": {"k": 1},
            "i": {"months": 2, "days": 0, "nanoseconds": 0},
        }  # fmt: skip

    def test_decimals_lose_no_digits_of_whole_numbers(self, sample: Session) -> None:
        query = "SELECT 9007199254740993 * 1.0 AS x, [1.5, 2.0] AS l, {'a': 2.0::DECIMAL(5, 1)} AS s"
        [row] = ask(sample, query)
        assert (row["x"], repr(row["l"]), repr(row["s"]["a"])) == (9007199254740993, "[1.5, 2.0]", "2.0")

    def test_decimals_with_a_scale_are_all_of_one_type(self, sample: Session) -> None:
        found = ask(sample, "SELECT partitions * 1.5 AS x, 3::DECIMAL(9, 2) AS whole, 4::HUGEINT AS n FROM topics")
        assert {type(row[name]) for row in found for name in ("x", "whole")} == {float}
        assert {type(row["n"]) for row in found} == {int}

    @pytest.mark.parametrize(
        "value",
        [
            "'infinity'::TIMESTAMP", "'infinity'::TIMESTAMPTZ", "'-infinity'::DATE", "TIMESTAMP '290000-01-01'",
            "DATE '0044-03-15 (BC)'", "[DATE '0044-03-15 (BC)']", "MAP {[1]: 'a'}",
        ],
    )  # fmt: skip
    def test_a_value_that_json_does_not_have_is_named(self, sample: Session, value: str) -> None:
        with pytest.raises(CommandError, match="the column odd has a value that JSON cannot express") as raised:
            ask(sample, f"SELECT 1 AS n, {value} AS odd")
        assert "::VARCHAR" in (raised.value.hint or "")
        [row] = ask(sample, f"SELECT ({value})::VARCHAR AS odd")
        assert isinstance(row["odd"], str)

    def test_several_statements_in_one_are_told(self, sample: Session) -> None:
        with pytest.raises(UsageError, match="several statements in one"):
            ask(sample, "PIVOT partitions ON state USING count(*) GROUP BY topic")

    def test_a_time_keeps_its_microseconds(self, sample: Session) -> None:
        (row,) = ask(sample, "SELECT TIMESTAMP '2026-01-02 03:04:05.678901' AS t, TIMESTAMP '2026-01-02 03:04:05' AS s")
        assert row == {"t": "2026-01-02T03:04:05.678901Z", "s": "2026-01-02T03:04:05.000Z"}

    def test_the_tables_can_be_listed_and_described(self, sample: Session) -> None:
        assert [row["name"] for row in ask(sample, "SHOW TABLES")] == sorted((*tables(), *catalog().past))
        assert [row["column_name"] for row in ask(sample, "DESCRIBE features")] == ["name", "level"]

    def test_secrets_stay_hidden(self, sample: Session) -> None:
        found = ask(sample, "SELECT DISTINCT value FROM configs WHERE name LIKE '%keystore.password'")
        assert found == [{"value": "[redacted]"}]

    def test_only_tables_that_are_named_are_made(self) -> None:
        assert [table.name for table in named("SELECT topicId FROM partitions", catalog())] == ["partitions"]
        assert [table.name for table in named("SELECT 1 FROM History_Acls", catalog())] == ["history_acls"]
        assert named("SELECT 1", catalog()) == []


class TestRefused:
    @pytest.mark.parametrize(
        "query",
        [
            "COPY topics TO '{place}/x.csv'", "ATTACH '{place}/x.db'", "CREATE TABLE x (a INT)", "DROP TABLE topics",
            "INSTALL httpfs", "LOAD httpfs", "SET threads = 1", "PRAGMA database_list", "EXPORT DATABASE '{place}'",
            "UPDATE topics SET name = 'x'", "DELETE FROM topics", "CALL pragma_version()", "SELECT 1; SELECT 2", "",
            "BEGIN", "USE memory",
        ],
    )  # fmt: skip
    def test_whatever_is_no_select(self, sample: Session, tmp_path: Path, query: str) -> None:
        with pytest.raises(UsageError):
            ask(sample, query.format(place=tmp_path))
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT * FROM read_csv('{file}')", "SELECT * FROM read_text('{file}')", "SELECT * FROM '{file}'",
            "SELECT * FROM glob('{place}/*')", "SELECT * FROM read_parquet('http://127.0.0.1:1/x')",
            "SELECT getenv('HOME')", "SELECT * FROM sample", "SELECT * FROM session", "SELECT * FROM arrow",
            "SELECT * FROM sqlite_scan('{file}', 't')", "EXPLAIN ANALYZE COPY topics TO '{place}/x.csv'",
            "EXPLAIN ANALYZE SELECT * FROM read_text('{file}')",
        ],
    )  # fmt: skip
    def test_files_the_network_and_python(self, sample: Session, tmp_path: Path, query: str) -> None:
        file = tmp_path / "secret.csv"
        file.write_text("a\nhidden-text\n")
        with pytest.raises(KshellError) as raised:
            ask(sample, query.format(place=tmp_path, file=file))
        assert "hidden-text" not in str(raised.value)
        assert list(tmp_path.iterdir()) == [file]

    def test_settings_cannot_be_changed_back(self, sample: Session) -> None:
        found = ask(
            sample,
            "SELECT name, value FROM duckdb_settings() WHERE name IN ('enable_external_access', 'lock_configuration',"
            " 'python_enable_replacements') ORDER BY name",
        )
        assert [row["value"] for row in found] == ["false", "true", "false"]

    def test_a_wrong_name_is_pointed_at(self, sample: Session) -> None:
        with pytest.raises(UsageError) as raised:
            ask(sample, "SELECT nope FROM topics")
        assert (raised.value.column, raised.value.exit_code) == (7, EXIT_USAGE)
        assert "tables: acls" in (raised.value.hint or "")

    @pytest.mark.parametrize(
        ("query", "pipes"),
        [
            ("SELECT name FROM topics | grep -v x", True), ("SELECT name FROM topics LIMIT 1 | cat", True),
            ("SELECT nope FROM topics WHERE name || 'a' = 'b'", False),
            ("SELECT nope FROM topics WHERE partitions | 1 > 2", False),
        ],
    )  # fmt: skip
    def test_a_pipe_after_a_query_is_told_from_sql(self, sample: Session, query: str, pipes: bool) -> None:
        with pytest.raises(UsageError) as raised:
            ask(sample, query)
        assert ("`sql 'SELECT …' | PROGRAM` pipes" in (raised.value.hint or "")) is pipes

    def test_what_fails_while_it_runs_is_a_failure(self, sample: Session) -> None:
        with pytest.raises(CommandError) as raised:
            ask(sample, "SELECT CAST(name AS INTEGER) FROM topics")
        assert raised.value.exit_code == EXIT_USAGE

    @pytest.mark.parametrize("package", ["duckdb", "pyarrow"])
    def test_a_missing_package_is_named_with_its_command(
        self, sample: Session, monkeypatch: pytest.MonkeyPatch, package: str
    ) -> None:
        real = importlib.import_module

        def without(name: str, *args: Any) -> Any:
            if name == package:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return real(name, *args)

        monkeypatch.setattr(importlib, "import_module", without)
        with pytest.raises(UsageError) as raised:
            ask(sample, "SELECT 1")
        assert package in raised.value.message
        assert raised.value.hint == install_command("sql")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (decimal.Decimal("18446744073709551616"), 18446744073709551616),
        (decimal.Decimal("2.50"), 2.5),
        (datetime.time(1, 2, 3), "01:02:03"),
        (datetime.timedelta(seconds=90), 90.0),
        (b"\x00\xff", "00ff"),
        ([None, {"a": b"\x01"}], [None, {"a": "01"}]),
        (True, True),
    ],
)
def test_plain(value: Any, expected: Any) -> None:
    found = plain(value)
    assert (found, type(found)) == (expected, type(expected))


def test_completion(sample: Session) -> None:
    assert "SELECT * FROM topics" in complete_query(sample, "SELECT * FROM to")
    assert "SELECT leader FROM partitions WHERE leaderEpoch" in complete_query(
        sample, "SELECT leader FROM partitions WHERE leaderE"
    )
    assert list(complete_query(sample, "sel")) == ["SELECT * FROM ", "SELECT "]


QUERIES: dict[str, Mapping[str, Collection[str] | None]] = {
    "SELECT leader FROM partitions WHERE state != 'online'": {"partitions": {"leader", "state"}},
    "SELECT count(*) FROM partitions": {"partitions": set()},
    "SELECT p.topic FROM partitions p WHERE p.topic IN (SELECT name FROM topics)": {
        "partitions": {"topic"}, "topics": {"name"},
    },
    "SELECT b.x.host FROM (SELECT unnest(listeners) x FROM brokers) b": {"brokers": {"listeners"}},
    "WITH q AS (SELECT id, rack FROM brokers) SELECT a.id FROM q a JOIN q b USING (rack)": {"brokers": {"id", "rack"}},
    "SELECT count(*) AS n FROM users u NATURAL JOIN topics t": {"users": {"name"}, "topics": {"name"}},
    "SELECT configs['retention.ms'] FROM topics -- name": {"topics": {"configs"}},
    "FROM users": {"users": None},
    "SELECT u FROM users u": {"users": None},
    "SELECT COLUMNS('^i.*') FROM users; ": {"users": {"iterations"}},
    "SUMMARIZE tokens": {"tokens": None},
    "EXPLAIN SELECT name FROM users": {"users": None},
    "SELECT nope FROM users": {"users": None},
    "SELECT 'users'": {},
    "DESCRIBE users": {},
    "SHOW TABLES": {},
    "SELECT count(*) FROM duckdb_tables() WHERE table_name = 'users' AND estimated_size > 0": dict.fromkeys(tables()),
}  # fmt: skip


class TestColumns:
    """Only what a query reads is made."""

    @staticmethod
    def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """Table -> the fields that were asked of it."""
        found: dict[str, Any] = {}
        for name, table in tables().items():

            def spied(session: Session, image: Any, wanted: Any, table: Table = table) -> Any:
                found[table.name] = wanted
                return table.rows(session, image, wanted)

            monkeypatch.setitem(tables_module._TABLES, name, table._replace(rows=spied))
        return found

    @pytest.mark.parametrize("query", QUERIES)
    def test_that_the_query_reads(self, sample: Session, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
        found = self.made(monkeypatch)
        with contextlib.suppress(UsageError):
            ask(sample, query)
        expected = QUERIES[query]
        fields = {name: frozenset(field.name for field in table.fields) for name, table in tables().items()}
        assert {name: fields[name] if wanted is None else wanted for name, wanted in found.items()} == {
            name: fields[name] if wanted is None else wanted for name, wanted in expected.items()
        }

    @pytest.mark.parametrize("query", [one for one in QUERIES if "nope" not in one and "EXPLAIN" not in one])
    def test_and_no_answer_is_another(self, sample: Session, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
        some = ask(sample, query)
        monkeypatch.setattr(query_module, "columns_of", lambda *args: dict.fromkeys(tables()))
        assert ask(sample, query) == some

    @pytest.mark.parametrize(
        "plan", ["[]", "{", '[{"extra_info": "text"}]', '[{"extra_info": {"Table": "users"}}]',
                 '[{"extra_info": {"Table": "users", "Projections": ["other"]}}]',
                 '[{"extra_info": {"Table": "nobody", "Projections": ["name"]}}]'],
    )  # fmt: skip
    def test_a_plan_that_is_not_understood_leaves_nothing_out(self, plan: str) -> None:
        class Planner:
            """A DuckDB that prints every plan so."""

            def execute(self, text: str) -> Any:
                planned = [("plan", plan)] if text.startswith("EXPLAIN") else []
                return SimpleNamespace(fetchall=lambda: planned)

        assert columns_of(duckdb, Planner(), "SELECT name FROM users", [tables()["users"]]) == {"users": None}


@pytest.mark.parametrize(
    "failure", [KeyboardInterrupt(), CorruptDataError("a.log", 7, "a rule")], ids=["ctrl-c", "data"]
)
def test_what_is_raised_while_rows_are_made_comes_out_as_it_is(
    sample: Session, monkeypatch: pytest.MonkeyPatch, failure: BaseException
) -> None:
    def broken(session: Session, image: Any, wanted: Any) -> Any:
        yield {"name": "one"}
        raise failure

    monkeypatch.setitem(tables_module._TABLES, "topics", tables()["topics"]._replace(rows=broken))
    with pytest.raises(type(failure)) as raised:
        ask(sample, "SELECT name FROM topics")
    assert raised.value is failure


def test_progress_is_told(sample: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_module, "_REPORTED_EVERY", 5)
    told: list[str] = []
    session = Session(sample.source, progress=lambda done, total, what: told.append(what))
    ask(session, "SELECT count(*) FROM topics")
    assert told[-2:] == ["topics: 5 rows", "topics: 10 rows"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), DeadlineError("gave up")], ids=["interrupt", "deadline"])
def test_a_query_that_takes_for_ever_can_be_stopped(sample: Session, stop: BaseException) -> None:
    def alarm(number: int, frame: object) -> NoReturn:
        raise stop

    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    begun = time.monotonic()
    try:
        with pytest.raises(type(stop)):
            rows(sample, 'sql "SELECT count(*) FROM range(100000000000) t(i) WHERE i % 7 = 3"')
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - begun < 20


def test_a_host_with_too_little_memory_to_begin_is_no_fault_of_kshell(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(database: str) -> NoReturn:
        raise duckdb.OutOfMemoryException(f"failed to allocate for {database}")

    monkeypatch.setattr(duckdb, "connect", connect)
    with pytest.raises(CommandError, match="this one needs more"):
        run(opened(recorded()[0]), "sql 'SELECT 1'")


def test_a_function_that_hears_no_interrupt_is_left_behind(sample: Session) -> None:
    begun = time.monotonic()
    with pytest.raises(DeadlineError), deadline(0.5):
        rows(sample, "sql \"SELECT repeat('x', 400000000)\"")
    assert time.monotonic() - begun < 10


def test_rows_of_more_bytes_than_can_be_printed_are_refused(sample: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_module, "_MOST_BYTES", 1 << 20)
    assert len(rows(sample, "sql \"SELECT repeat('x', 1000000) AS x\"")[0]["x"]) == 1_000_000
    with pytest.raises(CommandError, match="1 rows of this answer take 2 MiB, and 1 may be printed"):
        rows(sample, "sql \"SELECT repeat('x', 2100000)\"")
