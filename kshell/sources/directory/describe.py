"""Describe a directory, besides its image: its quorum, snapshots and log, as facts for the tree.

A fact is (type of the leaf, value, origin); ``/quorum`` and ``/log`` are dictionaries of facts.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from kshell.errors import SourceNotFoundError
from kshell.metadata.families.quorum import KRAFT_VERSION, LEADER, LEADER_CHANGE, QUORUM, VOTERS
from kshell.metadata.records import decode_record, decode_value
from kshell.metadata.redaction import Redaction, record_plain
from kshell.metadata.replay import Problem
from kshell.metadata.values import BatchPosition, Entry, Origin
from kshell.protocol.batches import Batch, iter_records
from kshell.protocol.decoder import Message
from kshell.protocol.primitives import DecodeError
from kshell.sources.directory.files import Listing, Segment, SnapshotFile
from kshell.sources.directory.log import LogReader
from kshell.sources.directory.sidecar_files import leader_epochs, quorum_state
from kshell.sources.source import Loaded, SourceFacts

if TYPE_CHECKING:
    from kshell.json_text import JsonObject

NOT_AVAILABLE = "not available from a directory"


def quorum(loaded: Loaded) -> SourceFacts:
    """The facts of ``/quorum``, from control records and ``quorum-state``; the high watermark is not on disk."""
    version: Entry[int] | None = loaded.image[QUORUM].get(KRAFT_VERSION)
    return {
        "leaderId": ("quorum", leader_id(loaded), None),
        "leaderEpoch": ("quorum", leader_epoch(loaded), None),
        "highWatermark": ("quorum", NOT_AVAILABLE, None),
        "kraftVersion": ("quorum", version.value if version else 0, version.origin if version else None),
        "voters": {str(voter["voterId"]): ("voter", voter, None) for voter in voters(loaded)},
        "observers": ("quorum", NOT_AVAILABLE, None),
    }


def leader_id(loaded: Loaded) -> int | None:
    """The leader's id: for the newest state from ``quorum-state``, else from the LeaderChange record of the epoch.

    ``None`` if neither is there: a snapshot has no LeaderChange record, and the log before it may be deleted.
    """
    recorded = _state(loaded).get("leaderId")
    if isinstance(recorded, int):
        return recorded
    change = leader_change(loaded)
    if change is None or change.origin.place.epoch < _last_epoch(loaded):
        return None
    leader: int = change.value["leaderId"]
    return leader


def leader_name(leader: int | None) -> int | str | None:
    """A leader's id in readable form: ``none`` where an epoch has no leader, which files and Kafka write as -1."""
    return "none" if leader == -1 else leader


def leader_epoch(loaded: Loaded) -> int:
    """The leader epoch: for the newest state from ``quorum-state``, else the epoch of the last record."""
    recorded = _state(loaded).get("leaderEpoch")
    return recorded if isinstance(recorded, int) else _last_epoch(loaded)


def voters(loaded: Loaded) -> list[JsonObject]:
    """The voters, from the last KRaftVoters record, else the last LeaderChange record, else ``quorum-state``."""
    entry = loaded.image[QUORUM].get(VOTERS)
    if entry is not None:
        return [record_plain(voter) for voter in entry.value]
    change = leader_change(loaded)
    if change is not None:
        return [record_plain(voter) for voter in change.value["voters"]]
    recorded = _state(loaded).get("currentVoters", [])
    return [voter for voter in recorded if isinstance(voter, dict) and "voterId" in voter]


def _state(loaded: Loaded) -> JsonObject:
    """``quorum-state`` if the newest state was loaded, else nothing, because the file describes only the present."""
    return quorum_state(loaded.listing, loaded.notes) if loaded.until is None else {}


def _last_epoch(loaded: Loaded) -> int:
    """The epoch of the last record, control records included."""
    change: Entry[Message] | None = loaded.image[QUORUM].get(LEADER)
    epoch = loaded.image.provenance.epoch
    return epoch if change is None else max(epoch, change.origin.place.epoch)


def leader_change(loaded: Loaded) -> Entry[Message] | None:
    """The LeaderChange record that opened the epoch of the last record.

    Snapshots contain no LeaderChange record, so the log before the snapshot is searched, too.
    """
    change: Entry[Message] | None = loaded.image[QUORUM].get(LEADER)
    if change is None and loaded.snapshot is not None:
        change = leader_change_before(loaded.listing, loaded.snapshot.end_offset)
    if change is None or (loaded.until is not None and change.origin.place.epoch < _last_epoch(loaded)):
        return None
    return change


