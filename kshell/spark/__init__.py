"""Metadata logs on Apache Spark: the data source ``kraft``. Needs the extra ``spark``.

::

    import kshell.spark
    kshell.spark.register(spark)
    records = spark.read.format("kraft").load("/fleet/*/*/__cluster_metadata-0")
    topics = spark.read.format("kraft").option("view", "TOPIC_RECORD").load("/fleet/*/*")

    kshell.spark.register_tables(spark, "/data/tables")     # what `kshell-pipeline run` has made
    spark.sql("SELECT clusterId, count(*) FROM current_topics GROUP BY 1")

:mod:`kshell.spark.schemas` has the views and their columns, :mod:`kshell.spark.options` the options. Only
:mod:`kshell.spark.source` knows Spark; what is read, and in which pieces, is decided and done without it.
"""

from __future__ import annotations

from typing import Any


def register(spark: Any) -> None:
    """Makes the format ``kraft`` known to a session, classic or Connect."""
    from kshell.spark.source import KraftDataSource  # late: it imports pyspark

    spark.dataSource.register(KraftDataSource)


def register_tables(spark: Any, out: str, as_of: str = "now") -> list[str]:
    """Makes the tables that ``kshell-pipeline`` keeps in ``out`` temporary views of a session; gives their names.

    The views ``current_…`` show them as the shell does, ``as_of`` an offset, a time (ISO-8601) or a while ago (-1d).
    Raises UsageError for such a point, CommandError where no tables are, DataError for a state that cannot be read.
    """
    from kshell.sources.points import parse_point
    from kshell.spark.views.named import names, register
    from kshell.spark.warehouse import Warehouse

    warehouse = Warehouse(spark, out)
    if not warehouse.state.step:
        raise warehouse.no_tables()
    register(warehouse, names(), parse_point(as_of))
    return names()
