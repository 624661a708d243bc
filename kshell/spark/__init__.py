"""Metadata logs on Apache Spark: the data source ``kraft``. Needs the extra ``spark``.

::

    import kshell.spark
    spark = kshell.spark.local()                            # or any session of your own
    kshell.spark.register(spark)
    records = spark.read.format("kraft").load("/fleet/*/*/__cluster_metadata-0")
    topics = spark.read.format("kraft").option("view", "TOPIC_RECORD").load("/fleet/*/*")

    kshell.spark.register_tables(spark, "/data/tables")     # what `kshell-pipeline run` has made
    spark.sql("SELECT clusterId, count(*) FROM current_topics GROUP BY 1")

:mod:`kshell.spark.schemas` has the views and their columns, :mod:`kshell.spark.options` the options. Of
the format itself only :mod:`kshell.spark.source` knows Spark; what is read, and in which pieces, is decided without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def local(master: str = "local[*]", settings: Mapping[str, str] | None = None) -> Any:
    """A session on this machine alone, as ``kshell-pipeline`` starts one: with the Java that is there, or that the
    extra ``spark`` brings; it listens on the loopback address only, and says nothing but errors. ``settings`` win. If a
    session is active, it is that one, as it is.

    Raises NoJavaError, UsageError (pyspark is not installed, no such master), CommandError (it does not start).
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


def register(spark: Any) -> None:
    """Makes the format ``kraft`` known to a session, classic or Connect.

    Raises CommandError where the Python of the session's workers lacks what reading needs.
    """
    from kshell.spark.failures import check_workers
    from kshell.spark.source import KraftDataSource  # late: it imports pyspark

    check_workers(spark)
    spark.dataSource.register(KraftDataSource)


def register_tables(spark: Any, out: str, as_of: str = "now") -> list[str]:
    """Makes the tables that ``kshell-pipeline`` keeps in ``out`` temporary views of a session; gives their names.

    The views ``current_…`` show them as the shell does, ``as_of`` an offset, a time (ISO-8601) or a while ago (-1d).
    They are of the step that counts now: once another one does, make them again.
    Raises UsageError for such a point, CommandError where no tables are, DataError for a state that cannot be read.
    """
    from kshell.sources.points import parse_point
    from kshell.spark.tables.warehouse import Warehouse
    from kshell.spark.views.named import names, register

    warehouse = Warehouse(spark, out)
    if not warehouse.state.step:
        raise warehouse.no_tables()
    register(warehouse, names(), parse_point(as_of))
    return names()
