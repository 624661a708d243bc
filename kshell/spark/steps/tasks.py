"""What a task does with the slices that it gets, on the executors, or on the driver if they are few. Free of Spark."""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kshell.commands.base.arrow_tables import schema
from kshell.spark.decoding.decode import View
from kshell.spark.options import Narrowing
from kshell.spark.schemas import QUARANTINE, QUARANTINE_FIELDS, RECORD_FIELDS, RECORDS
from kshell.spark.warehouse.parts import Part, write_part


class Made(NamedTuple):
    """The file that was written of the slices, and how many things were found to be wrong in them."""

    part: Part
    found: int


class Writing:
    """Slices, pickled, as a file in that folder, with what it says besides."""

    def __init__(self, folder: str, metadata: Mapping[str, str]) -> None:
        self._folder = folder
        self._metadata = metadata

    def __call__(self, piece: bytes) -> Made:
        """What was made of them. Raises CommandError."""
        view = _view(dictionaries=True)
        part = write_part(self._folder, RECORD_FIELDS, view.batches(pickle.loads(piece)), self._metadata)
        return Made(part, view.found)


def decoded(piece: bytes) -> Iterator[Any]:
    """Runs on the executors, or on the driver. For each thing that was found to be wrong a row comes last whose columns
    are null."""
    view = _view()
    yield from view.batches(pickle.loads(piece))
    if view.found:
        arrow: Any = importlib.import_module("pyarrow")
        made = schema(arrow, RECORD_FIELDS)
        yield arrow.record_batch([arrow.nulls(view.found, one.type) for one in made], schema=made)


def quarantined(piece: bytes) -> Iterator[Any]:
    """Runs on the executors, or on the driver."""
    return View(QUARANTINE, QUARANTINE_FIELDS, Narrowing()).batches(pickle.loads(piece))


def _view(*, dictionaries: bool = False) -> View:
    return View(RECORDS, RECORD_FIELDS, Narrowing(), dictionaries=dictionaries)
