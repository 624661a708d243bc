"""Views over silver: moments, and what is said of config keys. Their rows are compared in ``silver/test_versions``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kshell.errors import UsageError
from kshell.metadata.config_types import TABLE, known_key, known_types
from kshell.spark import silver
from kshell.spark.schemas import spark_schema
from tests.notebooks import sparks

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on this machine alone."""
    with sparks.session(tmp_path_factory.mktemp("spark")) as session:
        yield session


def test_the_rows_of_a_moment(spark: Any) -> None:
    from kshell.spark.views import valid_at

    versions = [
        ("c", "f", 1, 10, 1000, 20, 2000, False),
        ("c", "f", 2, 20, 2000, None, None, True),
        ("c", "g", 7, 12, 1200, 14, 1400, False),
        ("d", "g", 8, 5, 500, None, None, True),
    ]
    frame = spark.createDataFrame(versions, spark_schema(silver.tables()["features"].fields))

    def levels(**offsets: int) -> list[int]:
        found = valid_at(frame, offsets or None)
        assert found.columns == frame.columns
        return sorted(row.level for row in found.collect())

    assert levels() == levels(c=20, d=20) == [2, 8]
    assert levels(c=19) == levels(c=14, another=1) == [1]
    assert levels(c=12) == [1, 7]
    assert levels(c=9) == levels(another=30) == []
    assert levels(c=12, d=5) == [1, 7, 8]


def test_config_keys_have_the_types_that_the_shell_knows(spark: Any) -> None:
    from kshell.spark.views import with_facts

    keys = {(kind, name) for kind in TABLE for name in known_types(kind)}
    keys |= {("BROKER", f"listener.name.x.{name}") for name in known_types("BROKER")}
    keys |= {
        ("BROKER", "listener.name.x.plain.sasl.jaas.config"),
        ("BROKER", "listener.name.x"),
        ("BROKER", "no.such"),
        ("TOPIC", "listener.name.x.ssl.key.password"),
        ("BROKER_LOGGER", "root"),
    }
    rows = with_facts(spark.createDataFrame(sorted(keys), "resourceType string, name string")).collect()
    assert len(rows) == len(keys)
    for row in rows:
        known = known_key(row.resourceType, row.name)
        assert row.type == (known.type if known else None)
        assert row.isSensitive == (known.type == "PASSWORD" if known else None)


def test_a_table_that_silver_does_not_have() -> None:
    from kshell.spark.views import view_fields

    with pytest.raises(UsageError, match="provenance: no such view"):
        view_fields("provenance")
