"""Open the warehouse that a command line names. Spark starts when it is first needed, and stops with the verb."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kshell.spark.verbs.warehouse.flags import OutArguments, WarehouseArguments, out_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kshell.render.progress import Progress
    from kshell.spark.tables.warehouse import Warehouse

_FEW_OFFSETS = 1_000_000
"""For fewer records of all clusters together, tables are small enough for a session that starts quickly."""


class OpenWarehouse:
    """A warehouse, and the progress of the work on standard error.

    ``is_brief``: there is little to do. A verb sets it before the session is needed, which then starts sooner, but
    would be slower on much data.
    """

    warehouse: Warehouse
    progress: Progress
    is_brief = False

    def starts_reading(self) -> None:
        """Start the session, for a verb that may read all tables, and open the newest step."""
        warehouse = self.warehouse
        offsets = sum(cluster.reached["offset"] for cluster in warehouse.state.clusters.values())
        self.is_brief = offsets < _FEW_OFFSETS
        warehouse.spark  # noqa: B018  # starts it; another step may be committed meanwhile
        warehouse.renew()


@contextlib.contextmanager
def open_warehouse(args: WarehouseArguments) -> Iterator[OpenWarehouse]:
    """Open the warehouse ``--out``, with a session. Raises UsageError, or DataError if its state cannot be read."""
    from kshell.render.progress import Progress
    from kshell.spark.session import FOR_FEW_ROWS, active, check, is_started_here, running
    from kshell.spark.tables.warehouse import Warehouse

    out = out_of(args)
    check(args.master)
    opened_warehouse = OpenWarehouse()
    opened_warehouse.progress = Progress()
    with contextlib.ExitStack() as stack:
        stack.callback(opened_warehouse.progress.stop)

        def session() -> SparkSession:
            opened_warehouse.progress(0, 0, "starting Spark")
            conf = dict(args.conf or ())
            is_own = is_started_here(args.master) and active() is None
            for_few_rows = {name: value for name, value in FOR_FEW_ROWS.items() if is_own and name not in conf}
            opened_warehouse.warehouse.settings_for_few_rows = for_few_rows
            is_brief = opened_warehouse.is_brief and is_started_here(args.master)
            settings = (for_few_rows if is_brief else {}) | conf
            return stack.enter_context(
                running(args.master, settings=settings, brief=is_brief, log_level=args.spark_log)
            )

        opened_warehouse.warehouse = Warehouse(session, out)
        yield opened_warehouse


def existing(args: OutArguments, *, checkpoints: bool = True) -> Warehouse:
    """Open the warehouse ``--out`` for reading, without a session. Raises CommandError if there are no tables."""
    from kshell.spark.tables.warehouse import Warehouse

    warehouse = Warehouse(None, out_of(args), checkpoints=checkpoints)
    if not warehouse.state.step:
        raise warehouse.no_tables()
    return warehouse


@contextlib.contextmanager
def maintained(args: OutArguments, *, restores: bool = False) -> Iterator[Warehouse]:
    """Open the warehouse ``--out`` as its only writer, without a session.

    With ``restores``, neither a killed step is undone first, nor are the last step's checkpoints read.

    Raises CommandError if there are no tables; it does not create any.
    """
    warehouse = existing(args, checkpoints=not restores)
    with warehouse.writing(undoes=not restores):
        yield warehouse
