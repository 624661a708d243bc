"""``export``: what comes back through pyarrow, DuckDB, SQLite and plain Python is what was in the tables."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pyarrow.parquet
import pytest

from kshell import escape
from kshell.commands.export import EXPORT_FORMATS
from kshell.engine.session import Session
from kshell.errors import CommandError, UsageError
from kshell.metadata.image import Image
from kshell.metadata.partial import MISSING
from kshell.render import render
from kshell.sources.choose import demo_directory
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.tables import arrow as arrow_tables
from kshell.tables import declaration as tables_module
from kshell.tables import export as export_files
from kshell.tables.declaration import Table, Type, tables
from tests.builders import node_name, recorded, uuid, value
from tests.commands import cluster
from tests.commands.shell import opened, rows, run

Read = Callable[[Path, Table], list[dict[str, Any]]]


def read_parquet(place: Path, table: Table) -> list[dict[str, Any]]:
    found = pyarrow.parquet.read_table(place / f"{table.name}.parquet")
    assert found.schema.equals(arrow_tables.schema(pyarrow, table.fields))
    return found.to_pylist(maps_as_pydicts="strict")  # type: ignore[no-any-return]


def read_parquet_with_duckdb(place: Path, table: Table) -> list[dict[str, Any]]:
    return _duckdb(duckdb.connect(), f"'{place / table.name}.parquet'")


def read_duckdb(place: Path, table: Table) -> list[dict[str, Any]]:
    with duckdb.connect(str(place / "kraft.duckdb"), read_only=True) as connection:
        return _duckdb(connection, table.name)


def _duckdb(connection: Any, name: str) -> list[dict[str, Any]]:
    found = connection.execute(f"SELECT * FROM {name}")
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def read_jsonl(place: Path, table: Table) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (place / f"{table.name}.jsonl").read_text(encoding="utf-8").splitlines()]


def read_csv(place: Path, table: Table) -> list[dict[str, Any]]:
    with (place / f"{table.name}.csv").open(encoding="utf-8", newline="") as stream:
        text = stream.read()
    found = []
    for record in csv.DictReader(text.splitlines(keepends=True), strict=True):
        found.append({field.name: from_text(record[field.name], field.type) for field in table.fields})
    # Python's reader cannot tell an empty string from null: DuckDB can.
    for row, exact in zip(found, _csv_with_duckdb(place, table), strict=True):
        row |= {name: "" for name in row if exact[name] == ""}
    return found


def _csv_with_duckdb(place: Path, table: Table) -> list[dict[str, Any]]:
    options = "header = true, all_varchar = true, nullstr = '', allow_quoted_nulls = false, delim = ',', quote = '\"'"
    return _duckdb(duckdb.connect(), f"read_csv('{place / table.name}.csv', {options})")


def from_text(text: str, declared: Type) -> Any:
    if text == "":
        return None
    if not isinstance(declared, str):
        return json.loads(text)
    kinds: dict[str, Callable[[str], Any]] = {"string": str, "boolean": "true".__eq__, "float64": float}
    return kinds.get(declared, int)(text)


def read_sqlite(place: Path, table: Table) -> list[dict[str, Any]]:
    connection = sqlite3.connect(place / "kraft.sqlite")
    try:
        found = connection.execute(f"SELECT * FROM {table.name}")
        names = [column[0] for column in found.description]
        kinds = {field.name: field.type for field in table.fields}
        return [{name: from_sqlite(item, kinds[name]) for name, item in zip(names, row, strict=True)} for row in found]
    finally:
        connection.close()


def from_sqlite(item: Any, declared: Type) -> Any:
    if item is None or not (declared == "boolean" or not isinstance(declared, str)):
        return item
    return bool(item) if declared == "boolean" else json.loads(item)


READERS: list[tuple[str, Read]] = [
    ("parquet", read_parquet), ("parquet", read_parquet_with_duckdb), ("jsonl", read_jsonl), ("csv", read_csv),
    ("sqlite", read_sqlite), ("duckdb", read_duckdb),
]  # fmt: skip


def exact(session: Session, table: Table) -> list[dict[str, Any]]:
    made = table.rows(session, session.image, None)
    return [{field.name: row.get(field.name) for field in table.fields} for row in made]


def written(fmt: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a format makes of rows: CSV escapes text, the others hold all exactly."""
    if fmt != "csv":
        return rows
    return [{name: escape.csv(item) if isinstance(item, str) else item for name, item in row.items()} for row in rows]


