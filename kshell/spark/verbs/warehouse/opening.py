"""The warehouse of a line, whose session starts when it is needed and ends with the verb."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kshell.spark.verbs.warehouse.flags import out_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kshell.render.progress import Progress
    from kshell.spark.tables.warehouse import Warehouse

_BRIEF = {
    # Of little data, most of the time goes into compiling what works on it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}

_FEW_OFFSETS = 1_000_000
"""Records of all clusters together up to which tables are small enough for a session that starts quickly."""


class OpenWarehouse:
    """A warehouse, and what tells on standard error how far the work is.

    ``is_brief``: said before the session is needed, that there is little to do: it starts and works quicker, and would
    be slower on much.
    """

    warehouse: Warehouse
    progress: Progress
    is_brief = False

    def starts_reading(self) -> None:
        """Starts the session, for a verb which may read all of the tables, and opens the newest step."""
        warehouse = self.warehouse
        offsets = sum(cluster.reached["offset"] for cluster in warehouse.state.clusters.values())
        self.is_brief = offsets < _FEW_OFFSETS
        warehouse.spark  # noqa: B018  # it starts: in the seconds that this takes a step may count
        warehouse.renew()


@contextlib.contextmanager
def open_warehouse(args: Any) -> Iterator[OpenWarehouse]:
    """The warehouse of ``--out``. Raises UsageError, DataError for a state that cannot be read."""
    from kshell.render.progress import Progress
    from kshell.spark.session import check, is_started_here, running
    from kshell.spark.tables.warehouse import Warehouse

    out = out_of(args)
    check(args.master)
    opened_warehouse = OpenWarehouse()
    opened_warehouse.progress = Progress()
    with contextlib.ExitStack() as stack:
        stack.callback(opened_warehouse.progress.stop)

        def session() -> SparkSession:
            opened_warehouse.progress(0, 0, "starting Spark")
            is_brief = opened_warehouse.is_brief and is_started_here(args.master)
            settings = (_BRIEF if is_brief else {}) | dict(args.conf or ())
            return stack.enter_context(
                running(args.master, settings=settings, brief=is_brief, log_level=args.spark_log)
            )

        opened_warehouse.warehouse = Warehouse(session, out)
        yield opened_warehouse


@contextlib.contextmanager
def maintained(args: Any, *, undoes: bool = True) -> Iterator[Warehouse]:
    """The warehouse of ``--out`` as its only writer, for what needs no session; ``undoes`` as for ``writing``.

    Raises CommandError where there is no table: nothing is made there.
    """
    from kshell.spark.tables.warehouse import Warehouse

    warehouse = Warehouse(None, out_of(args))
    if not warehouse.state.step:
        raise warehouse.no_tables()
    with warehouse.writing(undoes=undoes):
        yield warehouse
