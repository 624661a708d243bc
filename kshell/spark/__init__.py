"""Metadata logs on Apache Spark: the data source ``kraft``, and tables of them. Needs the extra ``spark``.

::

    import kshell.spark
    spark = kshell.spark.local()                            # or any session of your own
    kshell.spark.register(spark)
    records = spark.read.format("kraft").load("/fleet/*/*/__cluster_metadata-0")
    topics = spark.read.format("kraft").option("view", "TOPIC_RECORD").load("/fleet/*/*")

    kshell.spark.register_tables(spark, "/data/tables")     # the tables that `kshell-pipeline run` has made
    spark.sql("SELECT clusterId, count(*) FROM current_topics GROUP BY 1")

:mod:`kshell.spark.schemas` has the views and their columns, :mod:`kshell.spark.options` the options. In a batch read
only :mod:`kshell.spark.source` knows Spark; which files are read, and in which pieces, is decided without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def local(master: str = "local[*]", settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a Spark session on this machine, as ``kshell-pipeline`` does, or return the active session unchanged.

    It uses an installed Java, or the one that the extra ``spark`` brings, listens on the loopback address only, and
    logs only errors. ``settings`` override those of kshell.

    Raises NoJavaError, UsageError (pyspark is not installed, unknown master), CommandError (it does not start).
    """
    import atexit
    import shutil
    import tempfile

    from kshell.spark import session

    if (active := session.active()) is not None:
        return active
    folder = tempfile.mkdtemp(prefix="kshell-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return session.local(master, warehouse=folder, settings=settings)


def register(spark: SparkSession) -> None:
    """Register the format ``kraft`` with a session, classic or Connect.

    Raises CommandError if the Python of the session's workers lacks a module that reading needs.
    """
    from kshell.spark.failures import check_workers
    from kshell.spark.source import KraftDataSource  # late: it imports pyspark

    check_workers(spark)
    spark.dataSource.register(KraftDataSource)


def register_tables(spark: SparkSession, out: str, as_of: str = "now") -> list[str]:
    """Register the tables that ``kshell-pipeline`` keeps in ``out`` as temporary views; return the names of the views.

    The views ``current_…`` show the cluster as the shell does, at the point ``as_of``: an offset, a time (ISO-8601) or
    a duration before now (-1d). All views stay at the last completed step; call this again to see a later one.
    Raises UsageError for a wrong point, CommandError if there are no tables, DataError if they cannot be read.
    """
    from kshell.sources.points import parse_point
    from kshell.spark.tables.warehouse import Warehouse
    from kshell.spark.views.named import names, register

    warehouse = Warehouse(spark, out)
    if not warehouse.state.step:
        raise warehouse.no_tables()
    register(warehouse, names(), parse_point(as_of))
    return names()
