"""Files of Parquet that tasks write themselves, with Arrow: rows that are Arrow already need not pass through Java.

A file lies in a hidden folder of its batch, under a name that is none of Parquet, until the driver has heard of it. So
what a task wrote that failed, was killed, or ran twice is no part of the batch, and a task that comes too late finds no
folder. Free of Spark: tasks write, the driver reveals.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kshell.commands.base.tables import Field
from kshell.errors import CommandError
from kshell.sources.remote import reason
from kshell.spark.warehouse.catalog import CLUSTER

CODEC = "zstd"
"""Of records, less than half the bytes of snappy (Spark's default) for the same time."""
_GROUP = 32 << 20
"""Bytes in Arrow of a row group, about: what is held until it is written, and what readers skip or share out."""
_PLAIN = ("json", "binary", "int64")
"""Types of columns without a dictionary: values hardly repeat, or are as short as their numbers in one."""
_UNFINISHED = ".part"
SHARED = "tasks write there themselves: --out must be one place for them and the driver (a mount, or a URI), with room"
"""What to look at where a task cannot write."""


class Part(NamedTuple):
    """A file that was written, and not revealed yet; without rows there is none."""

    name: str
    rows: int
    clusters: frozenset[str]
    """Those that have any."""


def prepare(batch: str) -> str:
    """A new directory for a batch; gives the hidden folder in it that tasks write to. Raises CommandError."""
    folder = os.path.join(batch, f".writing-{secrets.token_hex(8)}")
    try:
        os.makedirs(folder)
    except OSError as error:
        raise CommandError(f"{batch}: {reason(error)}") from None
    return folder


def write_part(
    folder: str, fields: Sequence[Field], batches: Iterable[Any], metadata: Mapping[str, str] | None = None
) -> Part:
    """Writes ``pyarrow.RecordBatch`` es of exactly those columns, of which ``clusterId`` is one, into a new file. Texts
    may be of Arrow's type for dictionaries; in the file they are texts. ``metadata``: what the file says besides.

    Raises CommandError where the folder cannot be written to; whatever is raised, no file is left.
    """
    arrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    name = f"part-{secrets.token_hex(8)}.{CODEC}.parquet"
    groups = _groups(arrow, batches)
    if (first := next(groups, None)) is None:
        return Part(name, 0, frozenset())
    path, made = os.path.join(folder, name + _UNFINISHED), first.schema
    groups = itertools.chain([first], groups)
    del first  # it is large
    coded = [one.name for one in fields if one.type not in _PLAIN]
    rows, clusters = 0, set[str]()
    try:
        with parquet.ParquetWriter(path, made, compression=CODEC, use_dictionary=coded, store_schema=False) as writer:
            writer.add_key_value_metadata(dict(metadata or {}))
            for table in groups:
                writer.write_table(table)
                rows += table.num_rows
                clusters.update(table.column(CLUSTER).unique().to_pylist())
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(path)
        if isinstance(error, OSError):
            raise CommandError(f"{folder}: {reason(error)}", hint=SHARED) from None
        raise
    return Part(name, rows, frozenset(clusters))


def reveal(folder: str, parts: Iterable[Part]) -> None:
    """Moves the files of those parts out of the folder, into their batch, and removes it. Raises CommandError."""
    batch = os.path.dirname(folder)
    try:
        for part in parts:
            os.rename(os.path.join(folder, part.name + _UNFINISHED), os.path.join(batch, part.name))
    except FileNotFoundError as error:
        raise CommandError(f"{error.filename}: a task wrote it, and it is not here", hint=SHARED) from None
    except OSError as error:
        raise CommandError(f"{batch}: {reason(error)}") from None
    # It is hidden: what a task still writes there that ran twice is in nobody's way.
    shutil.rmtree(folder, ignore_errors=True)


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
