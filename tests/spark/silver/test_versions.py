"""Silver against the shell: recorded directories and made-up logs, as of any offset, at once and in portions."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kshell.engine.session import Session
from kshell.history.catalog import past_tables
from kshell.history.versions import history_name
from kshell.metadata.image import EMPTY
from kshell.sources.choose import demo_directory
from kshell.sources.directory.source import DirectorySource
from kshell.spark import silver
from kshell.spark.schemas import RECORD_FIELDS, spark_schema
from kshell.tables.declaration import tables
from tests.builders import recorded
from tests.notebooks import sparks
from tests.spark.silver import made_up
from tests.spark.silver.replaying import (
    Cluster,
    ReplayRange,
    Rows,
    at,
    by_records,
    cluster,
    listed,
    records,
    told,
    with_gaps,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]
POINTS = 200
MADE_UP = 16
PORTIONS = 2
NAMES = sorted(silver.tables())
_NEVER = 1 << 40


class Held(NamedTuple):
    """What all tests look at. ``points``: (cluster, offset, name); ``versions``: rows by table."""

    clusters: dict[str, Cluster]
    points: list[tuple[str, int, str]]
    versions: Mapping[str, Any]
    valid: Mapping[str, Any]
    in_portions: Mapping[str, Rows]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on this machine alone."""
    with sparks.session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="module")
