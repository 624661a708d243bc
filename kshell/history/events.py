"""The SQL tables ``events`` (one row per log record) and ``config_changes`` (one row per change of a config)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from kshell.engine.result import Row
from kshell.history.diff import ADDED, CHANGE, CHANGED, REMOVED
from kshell.history.recorded import recorded_past
from kshell.history.records import (
    FIELDS,
    TIME,
    RecordsWithPaths,
    end_notes,
    malformed_records,
    record_row,
    with_paths,
    without_log,
)
from kshell.history.versions import settled, states_of
from kshell.metadata.families.configs import Resource
from kshell.metadata.image import Image
from kshell.metadata.redaction import config_is_secret
from kshell.sources.directory.records import log_records
from kshell.tables.declaration import ColumnarRows, Field, FieldNames, Table, tables
from kshell.tree.image import iso
from kshell.tree.paths import join

if TYPE_CHECKING:
    from kshell.engine.session import Session

_PATH = Field("path", "string", "where the tree shows what the record touches; null for nothing")
_RECORD = {field.name: field for field in FIELDS}
_EVENT_FIELDS = (
    *(_RECORD[name] for name in ("offset", "epoch", "timestampMs")),
    TIME,
    _RECORD["type"],
    _RECORD["version"],
    _PATH,
    _RECORD["data"],
)
_CONFIG = {field.name: field for field in tables()["configs"].fields}
_CONFIG_CHANGE_FIELDS = (
    Field("offset", "int64", "from where on it is so: of the record; of a transaction, of its end"),
    Field("epoch", "int32", "the leader's, when that record was written"),
    Field("timestampMs", "int64", "when, in milliseconds since 1970"),
    TIME,
    _CONFIG["resourceType"],
    _CONFIG["resourceName"],
    _CONFIG["name"],
    Field("change", CHANGE, "added, changed or removed"),
    Field("before", "string", "the value before; null if it was not set; [redacted] if it is secret"),
    Field("after", "string", "the value from there on; null if it is not set any more, as when its topic is removed"),
)


class _EventRows(ColumnarRows):
    """One row per record of the log, oldest first, control records and NoOps included.

    Records that cannot be read are left out and noted as damage.
    """

    def __init__(self, session: Session, image: Image, wanted: FieldNames) -> None:
        """Begin to read the log; ``image`` is not used. Raises SourceError if it cannot be read at all."""
        _note_missing_log(session)
        self._session = session
        self._wanted = wanted
        self._records = log_records(session.source, until=session.until, progress=session.progress)
        self._records.begin()

    def __iter__(self) -> Iterator[Row]:
        session, wanted = self._session, self._wanted
        records: RecordsWithPaths = ((record, []) for record in self._records)
        if wanted is None or "path" in wanted:
            records = with_paths(session, self._records, 0)
        with_data = wanted is None or "data" in wanted
        for record, touched in records:
            row = {
                "offset": record.offset,
                "epoch": record.epoch,
                "timestampMs": record.timestamp,
                "time": iso(record.timestamp),
                "type": record.decoded.name,
                "version": record.decoded.version,
                "path": join(touched[0].path) if touched else None,
            }
            yield {**row, **record_row(session, record)} if with_data else row
        self._conclude()

    def record_batches(self, fields: Sequence[Field]) -> Iterator[Any]:
        """Yield the rows as record batches, most of whose records are decoded together."""
        from kshell.history.event_columns import event_batches  # late: it needs numpy

        yield from event_batches(self._session, self._records, fields)
        self._conclude()

    def _conclude(self) -> None:
        malformed = malformed_records(self._records)
        damage = self._records.damage
        self._session.note_damage(damage if malformed is None else [malformed, *damage])
        self._session.remarks += end_notes(self._records)


def _note_missing_log(session: Session) -> None:
    """Note, once, that a source is a snapshot alone: that there are no rows does not mean that nothing happened."""
    if (missing := without_log(session)) is not None:
        session.remark(missing)


def config_change_rows(session: Session, image: Image, wanted: FieldNames) -> Iterator[Row]:
    """Yield one row per change of a config, oldest first. A secret that is set again counts as changed."""
    past = recorded_past(session, "config_changes")
    _note_missing_log(session)
    log, redact = past.history.log, session.redaction.config
    changes: list[tuple[int, Resource, str, str | None, str | None]] = []
    """(offset, resource, name, value before and after), not redacted."""
    for (resource, name), states in states_of(past, "configs"):
        before: str | None = None
        is_secret = config_is_secret(resource[0], name)
        for offset, entry in settled(states):
            after: str | None = None if entry is None else entry.value
            is_set_again = is_secret and before is not None and after is not None
            if offset >= log.start and (after != before or is_set_again):
                changes.append((offset, resource, name, before, after))
            before = after
    for offset, (kind, resource_name), name, before, after in sorted(changes, key=itemgetter(0)):
        yield {
            "offset": offset,
            "epoch": log.place(offset).epoch,
            "timestampMs": log.timestamp(offset),
            "time": iso(log.timestamp(offset)),
            "resourceType": kind,
            "resourceName": resource_name,
            "name": name,
            "change": ADDED if before is None else REMOVED if after is None else CHANGED,
            "before": redact(kind, name, before),
            "after": redact(kind, name, after),
        }


EVENTS_TABLE = Table("events", "the records of the log, and what each touches", _EVENT_FIELDS, _EventRows, ())
CONFIG_CHANGES_TABLE = Table(
    "config_changes", "the changes of configs: before and after", _CONFIG_CHANGE_FIELDS, config_change_rows, ()
)
