"""The format ``kraft`` in a Spark session: the same rows as ``dump``, options, schemas, conditions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.sources.directory.files import METADATA_DIRECTORY
from tests.builders import FIXTURES, batch, recorded, value, write_log
from tests.notebooks import sparks
from tests.spark.reading import COLUMNS, dumped, rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]
EVERY = f"{FIXTURES}/*/*/{METADATA_DIRECTORY}"
PUSHING = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on this machine alone, which knows the format."""
    with sparks.session(tmp_path_factory.mktemp("spark")) as session:
        import kshell.spark

        kshell.spark.register(session)
        yield session


def frame(spark: Any, *paths: Path | str, **options: str) -> Any:
    """What a read gives."""
    return spark.read.format("kraft").options(**options).load([str(path) for path in paths])


def test_all_directories_in_one_read_are_what_dump_prints(spark: Any) -> None:
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in frame(spark, EVERY).select("file", *COLUMNS).collect():
        found.setdefault(os.path.dirname(row.file), []).append(tuple(row)[1:])
    assert found == {str(node / METADATA_DIRECTORY): dumped(node)[0] for node in recorded()}


def test_large_files_split_and_keep_their_order(spark: Any) -> None:
    node = FIXTURES / "4.2.1-rolled/controller-3002"
    made = frame(spark, node, sliceBytes="3000")
    assert made.rdd.getNumPartitions() > 10
    assert [tuple(row) for row in made.select(*COLUMNS).collect()] == dumped(node)[0]


@pytest.mark.parametrize("view", ["files", "quarantine", "REGISTER_BROKER", "PARTITION", "KRAFT_VOTERS", "NO_OP"])
def test_other_views_are_what_is_read_without_spark(spark: Any, view: str) -> None:
    made = frame(spark, f"{FIXTURES}/4.3.1*/*", view=view, snapshots="all")
    expected = rows(f"{FIXTURES}/4.3.1*/*", view=view, snapshots="all")
    assert [row.asDict(recursive=True) for row in made.collect()] == expected
    assert all(field.metadata["comment"] for field in made.schema.fields)


def test_damage_is_data(spark: Any, tmp_path: Path) -> None:
    whole, cut, torn = batch([value("NO_OP")] * 3), batch([value("TOPIC")[:5]], 6), batch([value("NO_OP")], 7)[:70]
    cluster = tmp_path / "c"
    write_log(cluster, whole, b"\xff" + batch([value("NO_OP")] * 3, 3)[1:], cut, torn)
    assert [row.offset for row in frame(spark, cluster).collect()] == [0, 1, 2, 6]
    kept = [(row.kind, row.position) for row in frame(spark, cluster, view="quarantine").collect()]
    third = 2 * len(whole)
    assert kept == [("batch", len(whole)), ("torn", third + len(cut)), ("record", third)]
    assert frame(spark, cluster, view="files").first().isDamaged


def test_one_path_several_paths_and_no_row(spark: Any) -> None:
    one, two = FIXTURES / "4.3.1/broker-0", FIXTURES / "3.3.2/broker-0"
    counts = [spark.read.format("kraft").load(str(path)).count() for path in (one, two)]
    assert frame(spark, one, two).count() == sum(counts)
    assert frame(spark, one, clusters="another").count() == 0


def test_columns_and_a_schema_of_the_callers(spark: Any) -> None:
    node = FIXTURES / "4.3.1/broker-0"
    expected = [(row[3], row[0]) for row in dumped(node)[0]]
    assert [tuple(row) for row in frame(spark, node, columns="type,offset").collect()] == expected
    reader = spark.read.format("kraft").schema("type string, offset bigint")
    assert [tuple(row) for row in reader.load(str(node)).collect()] == expected
    for schema in ("offset int", "offsets bigint"):
        with pytest.raises(Exception, match="UsageError: offset"):
            spark.read.format("kraft").schema(schema).load(str(node)).count()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"vieww": "files"}, "no such option"),
        ({"view": "TOPICS_"}, "no such view"),
        ({"columns": "offset,nope"}, "hint: it has clusterId"),
        ({"path": "/nowhere"}, "no such file or directory"),
    ],
)
def test_what_is_not_understood_is_said(spark: Any, options: dict[str, str], said: str) -> None:
    with pytest.raises(Exception, match=said):
        spark.read.format("kraft").options(**{"path": EVERY, **options}).load().count()


def test_conditions_narrow_what_is_read_where_the_session_allows_it(spark: Any) -> None:
    where = "type = 'TOPIC_RECORD' and offset > 100 and offset <= 300 and clusterId is not null"
    expected = frame(spark, EVERY).where(where).collect()
    assert expected
    spark.conf.set(PUSHING, "true")
    try:
        assert frame(spark, EVERY, pushFilters="true").where(where).collect() == expected
        one = f"{where} and type in ('TOPIC_RECORD', 'X') and clusterId = '{expected[0].clusterId}' and offset = 104"
        pushed = frame(spark, EVERY, pushFilters="true").where(one).collect()
        assert pushed == frame(spark, EVERY).where(one).collect()
        node, late = FIXTURES / "4.2.1-rolled/controller-3002", "offset >= 500 and timestampMs > 0"
        whole, narrowed = (
            frame(spark, node, sliceBytes="3000", pushFilters=pushing).where(late) for pushing in ("false", "true")
        )
        assert narrowed.collect() == whole.collect()
        assert 0 < narrowed.rdd.getNumPartitions() < whole.rdd.getNumPartitions()
    finally:
        spark.conf.unset(PUSHING)


def test_secrets_are_in_no_table_and_no_plan(spark: Any, tmp_path: Path) -> None:
    config = value("CONFIG", resourceType=4, resourceName="1", name="ssl.key.password", value="hunter2")
    write_log(tmp_path, batch([config, config + b"!"]))
    for view in ("records", "quarantine", "files", "CONFIG"):
        made = frame(spark, tmp_path, view=view)
        assert "hunter2" not in str(made.collect())
        assert "hunter2" not in made._jdf.queryExecution().toString()
