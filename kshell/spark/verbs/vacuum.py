"""``kshell-pipeline vacuum``: removes files that belong to no recent step."""

from __future__ import annotations

from collections.abc import Mapping

from kshell.engine.declaration import Example, Flag
from kshell.engine.result import Rows, typed
from kshell.spark.session import NAME
from kshell.spark.verbs import Verb
from kshell.spark.verbs.warehouse.flags import OUT, RETAIN, OutArguments
from kshell.spark.verbs.warehouse.opening import existing, maintained

_COLUMNS = typed("table:string files:int64 bytes:int64")


class VacuumArguments(OutArguments):
    """Arguments and options of ``vacuum``."""

    retain: int
    dry_run: bool


def run(args: VacuumArguments) -> Rows:
    """Return one row per table of which files were (``--dry-run``: would be) removed. CommandError without tables."""
    if args.dry_run:
        # Not as a writer, who would first undo what a killed step has committed.
        return _rows(existing(args, checkpoints=False).vacuum(args.retain, dry_run=True))
    with maintained(args) as warehouse:
        return _rows(warehouse.vacuum(args.retain))


def _rows(removed: Mapping[str, tuple[int, int]]) -> Rows:
    rows = [{"table": name, "files": files, "bytes": size} for name, (files, size) in removed.items() if files]
    return Rows(_COLUMNS, rows)


VERB = Verb(
    name="vacuum",
    summary="remove files that no recent step has",
    run=run,
    arguments=VacuumArguments,
    flags=(
        OUT,
        RETAIN,
        Flag(("--dry-run",), "remove nothing, say what would be"),
    ),
    examples=(
        Example(f"{NAME} vacuum --out tables", "once a day, by a scheduler"),
        Example(f"{NAME} vacuum --out tables --retain 7d --dry-run", "what a week of history would leave"),
    ),
    description=(
        "A step replaces files and leaves the old ones for readers that still have them open, for `history` and for"
        " `restore`. This removes the files that no step within --retain has, and what killed tasks have left. With"
        " --retain 0h, readers that are at work now may fail. Spark is not started."
    ),
)
