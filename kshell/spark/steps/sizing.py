"""How much planning will read of a cluster: what comes after its tables, and all of it where that is not enough.

Free of Spark, and of the files themselves: listings say it, and how far the tables are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kshell.spark.files.scan import LogCopy
from kshell.spark.reconcile import Checkpoint

_WALK = 4
"""Bytes whose headers are walked while one byte is compared: measured with batches of 100 bytes, about the smallest,
125 MB and 27 MB a second; larger ones are walked faster."""


def bytes_to_plan(copies: Sequence[LogCopy], checkpoint: Checkpoint | None) -> int:
    """Bytes, as if they were compared with another copy. ``checkpoint``: how far the tables are, if there are any.

    Several copies of a log are read and compared, of a lone one only headers are looked at. With a copy that is new
    all of them are read from their beginning (:func:`kshell.spark.reconcile.reconcile`).
    """
    if checkpoint is None or any(
        copy.path not in checkpoint.positions and copy.path not in checkpoint.excluded for copy in copies
    ):
        sizes = [sum(segment.size for segment in copy.listing.segments) for copy in copies]
    else:
        sizes = [_after(copy, checkpoint) for copy in copies if copy.path in checkpoint.positions]
    return sum(sizes) if len(sizes) > 1 else sum(sizes) // _WALK


def _after(copy: LogCopy, checkpoint: Checkpoint) -> int:
    """Bytes of a copy from the last batch on that is in the tables; where it is gone, from its offset on."""
    segments, place = copy.listing.segments, checkpoint.positions.get(copy.path)
    paths = [segment.path for segment in segments]
    if place and place[0] in paths:
        return sum(segment.size for segment in segments[paths.index(place[0]) :]) - int(place[1])
    bases: list[Any] = [segment.base_offset for segment in segments]
    before = [index for index, base in enumerate(bases) if base is not None and base < checkpoint.offset]
    return sum(segment.size for segment in segments[before[-1] if before else 0 :])
