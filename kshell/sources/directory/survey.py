"""Read a directory once and count what is in it: segments, snapshots, epochs, and records by type."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kshell.errors import DataError, SourceError
from kshell.metadata.records import Decoded
from kshell.protocol.batches import Batch
from kshell.protocol.decoder import UNKNOWN_TAGS
from kshell.protocol.verify import Torn
from kshell.sources.directory.files import Listing, SnapshotFile
from kshell.sources.directory.log import FileBatch, Progress
from kshell.sources.directory.records import BatchWalk, DecodedRecords
from kshell.sources.directory.snapshot import SnapshotFacts, SnapshotReader
from kshell.sources.source import Source


@dataclass
class SegmentSurvey:
    """One segment as far as it could be read. ``end_offset`` is exclusive; times are epoch milliseconds, -1 if none."""

    file: str
    base_offset: int
    end_offset: int = 0
    batches: int = 0
    records: int = 0
    first_timestamp: int = -1
    last_timestamp: int = -1
    epochs: list[int] = field(default_factory=list)

    def add(self, batch: Batch) -> None:
        """Count a batch."""
        self.end_offset = batch.last_offset + 1
        self.batches += 1
        self.records += batch.records
        if self.first_timestamp < 0:
            self.first_timestamp = batch.base_timestamp
        self.last_timestamp = max(self.last_timestamp, batch.max_timestamp)
        if batch.epoch not in self.epochs:
            self.epochs.append(batch.epoch)


@dataclass
class TypeSurvey:
    """Counts of the records of one type and version; ``malformed`` are the undecoded ones that break their declaration.

    ``first_undecoded``, ``reason``: the offset of the first record that cannot be decoded, and why.
    """

    count: int = 0
    undecoded: int = 0
    malformed: int = 0
    unknown_tags: int = 0
    first_undecoded: int | None = None
    reason: str | None = None

    def add(self, offset: int, decoded: Decoded) -> None:
        """Count a record."""
        self.count += 1
        undecoded = decoded.undecoded
        if undecoded is not None:
            self.undecoded += 1
            self.malformed += undecoded.malformed
            if self.first_undecoded is None:
                self.first_undecoded, self.reason = offset, undecoded.reason
        elif decoded.data is not None and _has_unknown_tags(decoded.data):
            self.unknown_tags += 1


Types = dict[tuple[str, int], TypeSurvey]
"""(type, version) -> the counts of its records."""


class BatchEnd(NamedTuple):
    """The batch that ends at an offset: its epoch, and the largest timestamp in it."""

    epoch: int
    timestamp: int


@dataclass
class LogSurvey:
    """The log, read from its first byte to its last."""

    segments: list[SegmentSurvey] = field(default_factory=list)
    types: Types = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    """Epoch -> offset of its first record."""
    batches_by_epoch: Counter[int] = field(default_factory=Counter)
    ends: dict[int, BatchEnd | None] = field(default_factory=dict)
    """End offset -> the batch that ends there, for the offsets that the caller named; ``None`` if no batch does."""
    damage: list[DataError] = field(default_factory=list)
    torn: tuple[str, Torn] | None = None

    def add_batch(self, file_batch: FileBatch) -> None:
        """Count a batch; its records are counted in ``types``, if they are decoded."""
        name, batch = os.path.basename(file_batch.file), file_batch.batch
        if not self.segments or self.segments[-1].file != name:
            self.segments.append(SegmentSurvey(name, batch.base_offset))
        self.segments[-1].add(batch)
        self.epochs.setdefault(batch.epoch, batch.base_offset)
        self.batches_by_epoch[batch.epoch] += 1
        if batch.last_offset + 1 in self.ends:
            self.ends[batch.last_offset + 1] = BatchEnd(batch.epoch, batch.max_timestamp)


@dataclass
class SnapshotSurvey:
    """One snapshot as far as it could be read. ``facts`` is set if it is complete; else ``damage`` says why not."""

    file: SnapshotFile
    batches: int = 0
    records: int = 0
    facts: SnapshotFacts | None = None
    types: Types = field(default_factory=dict)
    damage: DataError | SourceError | None = None


class _Noted(BatchWalk):
    """A walk that counts every batch in ``survey``, which has to be set before the iteration."""

    survey: LogSurvey

    def __iter__(self) -> Iterator[FileBatch]:
        for file_batch in super().__iter__():
            self.survey.add_batch(file_batch)
            yield file_batch


def survey_log(
    source: Source,
    until: int | None = None,
    progress: Progress | None = None,
    *,
    decode: bool = True,
    ends: Iterable[int] = (),
) -> LogSurvey:
    """Read the whole log and count what is in it.

    Args:
        source: the source of the log.
        until: the last offset; ``None`` for the log's end.
        progress: called with the bytes that were read.
        decode: whether to decode and count the records, too; batches are verified in any case.
        ends: the offsets for which :attr:`LogSurvey.ends` is filled.
    """
    walk = _Noted(source, 0, until, progress)
    survey = walk.survey = LogSurvey(ends=dict.fromkeys(ends))
    if decode:
        records = DecodedRecords(walk, until=until)
        _count(records, survey.types)
        survey.damage, survey.torn = records.damage, records.torn
    else:
        for _ in walk:
            pass
        survey.damage, survey.torn = walk.damage, walk.torn
    return survey


def survey_snapshot(
    listing: Listing, file: SnapshotFile, *, decode: bool, progress: Progress | None = None
) -> SnapshotSurvey | None:
    """Verify a snapshot; with ``decode`` count its records, too. ``None`` if a running server has deleted it."""
    survey = SnapshotSurvey(file)
    reader = SnapshotReader(file, progress=progress)
    try:
        if decode:
            records = DecodedRecords(reader)
            _count(records, survey.types)
            survey.damage = records.damage[0] if records.damage else None
        else:
            for _ in reader:
                pass
        if survey.damage is None:
            survey.facts = reader.facts()
    except FileNotFoundError:
        return None
    except (DataError, SourceError) as error:
        survey.damage = error.with_traceback(None)
    survey.batches, survey.records = reader.batches, reader.records
    return survey


def _count(records: DecodedRecords, types: Types) -> None:
    """Add all records to ``types``."""
    counts: Counter[tuple[str, int]] = Counter()
    simple: set[tuple[str, int]] = set()
    for offset, _, _, decoded, _, _ in records:
        key = (decoded.name, decoded.version)
        counts[key] += 1
        data = decoded.data
        if data is not None and key in simple and UNKNOWN_TAGS not in data:
            continue
        type_survey = types.setdefault(key, TypeSurvey())
        type_survey.add(offset, decoded)
        if decoded.type is not None and not any(field.is_struct for field in decoded.type.schema.fields):
            simple.add(key)  # no nested structures: the check for unknown tags above is enough for later records
    for key, count in counts.items():
        types[key].count = count


def _has_unknown_tags(value: object) -> bool:
    """Whether a decoded value has unknown tagged fields, at any depth."""
    if isinstance(value, dict):
        return UNKNOWN_TAGS in value or any(map(_has_unknown_tags, value.values()))
    if isinstance(value, list):
        return any(map(_has_unknown_tags, value))
    return False