@pytest.mark.parametrize(("fmt", "read"), READERS, ids=[f"{fmt}-{read.__name__}" for fmt, read in READERS])
class TestRoundTrip:
    @pytest.mark.parametrize(
        "node", [Path(demo_directory()), *(one for one in recorded() if "broker" in one.name)], ids=node_name
    )
    def test_recorded(self, node: Path, tmp_path: Path, fmt: str, read: Read) -> None:
        session = opened(node / METADATA_DIRECTORY)
        told = {row["table"]: row["rows"] for row in rows(session, f"export --format {fmt} {tmp_path}/out")}
        for name, table in tables().items():
            expected = written(fmt, exact(session, table))
            assert read(tmp_path / "out", table) == expected, name
            assert told[name] == len(expected)

    def test_hard_values(self, tmp_path: Path, fmt: str, read: Read) -> None:
        session = hard(tmp_path)
        run(session, f"export --format {fmt} {tmp_path}/out")
        for name, table in tables().items():
            assert read(tmp_path / "out", table) == written(fmt, exact(session, table)), name

    def test_empty_tables_have_their_columns(self, tmp_path: Path, fmt: str, read: Read) -> None:
        session = cluster.cluster(tmp_path / "source", cluster.topic(1, "t"))
        run(session, f"export --format {fmt} {tmp_path}/out")
        for table in tables().values():
            read(tmp_path / "out", table)
        assert read(tmp_path / "out", tables()["acls"]) == []
        if fmt == "csv":
            assert (tmp_path / "out" / "users.csv").read_text() == "name,mechanism,iterations\n"


def hard(folder: Path) -> Session:
    """Extreme numbers, empty and odd text, empty lists and objects."""
    texts = ["", " ", "a,b", 'q"uote', "line\nend", "=1+1", "\u4e2d\u6587", "null", "1", "-", "tab\there", "\r"]
    values = [cluster.topic(1, "t"), cluster.partition(1, 0, [2**31 - 1], [], -1, eligibleLeaderReplicas=[0])]
    for number, text in enumerate(texts):
        values.append(cluster.config(cluster.GROUP, text, "consumer.session.timeout.ms", text))
        values.append(value("CLIENT_QUOTA", entity=[{"entityType": "user", "entityName": text}], key="k",
                            value=[0.1, -0.0, 1e308, 2.0**53][number % 4], remove=False))  # fmt: skip
    big = {"issueTimestamp": 2**63 - 1, "maxTimestamp": -(2**63), "expirationTimestamp": 2**53 + 1}
    values.append(value("DELEGATION_TOKEN", owner="User:a", requester="User:b", renewers=[], tokenId="x", **big))
    values.append(value("ACCESS_CONTROL_ENTRY", id=uuid(5), resourceType=2, resourceName="a\x1b[31m", patternType=3,
                        principal="User:*", host="*", operation=3, permissionType=3))  # fmt: skip
    return cluster.cluster(folder / "source", *values)


HOSTILE = [
    "=1+1",
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\uff1d1",
    "\x1b[31mred",
    "\u202egnp.exe",
    "a\u200bb",
]


def hostile(folder: Path) -> Session:
    """A cluster whose names and values are attacks on spreadsheets and terminals."""
    values = [value("CLIENT_QUOTA", entity=[{"entityType": "user", "entityName": text}], key="k", value=1.0,
                    remove=False) for text in HOSTILE]  # fmt: skip
    values += [cluster.config(cluster.GROUP, text, "consumer.session.timeout.ms", text) for text in HOSTILE]
    return cluster.cluster(folder / "source", *values)


