"""Files of Parquet that tasks write themselves, with Arrow: rows that are Arrow already need not pass through Java.

A file has a hidden name, which no reader takes for data, until the driver has heard of it. So what a task wrote that
failed, was killed, or ran twice is no part of a batch. Free of Spark: tasks write, the driver reveals.
"""

from __future__ import annotations

import importlib
import itertools
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from kshell.commands.base.tables import Field
from kshell.errors import CommandError
from kshell.sources.remote import reason
from kshell.spark.warehouse.catalog import CLUSTER

_GROUP = 32 << 20
"""Bytes in Arrow of a row group, about: what is held until it is written, and what readers skip or share out."""
_UNIQUE = ("json", "binary", "int64")
"""Types of columns that hardly repeat: a dictionary of their values would be made, and thrown away."""


class Part(NamedTuple):
    """A file that was written under a hidden name; without rows there is none."""

    name: str
    rows: int
    clusters: frozenset[str]
    """Those that have any."""


def write_part(folder: str, fields: Sequence[Field], batches: Iterable[Any]) -> Part:
    """Writes ``pyarrow.RecordBatch`` es of exactly those columns, of which ``clusterId`` is one, into a new file. Texts
    may be of Arrow's type for dictionaries; in the file they are texts.

    Raises CommandError where the folder cannot be written to.
    """
    arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    name = f"part-{secrets.token_hex(8)}.zstd.parquet"
    groups = _groups(arrow, batches)
    if (first := next(groups, None)) is None:
        return Part(name, 0, frozenset())
    rows, clusters = 0, set[str]()
    path, repeated = os.path.join(folder, _hidden(name)), [one.name for one in fields if one.type not in _UNIQUE]
    try:
        with parquet.ParquetWriter(
            path, first.schema, compression="zstd", use_dictionary=repeated, store_schema=False
        ) as writer:
            for table in itertools.chain([first], groups):
                writer.write_table(table)
                rows += table.num_rows
                clusters.update(table.column(CLUSTER).unique().to_pylist())
    except OSError as error:
        raise CommandError(f"{folder}: {reason(error)}") from None
    return Part(name, rows, frozenset(clusters))


def reveal(folder: str, parts: Iterable[Part]) -> None:
    """Gives the files of a batch their names, and removes all others. Raises CommandError."""
    try:
        for part in parts:
            os.rename(os.path.join(folder, _hidden(part.name)), os.path.join(folder, part.name))
        for name in os.listdir(folder):
            if name.startswith("."):
                os.unlink(os.path.join(folder, name))
    except FileNotFoundError as error:
        hint = "executors must reach --out by the path that the driver has: a mount, or a URI of a store"
        raise CommandError(f"{error.filename}: a task wrote it, and it is not here", hint=hint) from None
    except OSError as error:
        raise CommandError(f"{folder}: {reason(error)}") from None


def _hidden(name: str) -> str:
    return f".{name}"


def _groups(arrow: Any, batches: Iterable[Any]) -> Iterator[Any]:
    """Neighbours as one table each, of about ``_GROUP`` bytes."""
    waiting: list[Any] = []
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
        if sum(one.nbytes for one in waiting) >= _GROUP:
            yield arrow.Table.from_batches(waiting).unify_dictionaries()
            waiting = []
    if waiting:
        yield arrow.Table.from_batches(waiting).unify_dictionaries()
