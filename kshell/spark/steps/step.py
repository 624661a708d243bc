"""One step: what is new of the clusters into all tables of a warehouse, and then it counts.

The order is bronze, silver, gold; tables whose inputs did not change are not touched. What is executed at once, and
what is read twice, is decided here; what rows mean, in :mod:`~kshell.spark.silver` and :mod:`~kshell.spark.gold`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.commands.base.result import Row
from kshell.spark.steps.novelty import fresh_of

if TYPE_CHECKING:
    from kshell.sources.log import Progress
    from kshell.spark.truth import Truth
    from kshell.spark.truth.copy_log import Bad
    from kshell.spark.warehouse import Warehouse

Again = Callable[[str, "Bad"], "Truth"]
"""The truth of a cluster once more, as if damaged batches were not there."""


class Summary(NamedTuple):
    """What a step did. ``step`` 0: nothing was new, and no table was touched."""

    step: int
    clusters: tuple[str, ...]
    """Those of which something was new."""
    rows: Mapping[str, int]
    """Table -> rows that the step has written."""
    bytes_read: int
    quarantine: Mapping[tuple[str, str], int]
    """(kind, reason) of what went there -> how often."""
    copies: tuple[Row, ...]
    """Rows of ``copies`` of all clusters that were looked at whose copy is not as the others."""
    restarted: tuple[str, ...]
    """Clusters whose tables were begun anew."""
    seconds: float

    @property
    def is_damaged(self) -> bool:
        """Whether anything of it was damaged or malformed: unknown records and torn tails are not."""
        return any(is_damage(kind, reason) for kind, reason in self.quarantine)


NOTHING = Summary(0, (), {}, 0, {}, (), (), 0.0)
_HARMLESS = ("torn",)
_UNKNOWN = "unknown"


def is_damage(kind: str, reason: str) -> bool:
    """Whether what went to the quarantine for that reason was damaged or malformed."""
    return kind not in _HARMLESS and not reason.startswith(_UNKNOWN)


def advance(
    warehouse: Warehouse,
    truths: Iterable[Truth],
    *,
    told: Progress | None = None,
    again: Again | None = None,
) -> Summary:
    """Takes the truths into the warehouse, whose only writer the caller is (:meth:`Warehouse.writing`).

    ``again`` makes a cluster's truth once more, when reading shows batches to be damaged that planning by headers took
    for good.

    Where nothing is new, no session is needed. A step that fails or is killed does not count, and the next one begins
    where this one did. Raises UnreadError for files that are not what they were when the truths were made, CommandError
    when somebody else has written meanwhile.
    """
    begun = time.monotonic()
    every = tuple(truths)
    fresh = [one for one in (fresh_of(truth, warehouse.state) for truth in every) if one is not None]
    if not fresh:
        return Summary(0, (), {}, 0, {}, _odd(every), (), time.monotonic() - begun)
    from kshell.spark.steps.layers import Step  # late: it imports pyspark

    step = Step(warehouse, fresh, told or _quiet, again)
    warehouse.begin()
    made = step.run()
    known = warehouse.state.clusters
    warehouse.commit(made)
    taken = step.truths
    return Summary(
        warehouse.state.step,
        tuple(taken),
        dict(step.rows),
        sum(one.size for one in taken.values()),
        step.quarantined,
        _odd(taken.get(one.cluster_id, one) for one in every),
        tuple(name for name, one in taken.items() if one.restart and name in known),
        time.monotonic() - begun,
    )


def _odd(truths: Iterable[Truth]) -> tuple[Row, ...]:
    return tuple(row for truth in truths for row in truth.copies if is_odd(row))


def is_odd(copy: Row) -> bool:
    """Whether a copy is not as the reference of its cluster is, or is damaged."""
    return copy["state"] not in _SOUND or bool(copy["damage"])


_SOUND = ("reference", "same")


def _quiet(done: int, total: int, what: str) -> None:
    pass
