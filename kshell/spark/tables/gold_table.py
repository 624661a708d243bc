"""The declaration of a gold table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kshell.spark.tables.expectations import Expectations
from kshell.tables.declaration import Field

CLUSTER = Field("clusterId", "string", "the cluster")

Tables = Mapping[str, Any]
"""DataFrames by the names of their tables."""

DAY, MONTH = "day", "month"
PARTITIONS_RETAINED = "partitions_carried"
"""The table of versions that later steps need: :mod:`~kshell.spark.gold.timelines.retained_versions`."""
IS_FINAL = Field(
    "isFinal", "boolean", "whether steps leave the row as it is, unless one makes all rows of its cluster anew"
)
"""The last column of a table that settles."""


class Shared(NamedTuple):
    """What several tables are made of in common. A step makes it once, out of the tables named in ``needs``.

    ``settles``: as those tables do.
    """

    name: str
    needs: tuple[str, ...]
    make: Callable[[Tables], Any]
    settles: str


class GoldTable(NamedTuple):
    """``make`` gives the rows, a DataFrame, out of the tables named in ``needs``: of bronze, of silver, and of gold;
    and of what it ``shares`` with other tables.

    Rows of a cluster depend on that cluster's rows alone, so that ``make`` may be given those of some clusters; only
    with ``is_fleet`` it must have the rows of all.

    ``settles``: rows become final, so that a step need not make all of them again. ``make`` gives a column more then,
    ``untilMs``: once no record of a time before the end of that millisecond comes any more, the row stays as it is;
    null: that is not known yet. It may be given less than all, and must make the same of it, as far as rows are not
    final before a certain day begins:

    * ``partitions``: the versions that are late by that day, or with ``MONTH`` by the begin of its month
      (:func:`~kshell.spark.gold.timelines.retained_versions.is_late`); with ``DAY`` those that are retained as well.
    * ``records``: those of that day or later, and of a day that calendars have.
    * ``clusters``: with ``sinceMs``, when that day, or its month, begins: rows of what was before need not be made.
    * the table itself, if it ``needs`` itself: its rows that are final.
    """

    name: str
    summary: str
    fields: tuple[Field, ...]
    needs: tuple[str, ...]
    make: Callable[[Tables], Any]
    is_fleet: bool = False
    settles: str | None = None
    shares: tuple[Shared, ...] = ()
    expect: Expectations = ()

    def made_of(self, tables: Tables) -> Any:
        """Compute the rows from the tables that it needs alone."""
        return self.make({**tables, **{shared.name: shared.make(tables) for shared in self.shares}})
