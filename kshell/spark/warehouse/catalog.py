"""Which tables a warehouse has. Bronze ones stand here; those of silver and gold are declared where they are made."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.commands.base.tables import Field
from kshell.errors import UsageError
from kshell.spark import schemas
from kshell.spark.warehouse.commits import ALL, CLOSED, CURRENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BRONZE, SILVER, GOLD = "bronze", "silver", "gold"
LAYERS = (BRONZE, SILVER, GOLD)
RECORDS, QUARANTINE, FILES, COPIES, CLUSTERS = "records", "quarantine", "files", "copies", "clusters"
CONTROL_RECORDS = "control_records"
CLUSTER, BATCH, IS_CURRENT, IS_FINAL = "clusterId", "batch", "isCurrent", "isFinal"
_CURRENT = "current_"


class TableSpec(NamedTuple):
    """A table of a warehouse."""

    name: str
    layer: str
    summary: str
    fields: tuple[Field, ...]
    by_cluster: bool = True
    """Whether the rows of each cluster lie by themselves; else a step's rows of all lie together."""
    has_versions: bool = False
    """Rows are versions: those that have ended stay, the others are replaced."""
    settles: bool = False
    """Rows become final: those that are stay, the others are replaced."""
    is_fleet: bool = False
    """Rows of all clusters are made together and replaced as a whole, so they lie together as well."""

    @property
    def path(self) -> str:
        """Where it lies below a warehouse."""
        return f"{self.layer}/{self.name}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that it has."""
        return (CLOSED, CURRENT) if self.closes else (ALL,)

    @property
    def closes(self) -> str | None:
        """The column that tells which of the two parts a row belongs to."""
        return IS_CURRENT if self.has_versions else IS_FINAL if self.settles else None

    def told(self, part: str) -> str:
        """In SQL and in names of directories, what that column says in a part."""
        return "true" if (part == CURRENT) == self.has_versions else "false"

    @property
    def split_by(self) -> tuple[str, ...]:
        """The columns whose values are directories, outermost first; each step adds one more below."""
        if not self.by_cluster:
            return ()
        return (self.closes, CLUSTER) if self.closes else (CLUSTER,)


@cache
def tables() -> dict[str, TableSpec]:
    """Every table by name: layer by layer, sorted in each."""
    made = [*_bronze(), *_silver(), *_gold()]
    return {spec.name: spec for spec in sorted(made, key=lambda spec: (LAYERS.index(spec.layer), spec.name))}


def table(name: str) -> TableSpec:
    """The table of that name. Raises UsageError, which proposes names that exist."""
    found = tables().get(name)
    if found is None:
        import difflib  # late: only mistakes need it

        close = difflib.get_close_matches(name, tables(), n=2)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(tables())}"
        raise UsageError(f"{name}: no such table", hint=hint)
    return found


def current_names() -> dict[str, str]:
    """The views ``current_…``, with the tables whose rows they show as the shell does."""
    return {_CURRENT + spec.name: spec.name for spec in tables().values() if spec.has_versions}


def _bronze() -> list[TableSpec]:
    return [
        TableSpec(RECORDS, BRONZE, "every record of the clusters' logs, and of snapshots that state begins with",
                  schemas.RECORD_FIELDS, by_cluster=False),
        TableSpec(CONTROL_RECORDS, BRONZE, "records that the quorum writes: leaders, voters, kraft.version, snapshots",
                  schemas.RECORD_FIELDS, by_cluster=False),
        TableSpec(QUARANTINE, BRONZE, "what could not be read or decoded, with the reason",
                  schemas.QUARANTINE_FIELDS, by_cluster=False),
        TableSpec(FILES, BRONZE, "the files of every copy, as far as planning looked at them", schemas.FILE_FIELDS),
        TableSpec(COPIES, BRONZE, "the copies of every cluster's log, and how they agree", schemas.COPY_FIELDS),
        TableSpec(CLUSTERS, BRONZE, "how far the tables of every cluster are", schemas.CLUSTER_FIELDS),
    ]  # fmt: skip


def _silver() -> list[TableSpec]:
    declared: Any = importlib.import_module("kshell.spark.silver").tables()
    return [TableSpec(one.name, SILVER, one.summary, tuple(one.fields), has_versions=True) for one in declared.values()]


def _gold() -> list[TableSpec]:
    declared: Any = importlib.import_module("kshell.spark.gold.base.declared")
    made: Any = importlib.import_module("kshell.spark.gold").tables()
    partitions: Any = importlib.import_module("kshell.spark.silver").tables()["partitions"]
    carried = TableSpec(declared.CARRIED, GOLD, "kshell's own, not for queries: the versions of partitions that"
                        " ended, and that the next step needs", tuple(partitions.fields))  # fmt: skip
    return [
        carried,
        *(
            TableSpec(
                one.name, GOLD, one.summary, (*one.fields, *([declared.IS_FINAL] if one.settles else [])),
                by_cluster=not one.is_fleet, settles=bool(one.settles), is_fleet=one.is_fleet,
            )
            for one in made.values()
        ),
    ]  # fmt: skip


def as_declared(spec: TableSpec, frame: DataFrame) -> DataFrame:
    """The table's columns in their order. A type that is not the declared one is a fault of whoever made the rows."""
    names = [field.name for field in spec.fields]
    made = frame if frame.columns == names else frame.select(*names)
    for is_, field in zip(made.schema.fields, schemas.spark_schema(spec.fields).fields, strict=True):
        has, wanted = is_.dataType.simpleString(), field.dataType.simpleString()  # says nothing of nulls
        assert has == wanted, f"{spec.name}.{field.name} is {has}, not {wanted}"
    return made
