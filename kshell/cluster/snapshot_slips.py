"""Slips: values in which a snapshot differs from the log before it; for ``info``, ``health``, ``diff``, ``verify``.

:mod:`kshell.metadata.checkpoint` explains how they arise. Finding them replays the log before a snapshot, so a
directory must have both, and commands that only show values do not look for them.
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
from kshell.wording import first_of

if TYPE_CHECKING:
    from kshell.engine.session import Session

_TOPIC = "TOPIC:"
_NAMED = 3
"""Paths that a sentence names at most; it only counts the rest."""


class Slip(NamedTuple):
    """A value that differs: the snapshot's id, the value's path, and how, such as ``only in the snapshot``."""

    snapshot: str
    path: Segments
    difference: str


def slips(session: Session, *, lasting: bool = False) -> list[Slip]:
    """Every slip of the snapshots up to the point that is shown. Replays the log before the newest of them.

    Args:
        session: a directory, and the point in time that is shown.
        lasting: only slips that still hold are needed: the newest snapshot has them all, so it is compared first.
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
        return []  # the log before the snapshots cannot be replayed; loading reports the damage itself


def slips_of_listing(listing: Listing, progress: Progress | None) -> dict[str, list[Slip]]:
    """The slips of each snapshot that can be compared with the log before it, by the snapshot's file name.

    Raises:
        DataError: the log cannot be replayed.
    """
    passed = checkpoints.compare(listing, progress=progress)
    return {checkpoint.file: list(_slips_of([checkpoint])) for checkpoint in passed}


def slips_between(older: Session, newer: Session) -> list[Slip]:
    """The slips of the snapshots that end between the points of two sessions on one directory; empty for damage."""
    loaded = older.loaded
    end = newer.image.provenance.offset
    try:
        return list(
            _slips_of(checkpoints.compare_between(newer.loaded.listing, loaded.image, loaded.open_transaction, end))
        )
    except DataError:
        return []


def sentences(slips: list[Slip], place: Segments) -> Iterator[str]:
    """One sentence per snapshot that has slips at or below a path of the tree."""
    for snapshot in dict.fromkeys(slip.snapshot for slip in slips):
        concerned = [slip for slip in slips if slip.snapshot == snapshot and is_under(slip.path, place)]
        if concerned:
            named = first_of([f"{join(slip.path)} ({slip.difference})" for slip in concerned], _NAMED)
            yield (
                f"snapshot {snapshot} and the log before it disagree: {named}; this comes from no record, but"
                " from the node that wrote the snapshot"
            )


SCRAM_REMOVED = "REMOVE_USER_SCRAM_CREDENTIAL_RECORD"


def kafkas_own(slip: Slip, snapshot: Image, record_types: Container[str]) -> str | None:
    """Name the known bug of Kafka that explains a slip.

    Args:
        slip: the value that differs.
        snapshot: the image of the snapshot.
        record_types: the names of the record types in the log.

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
