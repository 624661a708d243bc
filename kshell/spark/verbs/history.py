"""``kshell-pipeline history``: lists the steps that made the tables, or the versions of one table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kshell.engine.declaration import Arg, Example
from kshell.engine.result import Row, Rows, typed
from kshell.errors import UsageError
from kshell.spark.session import NAME
from kshell.spark.tables import catalog
from kshell.spark.tables.steps import BEGIN_PHASE, DONE_PHASE, VACUUM
from kshell.spark.verbs import Verb
from kshell.spark.verbs.warehouse.flags import OUT, OutArguments
from kshell.spark.verbs.warehouse.opening import existing
from kshell.tree.image import iso

_STEPS = typed("step:int64 time:string action:string state:string changedTables:int64", "timeMs:int64 tables:[string]")
_VERSIONS = typed("version:int64 time:string step:int64 operation:string counts:boolean", "timeMs:int64")


class HistoryVerbArguments(OutArguments):
    """Arguments and options of ``history``."""

    table: str | None


def run(args: HistoryVerbArguments) -> Rows:
    """Return one row per step, or per version of a table; the newest first. Raises CommandError without tables."""
    warehouse = existing(args, checkpoints=False)
    if args.table is None:
        return Rows(_STEPS, list(_steps(warehouse.log.rows()))[::-1])
    if args.table not in warehouse.state.versions:
        catalog.table(args.table)  # an unknown name raises UsageError, which proposes names
        raise UsageError(f"{args.table}: no such table in {warehouse.place}")
    counting = {
        row["versions"][args.table]
        for row in warehouse.log.rows()
        if row["phase"] == DONE_PHASE and args.table in row["versions"]
    }
    rows = [
        {
            "version": commit.version,
            "time": iso(commit.time_ms),
            "timeMs": commit.time_ms,
            "step": commit.step,
            "operation": commit.operation,
            "counts": commit.version in counting,
        }
        for commit in warehouse.table(args.table).commits()
    ]
    return Rows(_VERSIONS, rows)


def _steps(rows: Sequence[Row]) -> Iterator[Row]:
    """Merge rows ``begin`` and ``done`` into one per step, oldest first. Without ``done``, it runs or was killed."""
    before: dict[str, int] = {}
    for number, row in enumerate(rows):
        if row["phase"] == BEGIN_PHASE:
            following = rows[number + 1] if number + 1 < len(rows) else None
            if following is not None and following["phase"] == DONE_PHASE and following["step"] == row["step"]:
                continue
            yield _step(row, "running or killed" if following is None else "killed", [])
            continue
        versions = {name: version for name, version in row["versions"].items() if name in catalog.tables()}
        changed = sorted(name for name, version in versions.items() if before.get(name) != version)
        yield _step(row, "done", changed if row["action"] != VACUUM else [])
        before = versions


def _step(row: Row, state: str, tables: list[str]) -> Row:
    return {
        "step": row["step"],
        "time": iso(row["timeMs"]),
        "timeMs": row["timeMs"],
        "action": row["action"],
        "state": state,
        "changedTables": len(tables),
        "tables": tables,
    }


VERB = Verb(
    name="history",
    summary="the steps that made the tables, or the versions of one table",
    run=run,
    arguments=HistoryVerbArguments,
    args=(Arg("table", "one table: its versions in Delta's log", arity="?"),),
    flags=(OUT,),
    examples=(
        Example(f"{NAME} history --out tables", "every step, the newest first, and the tables that it changed"),
        Example(f"{NAME} history topics --out tables", "which step made which version"),
    ),
    description=(
        "A version that counts is one that a step has named: other engines can open a table as of it. Spark is not"
        " started."
    ),
)
