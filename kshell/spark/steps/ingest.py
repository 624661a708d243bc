"""Slices of logs into rows of ``bronze/records``: planned before, read and decoded on the executors."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from kshell.spark.decoding.decode import View
from kshell.spark.files.pack import Slice, aim, pack
from kshell.spark.options import SLICE_BYTES, Narrowing
from kshell.spark.schemas import QUARANTINE, QUARANTINE_FIELDS, RECORD_FIELDS, RECORDS, spark_schema
from kshell.spark.steps.spread import spread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOUND = "type is null"
"""True of the rows that stand for a finding in what :func:`records` gives."""


def packed(slices: Sequence[Slice], parallelism: int) -> list[bytes]:
    """The slices, some for each task, pickled: enough tasks for ``parallelism`` at once, none of them tiny."""
    target = aim(sum(piece.cost() for piece in slices), parallelism, SLICE_BYTES)
    return [pickle.dumps(some) for some in pack(slices, target)]


def records(spark: SparkSession, pieces: Sequence[bytes]) -> DataFrame:
    """The rows of the view ``records``, in the order of the slices; and for each thing that was found to be wrong while
    they were read, a row whose ``type`` is null.
    """
    return spread(spark, pieces, decoded, spark_schema(RECORD_FIELDS))


def findings(spark: SparkSession, pieces: Sequence[bytes]) -> DataFrame:
    """The rows of the view ``quarantine`` but for records that were not decoded, which ``records`` has as well."""
    return spread(spark, pieces, quarantined, spark_schema(QUARANTINE_FIELDS)).where("kind <> 'record'")


def decoded(piece: bytes) -> Iterator[Any]:
    """Runs on the executors."""
    view = View(RECORDS, RECORD_FIELDS, Narrowing())
    yield from view.batches(pickle.loads(piece))
    if view.found:
        arrow: Any = importlib.import_module("pyarrow")
        from kshell.commands.base.arrow_tables import schema

        made = schema(arrow, RECORD_FIELDS)
        yield arrow.record_batch([arrow.nulls(view.found, one.type) for one in made], schema=made)


def quarantined(piece: bytes) -> Iterator[Any]:
    """Runs on the executors."""
    return View(QUARANTINE, QUARANTINE_FIELDS, Narrowing()).batches(pickle.loads(piece))
