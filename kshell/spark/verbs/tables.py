"""``kshell-pipeline tables``: what tables there are, how large they are, and their columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kshell.commands.base.result import Result, Row, Rows, typed
from kshell.commands.base.spec import Arg, Example, Flag
from kshell.errors import UsageError
from kshell.spark.session import NAME
from kshell.spark.verbs import SPARK_FLAGS, Verb
from kshell.spark.verbs.base.warehouse_flags import OUT

_COLUMNS = typed("table:string column:string type:string doc:string")
_SIZES = typed("table:string layer:string rows:int64 bytes:int64 files:int64 step:int32 summary:string")


def run(args: Any) -> Result:
    """Rows about tables (or their columns); of a warehouse with ``--out``. No session is started for Parquet."""
    from kshell.spark.warehouse import catalog

    specs = [catalog.table(args.name)] if args.name else list(catalog.tables().values())
    if args.schema:
        return Rows(_COLUMNS, list(_columns(specs)))
    if not args.out:
        raise UsageError("no --out", hint="--out DIR is where the tables are; --schema needs none")
    from kshell.spark.verbs.base.opened import opened

    with opened(args) as place:
        place.is_brief = True
        return Rows(_SIZES, [_size(place.warehouse, spec) for spec in specs])


def _columns(specs: Any) -> Iterator[Row]:
    from kshell.commands.base.tables import said

    for spec in specs:
        for field in spec.fields:
            yield {"table": spec.name, "column": field.name, "type": said(field.type), "doc": field.doc}


def _size(warehouse: Any, spec: Any) -> Row:
    parts = warehouse.parts(spec.name)
    files = warehouse.tables.size(spec, parts)
    steps = [step for batches in parts.values() for own in batches.values() for step in own]
    return {
        "table": spec.name,
        "layer": spec.layer,
        "rows": warehouse.tables.rows(spec, parts, files),
        "bytes": sum(size for _, size in files),
        "files": len(files),
        "step": max(steps, default=None),
        "summary": spec.summary,
    }


VERB = Verb(
    name="tables",
    summary="the tables: rows, bytes, files, the last step that changed them; or their columns",
    run=run,
    args=(Arg("name", "one table (all)", arity="?"),),
    flags=(OUT, Flag(("--schema",), "columns and what they say, of any warehouse"), *SPARK_FLAGS),
    examples=(
        Example(f"{NAME} tables --out tables", "what there is"),
        Example(f"{NAME} tables partitions --schema", "the columns of one table"),
    ),
)
