"""The warehouse of a line, whose session starts when it is needed and ends with the verb."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from kshell.errors import CommandError, DeadlineError, KshellError, UsageError
from kshell.spark.formats import PARQUET
from kshell.spark.verbs.base.warehouse_flags import out_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kshell.render.progress import Progress
    from kshell.spark.warehouse import Warehouse

_BRIEF = {
    # Of little data, most of the time goes into compiling what works on it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
}

_FEW_OFFSETS = 1_000_000
"""Records of all clusters together up to which tables are small enough for a session that starts quickly."""
T = TypeVar("T")
_AGAIN = 4
"""How often what steps disturb is begun: a stream may commit every few seconds."""


class Opened:
    """A warehouse, and what tells on standard error how far the work is.

    ``is_brief``: said before the session is needed, that there is little to do: it starts and works quicker, and would
    be slower on much.
    """

    warehouse: Warehouse
    progress: Progress
    is_brief = False

    def reads_all(self) -> None:
        """Says whether that is little, of a verb which may read all of the tables."""
        self.is_brief = sum(one.reached["offset"] for one in self.warehouse.state.clusters.values()) < _FEW_OFFSETS

    def steadily(self, work: Callable[[], T]) -> T:
        """What ``work`` makes of the tables; once more, of the newest, where steps have replaced some meanwhile.

        Raises CommandError where that happens again and again.
        """
        warehouse = self.warehouse
        warehouse.spark  # noqa: B018  # it starts: in the seconds that this takes a step may count
        warehouse.renew()
        for left in reversed(range(_AGAIN)):
            try:
                found = work()
                # Files that are replaced are missed; rows of other formats are only not there.
                if warehouse.format == PARQUET or not warehouse.renew():
                    return found
            except (DeadlineError, UsageError):
                raise
            except Exception:
                if not left or not self._has_moved():
                    raise
        raise CommandError(f"{warehouse.place}: steps replace its tables all the time", hint="ask when less is written")

    def _has_moved(self) -> bool:
        try:
            return self.warehouse.renew()
        except KshellError:
            return False


@contextlib.contextmanager
def opened(args: Any, format: str | None = None) -> Iterator[Opened]:
    """The warehouse of ``--out``. ``format``: of one that is not there yet.

    Raises UsageError, DataError for a state that cannot be read.
    """
    from kshell.render.progress import Progress
    from kshell.spark.formats import format_settings
    from kshell.spark.session import check, is_started_here, running
    from kshell.spark.warehouse import Warehouse

    out = out_of(args)
    check(args.master)
    made = Opened()
    made.progress = Progress()
    with contextlib.ExitStack() as stack:
        stack.callback(made.progress.stop)

        def session() -> SparkSession:
            made.progress(0, 0, "starting Spark")
            is_brief = made.is_brief and is_started_here(args.master)
            settings = (_BRIEF if is_brief else {}) | format_settings(made.warehouse.format, made.warehouse.place)
            settings |= dict(args.conf or ())
            return stack.enter_context(
                running(args.master, settings=settings, brief=is_brief, log_level=args.spark_log)
            )

        made.warehouse = Warehouse(session, out, format)
        yield made
