"""What a truth is made of: plain values that travel to executors, and of which some go through JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kshell.spark.files.pack import Slice

Row = dict[str, Any]
ENDLESS = 1 << 63
"""More than any offset."""


class Reached(NamedTuple):
    """How far the tables of a cluster are. ``Reached(**json.loads(json.dumps(reached._asdict())))`` is the same."""

    offset: int = 0
    """The offset of the log to come: what is below it was read, or was known to be missing."""
    epoch: int = -1
    """Of the batch that ends there."""
    crc: int | None = None
    """The CRC of the batch that ends there; ``None``: no batch does."""
    state: int | None = None
    """The end of the last era: before ``offset`` where damage was met that no snapshot has made good yet, after it
    where a snapshot is ahead of the log. ``None``: no state is known.
    """
    known: Sequence[Sequence[int]] = ()
    """(first offset, offset after the last one, the times of these in milliseconds since 1970) of the stretches of the
    log that states are known of; the first one may be that of a snapshot, which ends there.
    """
    start: int | None = None
    """The first offset of the log that was read; ``None``: there was no log."""
    first_ms: int | None = None
    """When the first batch that was read begins, in milliseconds since 1970."""
    last_ms: int | None = None
    """When the last one ends."""
    places: Mapping[str, Sequence[Any] | None] = {}
    """Path of a copy -> the last batch of it that was looked at, and belongs to what was read: (segment's path, first
    byte, base offset, what of the segment's row in ``files`` is about what is before, CRC)."""
    rows: Mapping[str, Mapping[str, Any]] = {}
    """Path of a copy that is not excluded -> its row in ``copies``."""
    excluded: Mapping[str, Mapping[str, Any]] = {}
    """Path of a copy that is of another history -> its row in ``copies``, the batch that shows it (``file``,
    ``position``, ``crc``), and ``until``: once the tables go beyond that offset the two can be compared; or null."""
    told: Mapping[str, Sequence[Sequence[Any]]] = {}
    """Path of a copy -> findings that were told: (file, byte or -1, kind, reason, how it is known that it is still so:
    the CRC of the batch that begins there, null where there is no good one; of a whole file its size)."""
    missing: Sequence[Sequence[int]] = ()
    """Offsets (first, after) that no copy had, and that were passed over."""
    voters: Sequence[Sequence[Any]] = ()
    """(id, directory id or null) of the voters, by the newest record that names them, where copies were compared."""
    committed: int | None = None
    """The offset below which all records are proven to be committed."""
    stated: Sequence[Any] = (None, None, ())
    """The leader, its epoch and the voters that the files ``quorum-state`` name."""


class Era(NamedTuple):
    """A stretch of the log of which the states are known. ``base``: the path of the snapshot that they begin with;
    ``None``: they go on from what was before, at offset 0 from nothing. The log's records from ``since`` to before
    ``to`` are applied on it.
    """

    base: str | None
    since: int
    to: int


class Truth(NamedTuple):
    """What is to be read of a cluster, and what is known before it is read."""

    cluster_id: str
    slices: tuple[Slice, ...]
    """Each offset once, in order; a base snapshot before the log that goes on from it."""
    eras: tuple[Era, ...]
    reached: Reached
    """How far the tables are once the slices are in them."""
    restart: bool
    """Whether what the tables have of the cluster must go first: the slices hold all of it again."""
    copies: tuple[Row, ...]
    """Rows of the table ``copies``: all of them."""
    files: tuple[Row, ...]
    """Rows of the table ``files``: of those that were looked at now."""
    findings: tuple[Row, ...]
    """Rows of the table ``quarantine``: what was not told before."""
    size: int
    """Bytes to read."""
    cluster: Row
    """The row of the table ``clusters``."""