def leader_change_before(listing: Listing, end: int) -> Entry[Message] | None:
    """The last LeaderChange record before offset ``end``. Usually one segment is read: the newest comes first."""
    for segment in reversed(listing.segments):
        if segment.base_offset is None or segment.base_offset >= end:
            continue
        change: Entry[Message] | None = None
        reader = LogReader(listing._replace(segments=(segment,)), until=end - 1, resume=True)
        try:
            for file, batch in reader:
                if batch.is_control:
                    change = _change_in(file, batch, end) or change
        except FileNotFoundError:  # a running server has removed it since the image was loaded
            if listing.directory is not None and not os.path.isdir(listing.directory):
                raise SourceNotFoundError(f"{listing.directory}: no longer there") from None
        if change is not None:
            return change
    return None


def _change_in(file: str, batch: Batch, end: int) -> Entry[Message] | None:
    """The last LeaderChange record of a control batch before offset ``end``."""
    change: Entry[Message] | None = None
    with contextlib.suppress(DecodeError):  # `verify` and `info` report malformed records
        for raw in iter_records(batch):
            decoded = decode_record(raw, control=True)
            if decoded.name == LEADER_CHANGE and decoded.data is not None and raw.offset < end:
                place = BatchPosition(os.path.basename(file), batch.position, batch.epoch, False)
                origin = Origin(raw.offset, raw.timestamp, decoded.name, decoded.version, place)
                change = Entry(decoded.data, origin)
    return change


def snapshots(listing: Listing) -> SourceFacts:
    """The facts of ``/snapshots``: one leaf per file, named by its id ``<end offset>-<epoch>``."""
    return {snapshot_id(file): ("snapshot", snapshot_facts(file), None) for file in listing.snapshots}


def snapshot_id(file: SnapshotFile) -> str:
    """Kafka's name of the snapshot without leading zeros; for a lone file of another name its file name."""
    if file.end_offset is None:
        return file.path.rpartition("/")[2]
    return f"{file.end_offset}-{file.epoch}"


def snapshot_named_by(file: str) -> str:
    """The snapshot id that a file name contains; a name of another form is returned unchanged."""
    stem, _, ending = file.rpartition(".")
    end, _, epoch = stem.partition("-")
    if ending == "checkpoint" and end.isdigit() and epoch.isdigit():
        return f"{int(end)}-{int(epoch)}"
    return file


def snapshot_facts(file: SnapshotFile) -> JsonObject:
    """What is known from the file's name and size, without reading it."""
    path = file.path if file.data is None else None
    return {"endOffset": file.end_offset, "epoch": file.epoch, "sizeBytes": file.size, "file": path}


def segment_facts(segment: Segment) -> JsonObject:
    """What is known from the file's name and size, without reading it."""
    file = segment.path if segment.data is None else None
    return {"baseOffset": segment.base_offset, "sizeBytes": segment.size, "file": file}


def log(loaded: Loaded, redaction: Redaction) -> SourceFacts:
    """The facts of ``/log``: offsets, segments, and the records that are not in the image, with the reason."""
    listing = loaded.listing
    names = {
        str(s.base_offset if s.base_offset is not None else s.path.rpartition("/")[2]): s for s in listing.segments
    }
    return {
        "startOffset": ("offset", log_start(listing), None),
        "endOffset": ("offset", loaded.log_end_offset, None),
        "segments": {name: ("segment", segment_facts(segment), None) for name, segment in names.items()},
        "undecoded": {_key(p): _problem(p, redaction) for p in loaded.problems if p.undecoded is not None},
        "skipped": {_key(p): _problem(p, redaction) for p in loaded.problems if p.undecoded is None},
    }


def log_start(listing: Listing) -> int | None:
    """The log's start offset; ``leader-epoch-checkpoint`` shows whether retention moved it into the first segment."""
    if listing.log_start is not None:
        return listing.log_start
    if not listing.segments:
        return None
    base = listing.segments[0].base_offset
    epochs = leader_epochs(listing)
    return max(base, epochs[0][1]) if base is not None and epochs else base


def _key(problem: Problem) -> str:
    """The leaf's name: the record's offset. Offsets of a snapshot's records count in the file, so they are marked."""
    offset = str(problem.origin.offset)
    return f"snapshot-{offset}" if problem.origin.place.in_snapshot else offset


def _problem(problem: Problem, redaction: Redaction) -> tuple[str, JsonObject, Origin]:
    """The fact of a record that is not in the image; the content of an undecoded one is redacted."""
    origin = problem.origin
    row: JsonObject = {"record": origin.record_type, "version": origin.version, "reason": problem.reason}
    if problem.undecoded is not None:
        decoded = decode_value(problem.undecoded.raw)._replace(data=None, undecoded=problem.undecoded)
        row |= redaction.record(decoded)
    return "problem", row, origin
