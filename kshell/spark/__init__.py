"""Metadata logs on Apache Spark: the data source ``kraft``. Needs the extra ``spark``.

::

    import kshell.spark
    kshell.spark.register(spark)
    records = spark.read.format("kraft").load("/fleet/*/*/__cluster_metadata-0")
    topics = spark.read.format("kraft").option("view", "TOPIC_RECORD").load("/fleet/*/*")

:mod:`kshell.spark.schemas` has the views and their columns, :mod:`kshell.spark.options` the options. Only
:mod:`kshell.spark.source` knows Spark; what is read, and in which pieces, is decided and done without it.
"""

from __future__ import annotations

from typing import Any


def register(spark: Any) -> None:
    """Makes the format ``kraft`` known to a session, classic or Connect."""
    from kshell.spark.source import KraftDataSource  # late: it imports pyspark

    spark.dataSource.register(KraftDataSource)
