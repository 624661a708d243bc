"""``sql`` over history: tables of versions, tables at points, what changed, what happened."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kshell.commands.sql import complete_query
from kshell.engine.session import Session
from kshell.errors import EXIT_DATA, EXIT_USAGE, CommandError, SourceError, UsageError
from kshell.history.catalog import catalog
from kshell.history.recorded import recorded_past
from kshell.history.versions import history_name, periods
from kshell.metadata.image import EMPTY
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.directory.log import LogReader
from kshell.tables import query as query_module
from kshell.tables.declaration import tables
from kshell.tables.versions import VERSION, recorded_fields
from tests.builders import copy_of, node_name, recorded
from tests.commands.shell import opened, rows, run
from tests.server import Quorum, settings
from tests.spark.silver import made_up

POINTS = 6
"""Offsets of each log that are looked at, and its ends."""


def ask(session: Session, query: str) -> list[dict[str, Any]]:
    return rows(session, f"sql {json.dumps(query, ensure_ascii=False)}")


def listed(found: Iterable[Mapping[str, Any]], names: Iterable[str]) -> list[str]:
    """Rows that can be compared."""
    columns = list(names)
    return sorted(json.dumps([row.get(name) for name in columns], sort_keys=True, default=dict) for row in found)


def test_a_snapshot_alone_says_that_nothing_is_known_of_the_past(tmp_path: Path) -> None:
    source = next(path for path in recorded() if path.name == "controller-3001") / METADATA_DIRECTORY
    [*_, snapshot] = sorted(source.glob("*.checkpoint"))
    session = opened(snapshot)
    for table in ("events", "config_changes"):
        assert ask(session, f"SELECT count(*) AS n FROM {table}") == [{"n": 0}]
        assert [note for note in session.notes() if note.startswith("there is no log here, only snapshot")]
        session.remarks.clear()


@pytest.mark.parametrize(("name", "call"), [("topics_at", "topics_at('-1h')"), ("changes", "changes('-1h', 'now')")])
def test_a_table_at_a_point_needs_one(sample: Session, name: str, call: str) -> None:
    with pytest.raises(UsageError) as raised:
        ask(sample, f"SELECT * FROM {name}")
    assert call in (raised.value.hint or "")


def versions(session: Session, name: str) -> list[Mapping[str, Any]]:
    return list(catalog().past[history_name(name)].rows(session, EMPTY, None))


def offsets(session: Session, seed: str) -> list[int]:
    """Any offsets of the log, its ends among them."""
    log, chosen = recorded_past(session, "").history.log, random.Random(seed)
    return sorted({log.start, log.end - 1, *(chosen.randrange(log.start, log.end) for _ in range(POINTS))})


def valid_at(found: Iterable[Mapping[str, Any]], offset: int) -> list[Mapping[str, Any]]:
    return [
        row for row in found if row["validFromOffset"] <= offset and (row["isCurrent"] or row["validToOffset"] > offset)
    ]


def check(session: Session, seed: str) -> None:
    """What is valid at an offset is what the table says there, and no row says what the one before it says."""
    for name, table in tables().items():
        found, shared = versions(session, name), [field.name for field in recorded_fields(name)]
        if name == "controllers":
            continue  # the shell asks files beside the log who leads, too: tests/spark/silver compares those
        for offset in offsets(session, seed):
            then = session.reshape(point=str(offset))
            expected = table.rows(then, then.image, None)
            assert listed(valid_at(found, offset), shared) == listed(expected, shared), (name, offset)


@pytest.mark.parametrize("node", recorded(), ids=node_name)
def test_versions_that_are_valid_at_an_offset_are_the_table_there(node: Path) -> None:
    check(opened(node / METADATA_DIRECTORY), node_name(node))


@pytest.mark.parametrize("seed", range(4))
def test_so_they_are_in_made_up_logs_with_transactions_and_snapshots(tmp_path: Path, seed: int) -> None:
    made_up.write(tmp_path, seed, 110)
    check(opened(tmp_path), str(seed))


KEYS = {
    "acls": ("id",),
    "brokers": ("id",),
    "features": ("name",),
    "partitions": ("topicId", "partition"),
    "quotas": ("name", "key"),
    "tokens": ("tokenId",),
    "topics": ("topicId",),
}
"""Tables in which a version begins only where its columns change."""


@pytest.mark.parametrize("seed", range(16))
def test_versions_begin_and_end_where_the_table_changes(tmp_path: Path, seed: int) -> None:
    """Against the table at every offset, one after the other."""
    made_up.write(tmp_path, seed, 110)
    session = opened(tmp_path)
    past = recorded_past(session, "")
    first = past.start if past.start >= 0 else past.history.log.start
    current: dict[Any, tuple[int, str]] = {}
    expected: list[tuple[Any, int, int | None]] = []
    for offset in range(first, past.history.log.end):
        then = session.reshape(point=str(offset))
        now: dict[Any, str] = {}
        for name, keys in KEYS.items():
            columns = [field.name for field in recorded_fields(name)]
            for row in tables()[name].rows(then, then.image, None):
                now[name, *(row[key] for key in keys)] = repr([row.get(column) for column in columns])
        for key, (since, said) in list(current.items()):
            if now.get(key) != said:
                expected.append((key, since, offset))
                del current[key]
        current = {key: current.get(key, (offset, said)) for key, said in now.items()}
    expected += [(key, since, None) for key, (since, _) in current.items()]
    found = [
        ((name, *(row[key] for key in keys)), row["validFromOffset"], row["validToOffset"])
        for name, keys in KEYS.items()
        for row in versions(session, name)
    ]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("has_gap", [False, True])
def test_a_log_that_begins_before_its_snapshot_names_the_leader_and_voters_there(tmp_path: Path, has_gap: bool) -> None:
    session = opened(made_up.write_late(tmp_path, has_gap=has_gap))
    found = [tuple(row.values()) for row in ask(session, f"SELECT {', '.join(LEADERS)} FROM history_controllers")]
    early = [] if has_gap else [(3000, False, True, 9, 11), (3001, True, True, 9, 11)]  # which epoch it was is lost
    assert sorted(found, key=str) == [
        *early[:1],
        (3000, True, True, 11, None),
        *early[1:],
        (3002, False, True, 11, None),
    ]
    leaders = [row["id"] for row in rows(session, "controllers --as-of 10") if row["isLeader"]]
    assert leaders == [row[0] for row in early if row[1]]


LEADERS = ("id", "isLeader", "isVoter", "validFromOffset", "validToOffset")


def test_every_version_says_from_when_to_when(sample: Session) -> None:
    log = recorded_past(sample, "").history.log
    for name in tables():
        last: dict[str, Mapping[str, Any]] = {}
        for row in versions(sample, name):
            assert list(catalog().past[history_name(name)].fields[-5:]) == list(VERSION)
            since, until = row["validFromOffset"], row["validToOffset"]
            assert row["isCurrent"] == (until is None) == (row["validToMs"] is None)
            assert until is None or since < until
            assert since < 0 or row["validFromMs"] == log.timestamp(since)
            assert until is None or row["validToMs"] == log.timestamp(until)
            keys = {"partitions": ("topicId", "partition"), "controllers": ("id",), "brokers": ("id",)}.get(name)
            if keys is not None:
                before = last.get(key := str([row[key] for key in keys]))
                said = [
                    {field.name: one[field.name] for field in recorded_fields(name)} for one in (before or row, row)
                ]
                assert before is None or (before["validToOffset"] <= since and said[0] != said[1])
                last[key] = row


def test_states_make_periods() -> None:
    states = [(1, "a"), (2, "a"), (3, "b"), (3, "a"), (5, None), (7, "c"), (7, None), (9, "c"), (10, "c")]
    assert list(periods(states)) == [("a", 1, 5), ("c", 9, None)]
    assert list(periods(states, lambda value: value == "c")) == [("a", 1, 5), ("c", 9, 10), ("c", 10, None)]
    assert list(periods([])) == []


class TestPoints:
    @pytest.mark.parametrize("name", tables())
    def test_a_table_at_a_point_is_what_its_command_says_there(self, sample: Session, name: str) -> None:
        for offset in (100, 161):
            expected = rows(sample, f"{name} --as-of {offset}") if name not in ("provenance", "features") else None
            then = sample.reshape(point=str(offset))
            every = [field.name for field in tables()[name].fields]
            found = ask(sample, f"SELECT * FROM {name}_at({offset})")
            assert listed(found, every) == listed(tables()[name].rows(then, then.image, None), every)
            assert expected is None or listed(found, every) == listed(expected, every)

    def test_points_are_those_of_every_command(self, sample: Session) -> None:
        at = "SELECT count(*) AS n FROM topics_at({})"
        counts = [ask(sample, at.format(point))[0]["n"] for point in ("100", "'100'", "'end-8s'", "'now'", "1_00")]
        assert counts == [13, 13, 12, 12, 13]
        rows(sample, "mark early 100")
        assert ask(sample, at.format("'@early'")) == [{"n": 13}]

    def test_several_points_in_one_query(self, sample: Session) -> None:
        found = ask(
            sample,
            "SELECT (SELECT count(*) FROM topics_at(100)) AS a, (SELECT count(*) FROM Topics_At(41)) AS b,"
            " (SELECT count(*) FROM topics) AS c, (SELECT count(*) FROM \"topics_at\"('100')) AS d",
        )
        assert found == [{"a": 13, "b": 3, "c": 12, "d": 13}]

    @pytest.mark.parametrize("points", [("100", "now"), ("161", "100"), ("100", "100")])
    def test_changes_are_the_rows_of_diff(self, sample: Session, points: tuple[str, str]) -> None:
        a, b = points
        found = ask(sample, f"SELECT * FROM changes('{a}', '{b}')")
        expected = rows(sample, f"diff {a} {b}")
        for row in found:
            row["old"], row["new"] = (None if row[side] is None else json.loads(row[side]) for side in ("old", "new"))
        assert found == json.loads(json.dumps(expected, default=dict))

    @pytest.mark.parametrize(
        "call", ["topics_at(50 + 50)", "topics_at(-1)", "topics_at()", "topics_at(1, 2)", "changes(1)",
                 "(VALUES (3)) v(x), topics_at(v.x)", "topics_at(point := 100)"],
    )  # fmt: skip
    def test_what_is_no_literal_is_refused_where_it_stands(self, sample: Session, call: str) -> None:
        with pytest.raises(UsageError) as raised:
            ask(sample, f"SELECT * FROM {call}")
        assert raised.value.exit_code == EXIT_USAGE
        assert "a point is an offset" in raised.value.message
        assert raised.value.column == 14 + call.index("topics_at" if "topics_at" in call else "changes")

    def test_a_wrong_point_is_said_as_everywhere(self, sample: Session) -> None:
        with pytest.raises(UsageError, match="not a point"):
            ask(sample, "SELECT * FROM topics_at('last week')")

    def test_names_in_texts_and_comments_are_no_calls(self, sample: Session) -> None:
        assert ask(sample, "SELECT 'topics_at(x)' AS a -- changes(1)\n") == [{"a": "topics_at(x)"}]
        assert ask(sample, "SELECT count(*) AS n FROM topics_at(100) WHERE name <> 'üß€'") == [{"n": 13}]
        with pytest.raises(UsageError) as raised:
            ask(sample, "SELECT 'üß€' FROM topics_at(name)")
        assert raised.value.column == 18
        own = (
            "WITH events AS (SELECT 1 AS a), changes(a, b) AS (SELECT 1, 2) SELECT * FROM changes JOIN events USING (a)"
        )
        assert ask(sample, own) == [{"a": 1, "b": 2}]


class TestEvents:
    def test_every_record_is_one_and_has_the_path_that_log_names(self, sample: Session) -> None:
        found = ask(sample, "SELECT * FROM events")
        records = rows(sample, "dump")
        assert [(row["offset"], row["type"], json.loads(row["data"])) for row in found] == [
            (row["offset"], row["type"], json.loads(json.dumps(row["data"], default=dict))) for row in records
        ]
        by_offset = {row["offset"]: row["path"] for row in run(sample, "log --noop").readable}  # type: ignore[union-attr]
        assert {row["offset"]: row["path"] for row in found} == by_offset
        assert found[0]["time"] == "2026-11-21T15:11:01.792Z"

    def test_nothing_after_the_point_that_is_shown(self, sample: Session) -> None:
        then = sample.reshape(point="100")
        assert ask(then, 'SELECT max("offset") AS o FROM events') == [{"o": 100}]
        assert ask(then, "SELECT max(validFromOffset) AS o, max(validToOffset) AS t FROM history_provenance") == [
            {"o": 100, "t": 100}
        ]
        assert all(row["offset"] <= 100 for row in ask(then, "SELECT * FROM config_changes"))

    @pytest.mark.parametrize("node", recorded(), ids=node_name)
    def test_config_changes_lead_from_the_first_configs_to_the_last(self, node: Path) -> None:
        session = opened(node / METADATA_DIRECTORY, show_secrets=True)
        past = recorded_past(session, "")
        start = session.reshape(point=str(past.history.log.start - 1)) if past.start >= 0 else None
        key = ("resourceType", "resourceName", "name")
        state = {
            tuple(row[name] for name in key): row["value"]
            for row in (tables()["configs"].rows(start, start.image, None) if start else ())
        }
        last = -1
        for row in catalog().past["config_changes"].rows(session, EMPTY, None):
            of = tuple(row[name] for name in key)
            assert state.get(of) == row["before"]
            assert row["change"] == ("added" if of not in state else "removed" if row["after"] is None else "changed")
            assert last <= row["offset"]
            last = row["offset"]
            state = {**state, of: row["after"]}
            if row["after"] is None:
                del state[of]
        now = tables()["configs"].rows(session, session.image, None)
        assert state == {tuple(row[name] for name in key): row["value"] for row in now}


def test_secrets_are_hidden_in_all_of_it(sample: Session) -> None:
    secret = {row["name"] for row in ask(sample, "SELECT name FROM configs WHERE value = '[redacted]'")}
    assert secret
    for row in ask(sample, "SELECT name, before, after FROM config_changes"):
        assert row["name"] not in secret or {row["before"], row["after"]} <= {None, "[redacted]"}
    for row in ask(sample, "SELECT name, value FROM history_configs"):
        assert (row["value"] == "[redacted]") == (row["name"] in secret)
    told = json.dumps(ask(sample, "SELECT * FROM events"))
    assert '"salt": "[redacted]"' in told.replace("\\", "") or "[redacted]" in told
    shown = sample.reshape(show_secrets=True)
    assert len(ask(shown, "SELECT * FROM history_configs")) == len(ask(sample, "SELECT * FROM history_configs"))


class TestOnlyWhatIsNeeded:
    def made(self, sample: Session, query: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """Table -> the columns that were asked of it."""
        found: dict[str, Any] = {}
        real = query_module._rows_of

        def spied(session: Session, table: Any, read: Any) -> Any:
            if table.name in read:
                found[table.name] = read[table.name]
            return real(session, table, read)

        monkeypatch.setattr(query_module, "_rows_of", spied)
        ask(sample, query)
        return found

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("SELECT count(*) AS n FROM history_partitions", {"history_partitions": set()}),
            ("SELECT topic FROM history_partitions WHERE leader = -1", {"history_partitions": {"topic", "leader"}}),
            ("SELECT type FROM events", {"events": {"type"}}),
            ("SELECT state FROM partitions_at(100)", {"partitions_at_0": {"state"}}),
            ("SELECT 'history_topics'", {}),
            ("DESCRIBE history_topics", {}),
            ("SHOW TABLES", {}),
            ("SELECT count(*) AS n FROM duckdb_columns()", dict.fromkeys(tables())),
            (
                "SELECT count(*) AS n FROM duckdb_tables() WHERE table_name = 'history_topics'",
                dict.fromkeys((*tables(), "history_topics")),
            ),
        ],
    )
    def test_is_made(
        self, sample: Session, query: str, expected: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert self.made(sample, query, monkeypatch) == expected

    @pytest.mark.parametrize("name", catalog().past)
    def test_and_no_value_is_another(self, sample: Session, name: str) -> None:
        table = catalog().past[name]
        whole = list(table.rows(sample, EMPTY, None))
        for field in table.fields:
            some = table.rows(sample, EMPTY, frozenset((field.name,)))
            assert [row.get(field.name) for row in some] == [row.get(field.name) for row in whole]

    def test_the_log_is_read_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        read: list[int] = []
        real = LogReader.__iter__

        def counted(reader: LogReader) -> Any:
            read.append(1)
            return real(reader)

        monkeypatch.setattr(LogReader, "__iter__", counted)
        made_up.write(tmp_path, 0, 110)
        ask(
            opened(tmp_path),
            "SELECT (SELECT count(*) FROM history_topics) AS a, (SELECT count(*) FROM history_brokers) AS b,"
            " (SELECT count(*) FROM topics_at(50)) AS c, (SELECT count(*) FROM brokers_at(70)) AS d",
        )
        assert len(read) == 1


class TestRefused:
    @pytest.mark.parametrize(
        ("query", "hint"),
        [
            ("SELECT * FROM history_partition", "did you mean history_partitions"),
            ("SELECT * FROM topcs", "did you mean topics"),
            ("SELECT * FROM change(1, 2)", "did you mean changes"),
            ("SELECT * FROM partition_at(1)", "did you mean partitions_at"),
            ("SELECT * FROM event", "did you mean events"),
        ],
    )
    def test_a_wrong_name_gets_a_proposal(self, sample: Session, query: str, hint: str) -> None:
        with pytest.raises(UsageError) as raised:
            ask(sample, query)
        assert (raised.value.hint or "").startswith(hint)
        assert raised.value.column == 14

    def test_brokers_have_no_past(self) -> None:
        with Quorum(controllers=1, brokers=1) as quorum:
            session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))
            for query in ("SELECT * FROM history_topics", "SELECT * FROM events", "SELECT * FROM topics_at(1)"):
                with pytest.raises(SourceError):
                    ask(session, query)

    def test_memory_has_a_bound(self, sample: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(query_module, "_MOST_MEMORY", 16 << 20)
        with pytest.raises(CommandError, match="a query may take 16 MiB"):
            ask(sample, "SELECT sum(length(s)) AS n FROM (SELECT string_agg(i::VARCHAR) AS s FROM range(9000000) t(i))")


def test_damage_before_a_snapshot_is_said_and_what_comes_after_is_answered(tmp_path: Path) -> None:
    node = next(node for node in recorded(log_from_zero=True) if node_name(node) == "4.3.1/broker-0")
    file = copy_of(node, tmp_path) / f"{0:020d}.log"
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 4] ^= 0xFF
    file.write_bytes(raw)
    for query in ("SELECT count(*) AS n FROM history_topics", "SELECT count(*) AS n FROM events"):
        session = opened(file.parent)
        (row,) = ask(session, query)
        assert row["n"]
        assert session.exit_code() == EXIT_DATA
        assert any("CRC" in note for note in (*session.notes(), *session.problems()))
        assert ask(session, "SELECT 1 AS n") == [{"n": 1}] and not session.found_damage


class TestExport:
    def test_the_past_is_exported_as_queries_have_it(self, sample: Session, tmp_path: Path) -> None:
        found = {row["table"]: row["rows"] for row in rows(sample, f"export --history --format jsonl {tmp_path}/out")}
        assert list(found) == sorted((*tables(), *catalog().past))
        for name, table in catalog().past.items():
            lines = (tmp_path / "out" / f"{name}.jsonl").read_text().splitlines()
            columns = [field.name for field in table.fields]
            assert listed(map(json.loads, lines), columns) == listed(table.rows(sample, EMPTY, None), columns)
            assert len(lines) == found[name]

    def test_one_table_of_the_past_needs_no_flag(self, sample: Session, tmp_path: Path) -> None:
        found = rows(sample, f"export --format csv --table history_topics --table topics {tmp_path}/out")
        assert [row["table"] for row in found] == ["history_topics", "topics"]
        with pytest.raises(UsageError) as raised:
            rows(sample, f"export --format csv --table history_topic {tmp_path}/other")
        assert "did you mean history_topics" in (raised.value.hint or "")

    def test_what_brokers_do_not_know_is_left_out(self, tmp_path: Path) -> None:
        with Quorum(controllers=1, brokers=1) as quorum:
            session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))
            found = rows(session, f"export --history --table history_acls --format csv {tmp_path}/out")
            assert found == []
            assert any(note.startswith("history_acls: brokers report") for note in session.notes())


def test_names_of_the_past_are_completed(sample: Session) -> None:
    assert "SELECT * FROM history_topics" in complete_query(sample, "SELECT * FROM hist")
    assert "SELECT * FROM topics_at(" in complete_query(sample, "SELECT * FROM topics_")
    assert "SELECT * FROM history_topics WHERE validFromMs" in complete_query(
        sample, "SELECT * FROM history_topics WHERE validFromM"
    )
    assert "SELECT * FROM topics_at('-1h') WHERE minIsr" in complete_query(
        sample, "SELECT * FROM topics_at('-1h') WHERE minI"
    )
