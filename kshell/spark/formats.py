"""Table formats whose jars do not come with Spark. Parquet needs none of this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Format(NamedTuple):
    """A table format whose jars are not Spark's: the class that shows it is there, what a session needs for it.

    ``known`` says which release was seen to work with which Spark.
    """

    proof: str
    settings: Mapping[str, str]
    known: str


FORMATS = {
    "delta": Format(
        "io.delta.sql.DeltaSparkSessionExtension",
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        },
        "Delta 4.4.0 works with Spark 4.1 and 4.2, not with 4.3",
    ),
    "iceberg": Format(
        "org.apache.iceberg.spark.SparkCatalog",
        {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.iceberg.type": "hadoop",
        },
        "Iceberg 1.12.0 works with Spark 4.1, not with 4.3",
    ),
}


def format_settings(name: str, warehouse: str) -> dict[str, str]:
    """The settings of a session that writes ``name``; Iceberg's tables go below the directory ``warehouse``."""
    places = {"spark.sql.catalog.iceberg.warehouse": warehouse} if name == "iceberg" else {}
    return dict(FORMATS[name].settings) | places
