"""Tables of Delta Lake, each below its own path: ``silver/topics``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kshell.spark.formats import FORMATS
from kshell.spark.warehouse.catalog import BATCH, TableSpec
from kshell.spark.warehouse.row_tables import Kept, RowTables, condition_of, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CATALOG = "spark.sql.catalog.spark_catalog"


class DeltaTables(RowTables):
    """The session needs Delta's extension and catalog from its start; files of deleted rows stay until ``VACUUM``."""

    def _prepare(self, spark: Any) -> None:
        wanted = FORMATS["delta"].settings[_CATALOG]
        if spark.conf.get(_CATALOG, "") != wanted:
            raise LookupError(f"{_CATALOG} is not {wanted}")
        spark.catalog.tableExists("kshell_looks_for_the_catalog")  # makes Spark load its class

    def _hint(self) -> str:
        return FORMATS["delta"].hint

    def _is_there(self, spec: TableSpec) -> bool:
        return self._storage.exists(self._storage.join(self._root(spec), "_delta_log"))

    def _name(self, spec: TableSpec) -> str:
        return f"delta.{quoted(self._path(spec))}"

    def _create(self, spec: TableSpec, rows: DataFrame) -> None:
        rows.write.format("delta").mode("append").partitionBy(*spec.split_by, BATCH).save(self._path(spec))

    def _put(self, spec: TableSpec, rows: DataFrame, instead_of: str) -> None:
        writer = rows.write.format("delta").mode("overwrite" if instead_of else "append")
        if instead_of:
            writer = writer.option("replaceWhere", instead_of)
        writer.save(self._path(spec))

    def _files(self, spec: TableSpec, kept: Kept) -> DataFrame:
        frame: DataFrame = self._session().table(self._name(spec)).where(condition_of(spec, kept))
        return frame.selectExpr("_metadata.file_path AS path", "_metadata.file_size AS size").distinct()

    def _path(self, spec: TableSpec) -> str:
        return self._storage.for_spark(self._root(spec))
