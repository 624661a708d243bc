"""All tables of a warehouse. Bronze tables are declared here, silver and gold tables in packages of their own."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from kshell.errors import UsageError, did_you_mean
from kshell.spark import gold, schemas, silver
from kshell.spark.tables.expectations import (
    BREACH_FIELDS,
    Expectations,
    at_least,
    key,
    not_null,
    one_current,
    ordered,
)
from kshell.spark.tables.gold_table import IS_FINAL, PARTITIONS_RETAINED
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BRONZE, SILVER, GOLD, QUALITY = "bronze", "silver", "gold", "quality"
LAYERS = (BRONZE, SILVER, GOLD, QUALITY)
RECORDS, QUARANTINE, FILES, COPIES, CLUSTERS = "records", "quarantine", "files", "copies", "clusters"
CONTROL_RECORDS = "control_records"
BREACHES = "breaches"
IS_CURRENT = "isCurrent"
CLOSED, CURRENT = "closed", "current"
"""The two parts of some tables: rows that stay (ended versions, or final rows), and rows that steps replace."""
_CURRENT = "current_"


class TableSpec(NamedTuple):
    """A table of a warehouse."""

    name: str
    layer: str
    summary: str
    fields: tuple[Field, ...]
    has_versions: bool = False
    """Whether rows are versions of an object: ended versions stay, current ones are replaced (as in silver)."""
    has_final_rows: bool = False
    """Whether rows become final: final rows stay, the others are replaced (as in some gold tables)."""
    is_fleet: bool = False
    """Whether the rows of all clusters are computed together and replaced as a whole."""
    expect: Expectations = ()
    """What must hold of the rows; a row that breaks it is reported in the table ``breaches``."""

    @property
    def path(self) -> str:
        """The table's directory, relative to the warehouse."""
        return f"{self.layer}/{self.name}"

    @property
    def partition_column(self) -> str | None:
        """The boolean column that the table is partitioned by: whether a row is ``CLOSED`` or ``CURRENT``."""
        return IS_CURRENT if self.has_versions else IS_FINAL.name if self.has_final_rows else None

    def partition_of(self, part: str) -> str:
        """Return the value of the column :attr:`partition_column` in a part, as directory names have it."""
        return "true" if (part == CURRENT) == self.has_versions else "false"


@cache
def tables() -> dict[str, TableSpec]:
    """Return every table by name: layer by layer, sorted by name within a layer."""
    summary = "rows that break what their tables declare (see expectations): by table, expectation and cluster"
    specs = [*_bronze(), *_silver(), *_gold(), TableSpec(BREACHES, QUALITY, summary, BREACH_FIELDS)]
    return {spec.name: spec for spec in sorted(specs, key=lambda spec: (LAYERS.index(spec.layer), spec.name))}


def table(name: str) -> TableSpec:
    """Return the table with a name. Raises UsageError, which suggests similar names."""
    spec = tables().get(name)
    if spec is None:
        hint = did_you_mean(name, tables(), f"there are {', '.join(tables())}")
        raise UsageError(f"{name}: no such table", hint=hint)
    return spec


def current_views() -> dict[str, str]:
    """Return the names of the views ``current_…``, each with its table of versions."""
    return {_CURRENT + spec.name: spec.name for spec in tables().values() if spec.has_versions}


_RECORD_EXPECTATIONS = (*not_null("clusterId", "offset"), *at_least(0, "offset", "epoch", "position"))
_EXPECTED = {
    RECORDS: _RECORD_EXPECTATIONS,
    CONTROL_RECORDS: _RECORD_EXPECTATIONS,
    QUARANTINE: not_null("clusterId", "kind", "reason"),
    FILES: (
        *key("clusterId", "file"),
        *at_least(0, "size", "firstOffset", "records", "goodBytes", "crcFailures", "tornAt"),
        ordered("firstOffset", "lastOffset"),
    ),
    COPIES: (
        *key("clusterId", "copy"),
        *not_null("state"),
        *at_least(0, "startOffset", "endOffset", "sameFrom", "sameTo", "divergesAt", "uncommittedFrom"),
        ordered("sameFrom", "sameTo"),
    ),
    CLUSTERS: (
        *key("clusterId"),
        *at_least(0, "copies", "startOffset", "endOffset", "stateOffset", "committedOffset"),
        ordered("startOffset", "endOffset"),
        ordered("stateOffset", "endOffset"),
    ),
}
"""The expectations of the bronze tables."""


def _bronze() -> list[TableSpec]:
    bronze = [
        (RECORDS, "every record of the clusters' logs, and of snapshots that state begins with", schemas.RECORD_FIELDS),
        (
            CONTROL_RECORDS,
            "records that the quorum writes: leaders, voters, kraft.version, snapshots",
            schemas.RECORD_FIELDS,
        ),
        (QUARANTINE, "what could not be read or decoded, with the reason", schemas.QUARANTINE_FIELDS),
        (FILES, "the files of every copy, as far as planning looked at them", schemas.FILE_FIELDS),
        (COPIES, "the copies of every cluster's log, and how they agree", schemas.COPY_FIELDS),
        (CLUSTERS, "how far the tables of every cluster are", schemas.CLUSTER_FIELDS),
    ]
    return [TableSpec(name, BRONZE, summary, fields, expect=_EXPECTED[name]) for name, summary, fields in bronze]


def _silver() -> list[TableSpec]:
    return [
        TableSpec(
            silver_table.name,
            SILVER,
            silver_table.summary,
            silver_table.fields,
            has_versions=True,
            expect=_version_expectations(silver_table.keys),
        )
        for silver_table in silver.tables().values()
    ]


def _version_expectations(keys: tuple[str, ...]) -> Expectations:
    """Expect that a version begins before it ends (by offset: times may run backwards), and one of a key is current."""
    return (
        *not_null("clusterId", "validFromOffset", "validFromMs"),
        *at_least(-1, "validFromOffset"),
        ordered("validFromOffset", "validToOffset", strictly=True),
        one_current("clusterId", *keys),
    )


def _gold() -> list[TableSpec]:
    summary = "kshell's own, not for queries: the versions of partitions that ended, and that the next step needs"
    specs = [TableSpec(PARTITIONS_RETAINED, GOLD, summary, silver.tables()["partitions"].fields)]
    for gold_table in gold.tables().values():
        has_final_rows = bool(gold_table.final_by)
        fields = (*gold_table.fields, *([IS_FINAL] if has_final_rows else []))
        specs.append(
            TableSpec(
                gold_table.name,
                GOLD,
                gold_table.summary,
                fields,
                has_final_rows=has_final_rows,
                is_fleet=gold_table.is_fleet,
                expect=gold_table.expect,
            )
        )
    return specs


def check_types(spec: TableSpec, frame: DataFrame) -> None:
    """Assert that a frame has the declared types of the table; any other is a programming error."""
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}  # without nullability
    for name, wanted in schemas.spark_columns(spec.fields):
        assert types[name] == wanted, f"{spec.name}.{name} is {types[name]}, not {wanted}"
