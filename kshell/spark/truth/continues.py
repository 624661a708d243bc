"""Whether a log still holds what the tables have of it."""

from __future__ import annotations

from kshell.spark.truth.copy_log import Log
from kshell.spark.truth.run_parts import batches, holding, last_of
from kshell.spark.truth.values import Reached


def still_holds(log: Log, reached: Reached) -> bool:
    """Whether the batch that the tables end with is in the log, as far as the log has that place at all.

    A log that ends before is only behind, unless it knows a later epoch: then a leader took back what the tables have.
    One that begins after cannot be of an earlier epoch.
    """
    if not log.parts:
        return True
    part = log.part_with(reached.offset - 1)
    if part is None:
        if log.parts[-1].run.after < reached.offset:
            return last_of(log.parts[-1].path, log.parts[-1].run).epoch <= reached.epoch
        after = next(part for part in log.parts if part.run.first >= reached.offset)
        return next(batches(after.path, after.run)).epoch >= reached.epoch
    batch = holding(part.path, part.run, reached.offset - 1)
    return (batch.after, batch.epoch, batch.crc) == (reached.offset, reached.epoch, reached.crc)