def test_csv_has_no_formula_and_no_escape_sequence(tmp_path: Path) -> None:
    session = hostile(tmp_path)
    run(session, f"export --format csv {tmp_path}/out")
    for name in ("quotas", "configs"):
        raw = (tmp_path / "out" / f"{name}.csv").read_text(encoding="utf-8")
        assert not re.search("[\x1b\u202e\u200b]", raw)
        fields = [field for record in csv.reader(io.StringIO(raw)) for field in record]
        assert [field for field in fields if field[:1] in tuple("=+-@\t\r\uff1d")] == []
        assert sum(field.startswith("'") for field in fields) >= 6


def test_csv_is_byte_for_byte_that_of_an_answer(tmp_path: Path) -> None:
    for session in (hostile(tmp_path / "a"), hard(tmp_path / "b")):
        run(session, f"export --format csv --force {tmp_path}/out")
        for name in ("quotas", "configs", "acls", "tokens"):
            columns = ",".join(field.name for field in tables()[name].fields)
            shown = "".join(render(run(session, f"{name} --columns {columns}"), "csv"))
            assert (tmp_path / "out" / f"{name}.csv").read_text(encoding="utf-8") == shown, name


def test_json_lines_hide_nothing_and_obey_nothing(tmp_path: Path) -> None:
    session = hostile(tmp_path)
    run(session, f"export --format jsonl {tmp_path}/out")
    raw = (tmp_path / "out" / "quotas.jsonl").read_text(encoding="utf-8")
    assert not re.search("[\x1b\u202e\u200b]", raw)
    assert sorted(json.loads(line)["user"] for line in raw.splitlines()) == sorted(HOSTILE)


def test_lists_are_lists_and_64_bits_are_exact_in_sql_of_the_file(tmp_path: Path) -> None:
    run(hard(tmp_path), f"export --format duckdb {tmp_path}/out")
    with duckdb.connect(str(tmp_path / "out" / "kraft.duckdb"), read_only=True) as connection:
        ask = connection.execute
        assert ask("SELECT issueTimestamp, maxTimestamp, expiryTimestamp FROM tokens").fetchall() == [
            (2**63 - 1, -(2**63), 2**53 + 1)
        ]
        assert ask("SELECT unnest(replicas), len(isr), elr[1] FROM partitions").fetchall() == [(2**31 - 1, 0, 0)]
        assert ask(
            "SELECT comment FROM duckdb_columns() WHERE table_name = 'topics' AND column_name = 'name'"
        ).fetchall()
        kinds = dict(
            ask("SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'partitions'").fetchall()
        )
    assert kinds["replicas"] == "INTEGER[]"


def test_a_lone_surrogate_goes_wherever_it_can(tmp_path: Path) -> None:
    """A name that is no UTF-8 in the log: JSON can say it, CSV shows it, others have a mark."""
    raw = cluster.config(cluster.GROUP, "okXX", "consumer.session.timeout.ms", "1").replace(b"okXX", b"ok\xff\xfe")
    session = cluster.cluster(tmp_path / "source", raw)
    for fmt, read in READERS:
        run(session, f"export --format {fmt} {tmp_path}/{read.__name__}")
        (row,) = read(tmp_path / read.__name__, tables()["configs"])
        escaped = {"jsonl": "ok\udcff\udcfe", "csv": r"ok\udcff\udcfe"}
        assert row["resourceName"] == escaped.get(fmt, "ok??"), fmt


