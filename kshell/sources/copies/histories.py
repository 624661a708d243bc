"""Whether copies that were compared can be of one history at all: a plan to recover must not choose between two.

Copies and their comparison come in, sentences for the user go out. Raft's order (epoch, then length) is right only
among copies of one history. A directory of another cluster without ``meta.properties``, a disk that was restored from a
backup, or a snapshot that was copied into the wrong directory may have the higher epoch, and be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kshell.errors import DataError
from kshell.metadata.families.topics import TOPICS
from kshell.sources.copies.agreement import OTHER_CLUSTER, CopyComparison, majority_without
from kshell.sources.copies.logs import Copy
from kshell.sources.directory.checkpoints import image_of
from kshell.sources.directory.describe import snapshot_id
from kshell.sources.directory.files import SnapshotFile
from kshell.sources.directory.source import load_listing


class Contradiction(NamedTuple):
    """What shows that a copy is not of the history of the others, or not of one history itself: a sentence."""

    copy: Copy
    text: str


def contradictions(comparison: CopyComparison) -> list[Contradiction]:
    """What shows that the copies of the reference's cluster have two histories; empty if nothing does."""
    members = [verdict for verdict in comparison.verdicts if verdict.state != OTHER_CLUSTER]
    parted = [
        Contradiction(
            verdict.copy,
            f"{verdict.copy.path} and {verdict.peer.path} differ from offset {verdict.divergence.offset} on, and no"
            f" election explains it: {verdict.divergence.contradiction}",
        )
        for verdict in members
        if verdict.divergence is not None and verdict.peer is not None and verdict.divergence.contradiction is not None
    ]
    return parted + contradicting_snapshots(comparison)


def contradicting_snapshots(comparison: CopyComparison) -> list[Contradiction]:
    """As :func:`contradictions`, of snapshots that end after the log of their own copy."""
    members = [verdict.copy for verdict in comparison.verdicts if verdict.state != OTHER_CLUSTER]
    texts = [Contradiction(copy, text) for copy in members for text in _of_snapshot_ahead(copy)]
    return texts + [Contradiction(comparison.reference, text) for text in _of_majority(comparison)]


def _of_snapshot_ahead(copy: Copy) -> Iterator[str]:
    """Sentences on a snapshot that ends after its own copy's log: does anything else in the copy contradict it?"""
    newest = copy.newest
    if newest is None or copy.log_end is None or (newest.end_offset or 0) <= copy.log_end:
        return
    name = f"snapshot {snapshot_id(newest)} of {copy.path}, which ends after its log,"
    if copy.stated_epoch is not None and newest.epoch is not None and 0 <= copy.stated_epoch < newest.epoch:
        yield f"{name} has epoch {newest.epoch}, and quorum-state of the node knows epochs up to {copy.stated_epoch}"
    directory = copy.voters_of(newest).get(copy.node_id) if copy.node_id is not None else None
    if directory is not None and copy.directory_id not in (None, directory):
        yield (
            f"{name} names directory {directory} for voter {copy.node_id}, and meta.properties is of directory"
            f" {copy.directory_id}"
        )
    elif _shares_no_topic(copy, newest):
        yield f"{name} has no topic id of those that the log has"


def _shares_no_topic(copy: Copy, newest: SnapshotFile) -> bool:
    """Whether the log and a snapshot that ends after it both have topics, and none in common."""
    listing = copy.source.listing()
    listing = listing._replace(snapshots=tuple(file for file in listing.snapshots if file.path != newest.path))
    try:
        in_log = load_listing(listing, None, None).image[TOPICS]
        in_snapshot = image_of(newest)[TOPICS]
    except (DataError, FileNotFoundError):
        return False  # without the snapshot the log shows no state, or a server goes on meanwhile
    return bool(in_log) and bool(in_snapshot) and not any(topic_id in in_snapshot for topic_id in in_log)


def _of_majority(comparison: CopyComparison) -> list[str]:
    """A sentence if the newest records are in one snapshot alone, and whole logs of most voters end before it."""
    reference = comparison.reference
    newest = reference.newest
    if newest is None or (newest.end_offset or 0) <= (reference.log_end or 0):
        return []
    majority, end = majority_without(comparison)
    if not majority or end >= (newest.end_offset or 0):
        return []
    voters = ", ".join(map(str, majority))
    return [
        f"snapshot {snapshot_id(newest)} of {reference.path} says that records up to offset"
        f" {(newest.end_offset or 0) - 1} were committed, and the logs of most voters ({voters}) are whole and end at"
        f" offset {end}: they are older copies, or of another history"
    ]
