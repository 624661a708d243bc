"""What a directory knows of itself beside the image: its quorum, snapshots and log, as facts for the tree."""

from __future__ import annotations

from typing import Any

from kshell.metadata.families.quorum import KRAFT_VERSION, LEADER, QUORUM, VOTERS
from kshell.metadata.records import decode_value
from kshell.metadata.redaction import Redaction, record_plain
from kshell.metadata.replay import Problem
from kshell.metadata.values import Entry
from kshell.sources.beside import leader_epochs, quorum_state
from kshell.sources.files import Listing, Segment, SnapshotFile
from kshell.sources.source import Loaded

NOT_AVAILABLE = "not available from a directory"


def quorum(loaded: Loaded) -> dict[str, Any]:
    """``/quorum``: what the control records and ``quorum-state`` say; the high watermark is not on disk."""
    table = loaded.image[QUORUM]
    state = quorum_state(loaded.listing, loaded.notes)
    version: Entry[int] | None = table.get(KRAFT_VERSION)
    return {
        "leaderId": ("quorum", leader_id(loaded), None),
        "leaderEpoch": ("quorum", state.get("leaderEpoch", loaded.image.provenance.epoch), None),
        "highWatermark": ("quorum", NOT_AVAILABLE, None),
        "kraftVersion": ("quorum", version.value if version else 0, version.origin if version else None),
        "voters": {str(voter["voterId"]): ("voter", voter, None) for voter in voters(loaded)},
        "observers": ("quorum", NOT_AVAILABLE, None),
    }


def leader_id(loaded: Loaded) -> int | None:
    """The leader that ``quorum-state`` names, else the one of the last LeaderChange record; ``None`` if neither."""
    stated = quorum_state(loaded.listing, loaded.notes).get("leaderId")
    change: Entry[dict[str, Any]] | None = loaded.image[QUORUM].get(LEADER)
    if stated is not None:
        return int(stated)
    return change.value["leaderId"] if change else None


def voters(loaded: Loaded) -> list[dict[str, Any]]:
    """The voters: of the last KRaftVoters record, else of the last LeaderChange, else of ``quorum-state``."""
    table = loaded.image[QUORUM]
    entry = table.get(VOTERS)
    if entry is not None:
        return [record_plain(voter) for voter in entry.value]
    change = table.get(LEADER)
    if change is not None:
        return [record_plain(voter) for voter in change.value["voters"]]
    stated: list[dict[str, Any]] = quorum_state(loaded.listing, loaded.notes).get("currentVoters", [])
    return stated


def snapshots(listing: Listing) -> dict[str, Any]:
    """``/snapshots``: one leaf a file, under its id ``<end offset>-<epoch>``."""
    return {snapshot_id(file): ("snapshot", snapshot_facts(file), None) for file in listing.snapshots}


def snapshot_id(file: SnapshotFile) -> str:
    """Kafka's name for it without the leading zeros; a lone file of another name keeps that."""
    if file.end_offset is None:
        return file.path.rpartition("/")[2]
    return f"{file.end_offset}-{file.epoch}"


def snapshot_named_by(file: str) -> str:
    """The id in a snapshot's file name; a name of another form stands for itself."""
    stem, _, ending = file.rpartition(".")
    end, _, epoch = stem.partition("-")
    if ending == "checkpoint" and end.isdigit() and epoch.isdigit():
        return f"{int(end)}-{int(epoch)}"
    return file


def snapshot_facts(file: SnapshotFile) -> dict[str, Any]:
    """What the file's name and size say; nothing is read."""
    path = file.path if file.data is None else None
    return {"endOffset": file.end_offset, "epoch": file.epoch, "sizeBytes": file.size, "file": path}


def segment_facts(segment: Segment) -> dict[str, Any]:
    """What the file's name and size say; nothing is read."""
    file = segment.path if segment.data is None else None
    return {"baseOffset": segment.base_offset, "sizeBytes": segment.size, "file": file}


def log(loaded: Loaded, redaction: Redaction) -> dict[str, Any]:
    """``/log``: offsets, segments, and the records that are not in the image."""
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
    """The log's start: inside the first segment kept, when retention moved it there (``leader-epoch-checkpoint``)."""
    if listing.log_start is not None:
        return listing.log_start
    if not listing.segments:
        return None
    base = listing.segments[0].base_offset
    epochs = leader_epochs(listing)
    return max(base, epochs[0][1]) if base is not None and epochs else base


def _key(problem: Problem) -> str:
    offset = str(problem.origin.offset)
    return f"snapshot-{offset}" if problem.origin.place.in_snapshot else offset


def _problem(problem: Problem, redaction: Redaction) -> tuple[str, dict[str, Any], Any]:
    origin = problem.origin
    shown: dict[str, Any] = {"record": origin.record_type, "version": origin.version, "reason": problem.reason}
    if problem.undecoded is not None:
        kept = decode_value(problem.undecoded.raw)._replace(data=None, undecoded=problem.undecoded)
        shown |= redaction.record(kept)
    return "problem", shown, origin
