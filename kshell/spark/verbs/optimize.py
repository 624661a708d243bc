"""``kshell-pipeline optimize``: merges the small files that many steps have written into larger ones."""

from __future__ import annotations

from kshell.engine.declaration import Example, Flag
from kshell.engine.result import Rows, typed
from kshell.spark.session import NAME
from kshell.spark.verbs import Verb
from kshell.spark.verbs.warehouse.flags import OUT, OutArguments
from kshell.spark.verbs.warehouse.opening import maintained

_COLUMNS = typed("table:string filesBefore:int64 filesAfter:int64 bytesBefore:int64 bytesAfter:int64")
_TARGET_MB = 128


class OptimizeArguments(OutArguments):
    """Arguments and options of ``optimize``."""

    target: int


def run(args: OptimizeArguments) -> Rows:
    """Return one row per table that was rewritten. Raises CommandError without tables; it does not create any."""
    with maintained(args) as warehouse:
        before = {name: warehouse.files(name) for name in warehouse.tables()}
        changed = warehouse.optimize(args.target << 20)
        rows = []
        for name in changed:
            after = warehouse.files(name)
            rows.append(
                {
                    "table": name,
                    "filesBefore": len(before[name]),
                    "filesAfter": len(after),
                    "bytesBefore": sum(file.size for file in before[name]),
                    "bytesAfter": sum(file.size for file in after),
                }
            )
        return Rows(_COLUMNS, rows)


def _megabytes(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0):
        raise ValueError("a number of megabytes")
    return int(text[:9])


VERB = Verb(
    name="optimize",
    summary="put small files of the tables together",
    run=run,
    arguments=OptimizeArguments,
    flags=(
        OUT,
        Flag(
            ("--target",),
            f"the size of a file in megabytes, about; larger files stay (default: {_TARGET_MB})",
            "MB",
            _megabytes,
            _TARGET_MB,
        ),
    ),
    examples=(Example(f"{NAME} optimize --out tables", "after many steps"),),
    description=(
        "Rows stay what they are. It is a step of its own; if it is killed, it is not committed. The files that it"
        " replaces stay for readers until `vacuum`. Spark is not started."
    ),
)
