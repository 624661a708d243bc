"""Answer SQL with Spark and Delta Lake: a program for the Python of :mod:`.other_spark`, which has no kshell.

``python spark_sql_server.py JARS FOLDER``: reads one statement per line from standard input, as a JSON text, and writes
one line for each: ``{"columns": […], "rows": […]}`` or ``{"error": "…"}``. Ends with standard input.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession

CONFIGURATION = {
    "spark.master": "local[2]",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.defaultJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # How many tasks read a table's log and list its directories: 50 and more otherwise, for small ones too.
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
}


def as_json(row: dict[str, Any]) -> str:
    """Return a row as text that is the same for the same values; bytes are hexadecimal digits."""
    return json.dumps(row, sort_keys=True, default=lambda value: bytes(value).hex())


def answer(session: SparkSession, statement: str) -> dict[str, Any]:
    """Run a statement; its columns are those of Spark's schema in JSON."""
    try:
        frame = session.sql(statement)
        rows = [as_json(row.asDict(recursive=True)) for row in frame.collect()]
        return {"columns": json.loads(frame.schema.json())["fields"], "rows": rows}
    except Exception as error:  # whatever it is, the test shows it
        return {"error": f"{type(error).__name__}: {error}"}


def main(jars: str, folder: str) -> None:
    """Serve until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)  # what the JVM prints must not stand between the answers
    builder: Any = SparkSession.builder
    places = {"spark.jars": jars, "spark.sql.warehouse.dir": f"{folder}/warehouse"}
    for name, value in {**CONFIGURATION, **places}.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    try:
        for line in sys.stdin:
            print(json.dumps(answer(session, json.loads(line))), file=answers, flush=True)
    finally:
        session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