class TestDirectory:
    def test_one_that_holds_something_needs_force(self, sample: Session, tmp_path: Path) -> None:
        (tmp_path / "mine.txt").write_text("mine")
        (tmp_path / "users.csv").write_text("old")
        with pytest.raises(CommandError) as raised:
            run(sample, f"export --format csv {tmp_path}")
        assert "--force" in (raised.value.hint or "")
        assert sorted(one.name for one in tmp_path.iterdir()) == ["mine.txt", "users.csv"]
        run(sample, f"export --format csv --force --table users {tmp_path}")
        assert (tmp_path / "mine.txt").read_text() == "mine"
        assert (tmp_path / "users.csv").read_text().startswith("name,")
        assert sorted(one.name for one in tmp_path.iterdir()) == ["mine.txt", "users.csv"]

    def test_an_empty_one_is_fine_and_parents_are_made(self, sample: Session, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        run(sample, f"export --format jsonl {tmp_path}/empty")
        run(sample, f"export --format jsonl {tmp_path}/a/b/c")
        assert len(list((tmp_path / "empty").iterdir())) == len(list((tmp_path / "a/b/c").iterdir())) == len(tables())
        for path in [tmp_path / "a/b/c", *(tmp_path / "a/b/c").iterdir()]:
            assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), (
                "names and ACLs are for the owner"
            )

    @pytest.mark.parametrize("place", ["{source}", "{source}/out", "{source}/../out", "{link}/out"])
    def test_the_source_is_never_written_to(self, tmp_path: Path, place: str) -> None:
        source = cluster.write(tmp_path / "kafka", cluster.topic(1, "t"))
        (tmp_path / "kafka" / "meta.properties").write_text("node.id=1\n")
        (tmp_path / "link").symlink_to(source)
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(CommandError) as raised:
            run(opened(source), f"export --force --format csv {place.format(source=source, link=tmp_path / 'link')}")
        assert "source" in raised.value.message
        assert sorted(tmp_path.rglob("*")) == before

    @pytest.mark.parametrize("fmt", EXPORT_FORMATS)
    def test_an_interruption_leaves_what_was_there(
        self, sample: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fmt: str
    ) -> None:
        """In the middle of a table, when files of others are written already."""
        run(sample, f"export --format {fmt} {tmp_path}/out")
        before = {one: one.read_bytes() for one in sorted((tmp_path / "out").iterdir())}
        table = tables()["topics"]

        def interrupted(session: Session, image: Image, wanted: Any) -> Any:
            yield from list(table.rows(session, image, wanted))[:3]
            raise KeyboardInterrupt

        monkeypatch.setitem(tables_module._TABLES, "topics", table._replace(rows=interrupted))
        for line in (f"export --format {fmt} --force {tmp_path}/out", f"export --format {fmt} {tmp_path}/new"):
            with pytest.raises(KeyboardInterrupt):
                run(sample, line)
        assert list(tmp_path.iterdir()) == [tmp_path / "out"]
        assert {one: one.read_bytes() for one in sorted((tmp_path / "out").iterdir())} == before

    def test_a_failure_leaves_nothing(self, sample: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def fails(self: Any, table: Table, made: Any) -> str:
            if table.name == "topics":
                raise OSError(28, "No space left on device")
            return "x"

        monkeypatch.setattr(export_files.JsonLines, "write", fails)
        with pytest.raises(CommandError) as raised:
            run(sample, f"export --format jsonl {tmp_path}/out")
        assert "No space left" in raised.value.message
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("line", ["export out", "export --format xml out", "export --format csv --table nope out"])
    def test_wrong_words(self, sample: Session, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(UsageError):
            run(sample, line)
        assert list(tmp_path.iterdir()) == []

    def test_a_file_in_its_place(self, sample: Session, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        for line in (f"{tmp_path}/file", f"--force {tmp_path}/file/below", f"{tmp_path}/file/far/below"):
            with pytest.raises(CommandError) as raised:
                run(sample, f"export --format csv {line}")
            assert "directory" in raised.value.message
        with pytest.raises(UsageError):
            run(sample, 'export --format csv ""')
        assert (tmp_path / "file").read_text() == "x"


def test_a_table_that_the_source_does_not_tell_is_left_out(sample: Session, tmp_path: Path) -> None:
    session = Session(sample.source)
    missing: Mapping[tuple[str, ...], str] = {("acls",): "not available from brokers: refused"}
    image = Image({**sample.image.tables, MISSING: missing}, sample.image.provenance)
    session.__dict__["loaded"] = sample.loaded._replace(image=image)
    told = [row["table"] for row in rows(session, f"export --format csv {tmp_path}/out")]
    assert told == [name for name in tables() if name != "acls"]
    assert "acls" in session.remarks[0]
    assert not (tmp_path / "out" / "acls.csv").exists()


@pytest.mark.parametrize("fmt", EXPORT_FORMATS)
def test_secrets_are_hidden_unless_asked_for(tmp_path: Path, fmt: str) -> None:
    secret = "canary-of-a-secret"
    session = cluster.cluster(
        tmp_path / "source", cluster.topic(1, "t"), cluster.config(cluster.TOPIC, "t", "made.up", secret),
        cluster.config(cluster.BROKER, "", "ssl.key.password", secret),
    )  # fmt: skip
    readers = dict(READERS)
    for words, seen in (("", False), ("--show-secrets", True)):
        place = tmp_path / f"out{words}"
        run(session, f"export --format {fmt} {words} {place}")
        text = json.dumps([readers[fmt](place, table) for table in tables().values()])
        assert (secret in text) == seen


@pytest.mark.parametrize("form", EXPORT_FORMATS)
def test_a_full_disk_is_the_users_trouble_and_leaves_nothing(form: str, tmp_path: Path) -> None:
    """In a process of its own: a limit on the size of files stands in for the disk."""
    program = (
        "import resource, sys; from kshell.cli import main;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2048, resource.RLIM_INFINITY));"
        f"sys.exit(main(['--demo', 'export', '--format', '{form}', '{tmp_path / 'out'}']))"
    )
    ended = subprocess.run(
        [sys.executable, "-B", "-c", program], check=False, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 2, ended.stderr
    assert "fault of kshell" not in ended.stderr
    assert "Traceback" not in ended.stderr
    assert os.listdir(tmp_path) == []


def test_the_name_may_say_the_format(sample: Session, tmp_path: Path) -> None:
    told = rows(sample, f"export {tmp_path}/out.csv --table users")
    assert [row["file"] for row in told] == ["users.csv"]
    assert "is a directory" in sample.remarks[-1]
    with pytest.raises(UsageError, match="--format is missing"):
        run(sample, f"export {tmp_path}/out --table users")
    with pytest.raises(UsageError, match=r"--format is missing, and the ending \.xlsx is not that of a format"):
        run(sample, f"export {tmp_path}/out.xlsx --table users")


@pytest.mark.parametrize("name", ["out.sqlite", "out.db", "out.duckdb"])
def test_a_database_is_the_file_that_is_named(sample: Session, tmp_path: Path, name: str) -> None:
    target = tmp_path / name
    told = rows(sample, f"export {target} --table users --table topics")
    assert {row["file"] for row in told} == {name}
    assert os.listdir(tmp_path) == [name]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    connect = duckdb.connect if name.endswith("duckdb") else sqlite3.connect
    with contextlib.closing(connect(str(target))) as connection:
        assert connection.execute("SELECT count(*) FROM users").fetchone() == (4,)
    before = target.read_bytes()
    with pytest.raises(CommandError, match="exists"):
        run(sample, f"export {target} --table users")
    assert target.read_bytes() == before
    run(sample, f"export {target} --table users --force")
    with contextlib.closing(connect(str(target))) as connection, pytest.raises((duckdb.Error, sqlite3.Error)):
        connection.execute("SELECT * FROM topics")
    told = rows(sample, f"export {tmp_path}/out.csv --format sqlite --table users")
    assert (told[0]["file"], os.listdir(tmp_path / "out.csv")) == ("kraft.sqlite", ["kraft.sqlite"])
    (tmp_path / "folder.sqlite").mkdir()
    with pytest.raises(CommandError, match="is a directory"):
        run(sample, f"export {tmp_path}/folder.sqlite")


def test_a_file_in_the_place_of_the_directory_is_named(sample: Session, tmp_path: Path) -> None:
    """--force would not help there."""
    file = tmp_path / "tables"
    file.write_text("mine")
    for force in ("", " --force"):
        with pytest.raises(CommandError, match="is not a directory") as raised:
            run(sample, f"export --format jsonl{force} {file}")
        assert raised.value.hint is not None and "--force" not in raised.value.hint
    assert file.read_text() == "mine"
