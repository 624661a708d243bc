"""Tables of Apache Iceberg in a catalog of directories, so that each lies below its own path: ``silver/topics``."""

from __future__ import annotations

import hashlib
import importlib
from typing import TYPE_CHECKING, Any

from kshell.spark.formats import FORMATS
from kshell.spark.warehouse.catalog import BATCH, TableSpec
from kshell.spark.warehouse.row_tables import Kept, RowTables, condition_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PROPERTIES = {
    # Every step is a commit of every table: of the files that only describe old ones, a few are enough.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}


class IcebergTables(RowTables):
    """The catalog is made for the place in whatever session there is; files of deleted rows stay until snapshots
    expire.
    """

    @property
    def _catalog(self) -> str:
        return f"kshell_{hashlib.sha256(self._place.encode()).hexdigest()[:12]}"

    def _prepare(self, spark: Any) -> None:
        settings = {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".type": "hadoop",
            ".warehouse": self._storage.for_spark(self._place),
            ".cache-enabled": "false",  # else what another process wrote is not seen for half a minute
        }
        for name, value in settings.items():
            spark.conf.set(f"spark.sql.catalog.{self._catalog}{name}", value)
        spark.sql(f"SHOW NAMESPACES IN {self._catalog}").collect()  # makes Spark load its class

    def _hint(self) -> str:
        return FORMATS["iceberg"].hint

    def _is_there(self, spec: TableSpec) -> bool:
        return self._storage.exists(self._storage.join(self._root(spec), "metadata", "version-hint.text"))

    def _name(self, spec: TableSpec) -> str:
        return ".".join((self._catalog, *spec.path.split("/")))

    def _create(self, spec: TableSpec, rows: DataFrame) -> None:
        columns = [importlib.import_module("pyspark.sql.functions").col(name) for name in (*spec.split_by, BATCH)]
        writer = rows.writeTo(self._name(spec)).using("iceberg")
        for name, value in _PROPERTIES.items():
            writer = writer.tableProperty(name, value)
        writer.partitionedBy(*columns).createOrReplace()

    def _put(self, spec: TableSpec, rows: DataFrame, instead_of: str) -> None:
        writer = rows.writeTo(self._name(spec))
        if instead_of:
            writer.overwrite(importlib.import_module("pyspark.sql.functions").expr(instead_of))
        else:
            writer.append()

    def _files(self, spec: TableSpec, kept: Kept) -> DataFrame:
        frame: DataFrame = self._session().table(f"{self._name(spec)}.files")
        return frame.where(condition_of(spec, kept, "partition.")).selectExpr(
            "file_path AS path", "file_size_in_bytes AS size"
        )
