"""Slips: values that a snapshot has otherwise than the log before it; for ``info``, ``health``, ``diff``, ``verify``.

:mod:`kshell.metadata.checkpoint` says how they come about. They are looked for only where a directory has both, and
never by a command that just shows values.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, NamedTuple

from kshell.errors import DataError
from kshell.metadata.checkpoint import ONLY_LOG, ONLY_SNAPSHOT, PassedCheckpoint
from kshell.metadata.families.topics import NAMES
from kshell.metadata.image import Image
from kshell.metadata.names import decode_name
from kshell.sources.directory import checkpoints
from kshell.sources.directory.describe import snapshot_named_by
from kshell.sources.directory.files import Listing
from kshell.sources.directory.log import Progress
from kshell.tree.paths import Segments, is_under, join, paths

if TYPE_CHECKING:
    from kshell.engine.session import Session

_TOPIC = "TOPIC:"
_NAMED = 3
"""Paths that a sentence names; it counts the rest."""


class Slip(NamedTuple):
    """One value: the snapshot's id, its path, and ``only in the snapshot`` or the like."""

    snapshot: str
    path: Segments
    difference: str


def slips(session: Session, *, lasting: bool = False) -> list[Slip]:
    """Every slip of the snapshots up to the moment that is shown. Replays the log before the newest of them.

    Args:
        session: shows the moment.
        lasting: look at the newest snapshot first, which has every slip that still holds: none there is none at all.
    """
    until, past = session.until, session.past
    if past is not None and past.is_recorded:
        history = past.history(session.progress)
        passed = [] if history is None else history[0].checkpoints
        return list(
            _slips_of(checkpoint for checkpoint in passed if until is None or checkpoint.provenance.offset <= until)
        )
    listing = session.loaded.listing
    if not checkpoints.log_before(listing):
        return []
    try:
        if lasting:
            newest = checkpoints.compare(listing, until, session.progress, newest_alone=True)
            if not any(checkpoint.disagreements for checkpoint in newest):
                return []
        return list(_slips_of(checkpoints.compare(listing, until, session.progress)))
    except DataError:
        return []  # what the log does not tell is not compared; loading says what is wrong with it


def slips_of_listing(listing: Listing, until: int | None, progress: Progress | None) -> dict[str, list[Slip]]:
    """The slips of each snapshot that can be compared with the log before it, by the snapshot's file name.

    Raises:
        DataError: nothing can be replayed.
    """
    passed = checkpoints.compare(listing, until, progress)
    return {checkpoint.file: list(_slips_of([checkpoint])) for checkpoint in passed}


def slips_between(older: Session, newer: Session) -> list[Slip]:
    """The slips of the snapshots that end after the one moment of a directory, and up to the other."""
    loaded = older.loaded
    end = newer.image.provenance.offset
    try:
        return list(
            _slips_of(checkpoints.compare_between(newer.loaded.listing, loaded.image, loaded.open_transaction, end))
        )
    except DataError:
        return []


def sentences(slips: list[Slip], place: Segments) -> Iterator[str]:
    """One sentence a snapshot, about what concerns a place of the tree."""
    for snapshot in dict.fromkeys(slip.snapshot for slip in slips):
        concerned = [slip for slip in slips if slip.snapshot == snapshot and is_under(slip.path, place)]
        if concerned:
            named = ", ".join(f"{join(slip.path)} ({slip.difference})" for slip in concerned[:_NAMED])
            more = f" and {len(concerned) - _NAMED} more" if len(concerned) > _NAMED else ""
            yield (
                f"snapshot {snapshot} and the log before it disagree: {named}{more}; this comes from no record, but"
                " from the node that wrote the snapshot"
            )


SCRAM_REMOVED = "REMOVE_USER_SCRAM_CREDENTIAL_RECORD"


def kafkas_own(slip: Slip, snapshot: Image, record_types: Container[str]) -> str | None:
    """What known bug of Kafka explains a value that a snapshot has otherwise than the log.

    Args:
        slip: the value.
        snapshot: the image of the snapshot.
        record_types: the names of the types of records that the log has.

    Returns:
        A sentence; ``None`` where no known bug explains it.
    """
    family, *rest = slip.path[1:]
    if family == "configs" and slip.difference == ONLY_SNAPSHOT and rest[0].startswith(_TOPIC):
        topic = decode_name(rest[0].removeprefix(_TOPIC))
        if topic not in snapshot[NAMES]:
            return "Kafka keeps the configs of a topic that was created and removed while the node was away"
    if family == "scram" and slip.difference == ONLY_LOG and SCRAM_REMOVED in record_types:
        return "Kafka 3.5 to 4.3 can lose SCRAM users when it replays a log in which another one was removed"
    return None


def _slips_of(passed: Iterator[PassedCheckpoint] | list[PassedCheckpoint]) -> Iterator[Slip]:
    for checkpoint in passed:
        for disagreement in checkpoint.disagreements:
            for path in paths(disagreement.touch)[:1]:
                yield Slip(snapshot_named_by(checkpoint.file), path, disagreement.difference)
