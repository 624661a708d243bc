"""Columns derive from the one declaration of each record, and hold what ``data`` says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kshell.errors import UsageError
from kshell.history.records import type_names
from kshell.metadata.records import record_types
from kshell.spark.schemas import column_name, fields_of, record_fields, view_name
from tests.builders import FIXTURES, batch, kind, value, write_log
from tests.spark.reading import needs_arrow, rows


@pytest.mark.parametrize("name", type_names())
def test_every_type_has_a_view_without_double_columns(name: str) -> None:
    names = [field.name for field in fields_of(view_name(name))]
    assert len(names) == len(set(names))
    assert names[-1] == "unknownTaggedFields"


@pytest.mark.parametrize("word", ["topic", "Topic_Record", "TOPIC-RECORD"])
def test_a_view_is_named_like_a_type_of_dump(word: str) -> None:
    assert view_name(word) == "TOPIC_RECORD"


def test_an_unknown_view_proposes_some() -> None:
    with pytest.raises(UsageError) as error:
        view_name("PARTITIONS")
    assert "PARTITION_RECORD" in str(error.value.hint)


def test_a_field_with_a_name_that_is_taken() -> None:
    assert [field.name for field in record_fields("FENCE_BROKER_RECORD")][:2] == ["id", "dataEpoch"]


def test_every_column_says_something() -> None:
    for view in ("records", "files", "quarantine", *type_names()):
        assert all(field.doc for field in fields_of(view)), view


def test_secret_fields_are_text_whatever_they_were() -> None:
    for made in record_types().values():
        declared = {field.name: field.type for field in record_fields(made.name)}
        assert all(declared[column_name(name)] == "string" for name in made.schema.secrets)


@needs_arrow
@pytest.mark.parametrize("release", ["3.3.2", "4.3.1", "4.3.1-more"])
def test_typed_columns_hold_what_data_says(release: str) -> None:
    path = f"{FIXTURES}/{release}/*"
    by_type: dict[str, list[dict[str, Any]]] = {}
    for row in rows(path, snapshots="all"):
        by_type.setdefault(row["type"], []).append(row)
    assert len(by_type) > 10
    for name, expected in by_type.items():
        typed = rows(path, snapshots="all", view=name)
        assert [(row["file"], row["offset"], row["version"]) for row in typed] == [
            (row["file"], row["offset"], row["version"]) for row in expected
        ]
        names = [field.name for field in record_fields(name)]
        for row, whole in zip(typed, expected, strict=True):
            data = {column_name(key): below for key, below in json.loads(whole["data"]).items()}
            assert without_null({key: row[key] for key in names}) == without_null(data)


@needs_arrow
def test_secrets_and_unknown_tags(tmp_path: Path) -> None:
    scram = value("USER_SCRAM_CREDENTIAL", name="u", mechanism=1, salt=b"s", storedKey=b"k", serverKey=b"q")
    config = value("CONFIG", resourceType=4, resourceName="1", name="ssl.key.password", value="hunter2")
    tagged = value("TOPIC", name="t", topicId=bytes(16))[:-1] + b"\x01\x05\x02\xab\xcd"
    write_log(tmp_path, batch([scram, config, tagged, scram + b"!"]))
    (row,) = rows(tmp_path, view="USER_SCRAM_CREDENTIAL")
    assert (row["salt"], row["storedKey"], row["serverKey"]) == ("[redacted]",) * 3
    assert rows(tmp_path, view="CONFIG")[0]["value"] == "[redacted]"
    assert rows(tmp_path, view="CONFIG", showSecrets="true")[0]["value"] == "hunter2"
    assert json.loads(rows(tmp_path, view="TOPIC")[0]["unknownTaggedFields"]) == [{"tag": 5, "data": "abcd"}]
    undecoded = rows(tmp_path)[3]
    assert undecoded["raw"] is None and "[redacted]" in undecoded["data"] and "too many" in undecoded["reason"]
    assert rows(tmp_path, showSecrets="true")[3]["raw"] == scram + b"!"
    assert rows(tmp_path, view="quarantine")[0]["raw"] is None


def test_kinds_of_the_declarations() -> None:
    declared = {field.name: field.type for field in record_fields(kind("REGISTER_BROKER").name)}
    assert declared["brokerId"] == "int32"
    assert declared["endPoints"] == [{"name": "string", "host": "string", "port": "int32", "securityProtocol": "int16"}]


def without_null(value: Any) -> Any:
    """A value without what is null, or missing, at any depth; in a typed column both are null."""
    if isinstance(value, dict):
        return {key: without_null(below) for key, below in value.items() if below is not None}
    return [without_null(below) for below in value] if isinstance(value, list) else value
