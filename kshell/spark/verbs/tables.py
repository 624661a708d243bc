"""``kshell-pipeline tables``: lists the tables and how large they are, or their columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kshell.engine.declaration import Arg, Example, Flag
from kshell.engine.result import Result, Row, Rows, typed
from kshell.errors import UsageError
from kshell.spark.session import NAME
from kshell.spark.tables import catalog
from kshell.spark.tables.catalog import TableSpec
from kshell.spark.verbs import Verb
from kshell.spark.verbs.warehouse.flags import OUT, OutArguments
from kshell.spark.verbs.warehouse.opening import existing
from kshell.tables.declaration import type_text

if TYPE_CHECKING:
    from kshell.spark.tables.warehouse import Warehouse

_COLUMNS = typed("table:string column:string type:string doc:string")
_SIZES = typed("table:string layer:string rows:int64 bytes:int64 files:int64 step:int32 summary:string")


class TablesArguments(OutArguments):
    """Arguments and options of ``tables``."""

    name: str | None
    schema: bool


def run(args: TablesArguments) -> Result:
    """Return one row per table of the warehouse ``--out``; with ``--schema``, one per column. Does not start Spark."""
    specs = [catalog.table(args.name)] if args.name else list(catalog.tables().values())
    if args.schema:
        return Rows(_COLUMNS, list(_columns(specs)))
    if not args.out:
        raise UsageError("no --out", hint="--out DIR is where the tables are; --schema needs none")
    warehouse = existing(args, checkpoints=False)
    return Rows(_SIZES, [_size(warehouse, spec) for spec in specs])


def _columns(specs: Iterable[TableSpec]) -> Iterator[Row]:
    for spec in specs:
        for field in spec.fields:
            yield {"table": spec.name, "column": field.name, "type": type_text(field.type), "doc": field.doc}


def _size(warehouse: Warehouse, spec: TableSpec) -> Row:
    files = warehouse.files(spec.name)
    return {
        "table": spec.name,
        "layer": spec.layer,
        "rows": sum(file.rows for file in files),
        "bytes": sum(file.size for file in files),
        "files": len(files),
        "step": warehouse.log.last_change(spec.name),
        "summary": spec.summary,
    }


VERB = Verb(
    name="tables",
    summary="the tables: rows, bytes, files, the last step that changed them; or their columns",
    run=run,
    arguments=TablesArguments,
    args=(Arg("name", "one table (all)", arity="?"),),
    flags=(OUT, Flag(("--schema",), "columns and what they say, of any warehouse")),
    examples=(
        Example(f"{NAME} tables --out tables", "what there is"),
        Example(f"{NAME} tables partitions --schema", "the columns of one table"),
    ),
)
