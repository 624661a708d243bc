"""Table formats: Parquet, and those whose jars do not come with Spark, which need a session with settings for them."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
from collections.abc import Mapping
from typing import Any, NamedTuple

from kshell.errors import UsageError

PARQUET = "parquet"


class Format(NamedTuple):
    """A table format whose jars are not Spark's: the class that shows it is there, what a session needs for it.

    ``known`` says which release was seen to work with which Spark; ``packages``: the coordinates, by the Sparks
    (``4.1``) that they are for; ``tables``: module and class of a warehouse's tables.
    """

    proof: str
    settings: Mapping[str, str]
    known: str
    packages: Mapping[str, str]
    tables: tuple[str, str]

    @property
    def hint(self) -> str:
        """What to do where a session lacks it."""
        package = self.packages.get(installed() or "", next(iter(self.packages.values())))
        return f"{self.known}; --conf spark.jars.packages={package}"


FORMATS = {
    "delta": Format(
        "io.delta.sql.DeltaSparkSessionExtension",
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            # A table's own log is read in 50 tasks otherwise; a step writes some thirty tables, whose logs are short.
            "spark.databricks.delta.snapshotPartitions": "1",
        },
        "Delta 4.4.0 works with Spark 4.1 and 4.2, not with 4.3",
        {"4.1": "io.delta:delta-spark_4.1_2.13:4.4.0", "4.2": "io.delta:delta-spark_4.2_2.13:4.4.0"},
        ("delta_tables", "DeltaTables"),
    ),
    "iceberg": Format(
        "org.apache.iceberg.spark.SparkCatalog",
        {
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.iceberg.type": "hadoop",
        },
        "Iceberg 1.12.0 works with Spark 4.1, not with 4.3",
        {"4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"},
        ("iceberg_tables", "IcebergTables"),
    ),
}


def format_rows(release: str | None) -> list[dict[str, str | None]]:
    """Every format, and what it needs with a release of Spark (``4.1``; ``None``: of none that is known)."""
    rows: list[dict[str, str | None]] = [{"format": PARQUET, "standing": "built in", "package": None, "detail": None}]
    for name, declared in FORMATS.items():
        package = declared.packages.get(release or "")
        standing = "needs a package" if package else "no Spark" if release is None else f"not with Spark {release}"
        rows.append({"format": name, "standing": standing, "package": package, "detail": declared.known})
    return rows


def format_settings(name: str, warehouse: str) -> dict[str, str]:
    """The settings of a session that writes ``name``; Iceberg's tables go below the directory ``warehouse``."""
    places = {"spark.sql.catalog.iceberg.warehouse": warehouse} if name == "iceberg" else {}
    return (dict(FORMATS[name].settings) if name in FORMATS else {}) | places


def tables_of(name: str) -> Any:
    """What reads and writes the tables of a warehouse in that format; to be called with the session's getter and the
    commits. Raises UsageError for a name that is none, and for a format that the installed Spark does not work with.
    """
    if name == PARQUET:
        return importlib.import_module("kshell.spark.warehouse.parquet_tables").ParquetTables
    if name not in FORMATS:
        raise UsageError(f"{name}: no format of tables", hint=f"{', '.join((PARQUET, *FORMATS))}")
    found, release = FORMATS[name], installed()
    if release is not None and release not in found.packages:
        raise UsageError(
            f"{name}: not with Spark {release}",
            hint=f"{found.known}; {PARQUET} works with all, or pip install 'pyspark=={list(found.packages)[-1]}.*'",
        )
    module, made = found.tables
    return getattr(importlib.import_module(f"kshell.spark.warehouse.{module}"), made)


def installed() -> str | None:
    """The release of the installed pyspark, as ``4.1``; ``None`` where there is none."""
    for package in ("pyspark", "pyspark-client"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return ".".join(importlib.metadata.version(package).split(".")[:2])
    return None