def held(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Held:
    """All clusters in one run: what Spark needs for a query is the same for one and for many."""
    clusters = _clusters(tmp_path_factory.mktemp("logs"))
    rows = _frame(
        spark, RECORD_FIELDS, [tuple(row[field.name] for field in RECORD_FIELDS) for row in records(clusters)]
    ).cache()
    points = _points(clusters)
    asked = spark.createDataFrame(points, "clusterId string, at long, point string")
    versions = _advance(spark, rows, rows, [era for one in clusters for era in one.eras], None)[0]
    valid = {
        name: found.join(asked, "clusterId")
        .where("validFromOffset <= at AND (validToOffset IS NULL OR validToOffset > at)")
        .drop("clusterId")
        .withColumnRenamed("point", "clusterId")
        .localCheckpoint()
        for name, found in versions.items()
    }
    return Held({one.name: one for one in clusters}, points, versions, valid, _in_portions(spark, rows, clusters))


def _clusters(folder: Path) -> list[Cluster]:
    for seed in range(MADE_UP):
        made_up.write(folder / str(seed), seed, 110)
    nodes = [node for node in recorded() if node.parent.name == "3.9.2"]
    return [
        *(cluster(node) for node in (*recorded(), Path(demo_directory()))),
        *(with_gaps(node, f"gaps in {node}") for node in nodes),
        *(cluster(folder / str(seed), f"made up {seed}") for seed in range(MADE_UP)),
        cluster(made_up.write_late(folder / "late"), "late"),
    ]


def _points(clusters: list[Cluster]) -> list[tuple[str, int, str]]:
    """Any offsets that a state is known of, and the last of each cluster."""
    chosen = random.Random(7)
    found = {(one.name, one.eras[-1][3] - 1) for one in clusters}
    while len(found) < POINTS + len(clusters):
        name, _, since, to = chosen.choice(chosen.choice(clusters).eras)
        found.add((name, chosen.randrange(max(since - 1, 0), to)))
    return [(name, offset, f"{name} @ {offset}") for name, offset in sorted(found)]


def _session(node: Path) -> Session:
    return Session(DirectorySource(str(node)))


def _frame(spark: Any, fields: Any, rows: list[Any]) -> Any:
    return spark.createDataFrame(rows, spark_schema(fields))


def _advance(
    spark: Any, rows: Any, control_records: Any, eras: list[ReplayRange], before: Mapping[str, Any] | None
) -> tuple[dict[str, Any], dict[str, int]]:
    """(versions by table, cluster -> where a transaction is open at the end)."""
    from kshell.spark.silver.events import RANGE_FIELDS, effective, open_transactions_of

    frame = _frame(spark, RANGE_FIELDS, eras)
    events = effective(
        rows, frame, control_records
    ).localCheckpoint()  # a plan of its own for each table: it is looked at often
    known = before or {name: _frame(spark, table.fields, []) for name, table in silver.tables().items()}
    made = {name: table.versions(events, known).localCheckpoint() for name, table in silver.tables().items()}
    return made, {row.clusterId: row.offset for row in open_transactions_of(rows, frame).collect()}


def _in_portions(spark: Any, rows: Any, clusters: list[Cluster]) -> dict[str, Rows]:
    """The rows of all tables after as many steps, each of which begins where the one before ended: anywhere."""
    chosen, before = random.Random(11), None
    found: dict[str, list[Any]] = {name: [] for name in NAMES}
    ends = {one.name: sorted(chosen.choices(range(one.eras[-1][3]), k=PORTIONS - 1)) for one in clusters}
    reached, opened = dict.fromkeys(ends, -1), dict.fromkeys(ends, _NEVER)
    for portion in range(PORTIONS):
        eras: list[ReplayRange] = []
        for one in clusters:
            to = (*ends[one.name], _NEVER)[portion]
            eras += _between(one.eras, reached[one.name], to)
            reached[one.name] = max(reached[one.name], min(to, one.eras[-1][3]))
        given = spark.createDataFrame(
            [(name, min(since, opened[name])) for name, _, since, _ in eras], "clusterId string, _from long"
        )
        given = given.groupBy("clusterId").agg({"_from": "min"}).withColumnRenamed("min(_from)", "_from")
        new = rows.join(given, "clusterId").where("isSnapshot OR offset >= _from").drop("_from")
        made, still = _advance(spark, new, rows, eras, before)
        opened |= {name: still.get(name, _NEVER) for name, *_ in eras}
        last = portion == PORTIONS - 1
        for name in NAMES:
            closed = made[name] if last else made[name].where("NOT isCurrent")
            found[name] += [tuple(row.asDict(recursive=True).values()) for row in closed.collect()]
        before = {name: frame.where("isCurrent") for name, frame in made.items()}
    return {name: listed(lines) for name, lines in found.items()}


def _between(eras: tuple[ReplayRange, ...], since: int, to: int) -> list[ReplayRange]:
    """What of the eras is from one offset to before another; -1 is the beginning."""
    parts: list[ReplayRange] = []
    for name, base, first, end in eras:
        if end <= since or first >= to:
            continue
        goes_on = first < since
        parts.append((name, None if goes_on else base, since if goes_on else first, min(end, to)))
    return parts


@pytest.mark.parametrize("name", NAMES)
def test_as_of_any_offset_and_now_is_what_the_shell_says(held: Held, name: str) -> None:
    from kshell.spark import views

    found: dict[str, list[Any]] = {point: [] for *_, point in held.points}
    for row in views.shell_table(name, held.valid).collect():
        found[row.clusterId].append(tuple(row.asDict(recursive=True).values())[1:])
    wrong, rows = [], 0
    for cluster_id, offset, point in held.points:
        one = held.clusters[cluster_id]
        session = by_records(one.node, offset) if name == "controllers" else at(one.node, offset)
        expected = told(session, name)
        rows += len(expected)
        if listed(found[point]) != expected and not (name == "controllers" and len(one.eras) > 1):
            wrong.append((point, listed(found[point]), expected))
    assert rows
    assert not wrong, wrong[0]


def test_controllers_are_those_of_the_shell_but_for_a_leader_that_only_a_file_beside_the_log_names(held: Held) -> None:
    from kshell.spark import views

    current = {"controllers": views.valid_at(held.versions["controllers"])}
    rows = [row.asDict(recursive=True) for row in views.shell_table("controllers", current).collect()]
    unnamed = 0
    for node in recorded():
        found = [row for row in rows if row["clusterId"] == str(node)]
        expected = [dict(row) for row in tables()["controllers"].rows(_session(node), EMPTY, None)]
        if not any(row["isLeader"] for row in found):
            unnamed += 1
            expected = [row | {"isLeader": False} for row in expected]
        names = [field.name for field in tables()["controllers"].fields]
        assert listed([row[name] for name in names] for row in found) == listed(
            [row.get(name) for name in names] for row in expected
        )
    assert unnamed < 5


@pytest.mark.parametrize("name", NAMES)
def test_the_tables_of_versions_that_the_shell_makes_have_the_same_rows(held: Held, name: str) -> None:
    table = past_tables()[history_name(name)]
    columns = [field.name for field in table.fields]
    assert columns == [field.name for field in silver.tables()[name].fields[1:]]
    found: dict[str, list[Any]] = {cluster_id: [] for cluster_id in held.clusters}
    for row in held.versions[name].collect():
        found[row.clusterId].append(tuple(row.asDict(recursive=True).values())[1:])
    wrong, rows = [], 0
    for one in held.clusters.values():
        if len(one.eras) == 1:  # of a log with gaps, the shell knows what is after the last of them
            made = table.rows(_session(one.node), EMPTY, None)
            expected = listed([row.get(column) for column in columns] for row in made)
            rows += len(expected)
            if listed(found[one.name]) != expected:
                wrong.append((one.name, listed(found[one.name]), expected))
    assert rows
    assert not wrong, (len(wrong), wrong[0])


@pytest.mark.parametrize("name", NAMES)
def test_records_that_come_in_portions_make_the_same_rows(held: Held, name: str) -> None:
    whole = listed(row.asDict(recursive=True).values() for row in held.versions[name].collect())
    assert held.in_portions[name] == whole


@pytest.mark.parametrize("name", NAMES)
def test_versions_of_a_key_follow_each_other(held: Held, name: str) -> None:
    table, last = silver.tables()[name], dict[Any, Any]()
    rows = held.versions[name]
    assert [(field.name, field.dataType) for field in rows.schema] == [
        (field.name, field.dataType) for field in spark_schema(table.fields)
    ]
    for row in sorted(rows.collect(), key=lambda row: row.validFromOffset):
        key = (row.clusterId, *(row[name] for name in table.keys))
        assert last.get(key, -1) is not None
        assert last.get(key, -1) <= row.validFromOffset
        assert row.isCurrent == (row.validToOffset is None) == (row.validToMs is None)
        assert row.isCurrent or row.validFromOffset < row.validToOffset
        last[key] = row.validToOffset
