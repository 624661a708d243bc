"""Options: read once, checked, in any case."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.errors import UsageError
from kshell.spark.options import parse


def test_all_of_them() -> None:
    made = parse(
        {
            "PATHS": '["/a", "file:///b"]', "View": "topic", "types": "TOPIC, partition", "since": "5",
            "until": "1970-01-01T00:00:01Z", "clusters": "x", "columns": "name,offset", "snapshots": "ALL",
            "showsecrets": "true", "slicebytes": "100", "parallelism": "3", "pushfilters": "true",
        }
    )  # fmt: skip
    assert made.paths == ("/a", "/b") and made.view == "TOPIC_RECORD"
    assert made.narrowing.types == frozenset(("TOPIC_RECORD", "PARTITION_RECORD"))
    assert made.narrowing.clusters == frozenset("x")
    assert (made.narrowing.since.offset, made.narrowing.until.time_ms) == (5, 1000)
    assert [field.name for field in made.fields()] == ["name", "offset"]
    assert made.show_secrets and made.push_filters
    assert (made.slice_bytes, made.parallelism, made.snapshots) == (100, 3, "all")


@pytest.mark.parametrize(
    "given",
    [
        {"path": "/a", "typs": "TOPIC"},
        {"path": "/a", "types": "TOPICS_"},
        {"path": "/a", "types": " , "},
        {"path": "/a", "view": "everything"},
        {"path": "/a", "view": "UNKNOWN_77"},
        {"path": "/a", "since": "someday"},
        {"path": "/a", "snapshots": "some"},
        {"path": "/a", "showSecrets": "yes"},
        {"path": "/a", "sliceBytes": "0"},
        {"path": "/a", "sliceBytes": "16m"},
        {"path": "/a", "parallelism": "-1"},
        {"path": "ftp://host/a"},
        {"path": "s3a://key:secret@bucket/a"},
        {"paths": "/a,/b"},
        {"paths": '"/a"'},
        {"paths": "[1]"},
        {},
    ],
)
def test_what_is_not_understood(given: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        parse(given)


def test_a_column_that_is_named_twice() -> None:
    with pytest.raises(UsageError, match="offset: a column that is named twice"):
        parse({"path": "/a", "columns": "offset,type,offset"}).fields()


def test_an_unknown_column() -> None:
    with pytest.raises(UsageError, match="no such column") as error:
        parse({"path": "/a", "columns": "offset,wher"}).fields()
    assert "clusterId" in str(error.value.hint)


def test_a_colon_in_a_path(tmp_path: Path) -> None:
    odd = tmp_path / "s3a:"
    odd.mkdir()
    assert parse({"path": f"{odd}/x"}).paths == (f"{odd}/x",)
