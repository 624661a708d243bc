"""The recorded past of a session's source, for whoever asks about all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kshell.errors import CommandError
from kshell.metadata.history import History

if TYPE_CHECKING:
    from kshell.engine.session import Session


class RecordedPast(NamedTuple):
    """What a log made, up to the offset that the session shows.

    Attributes:
        history: every value with the offset from which it held.
        until: the last offset that counts.
    """

    history: History
    until: int

    @property
    def start(self) -> int:
        """The offset at which the state before the log's first record is so: -1 for an empty one."""
        return self.history.base.provenance.offset

    def timestamp(self, offset: int) -> int:
        """When the record at an offset was written, in epoch milliseconds; of the start, the snapshot's last record."""
        log = self.history.log
        return log.timestamp(offset) if offset >= log.start else self.history.base.provenance.timestamp


def recorded_past(session: Session, name: str) -> RecordedPast:
    """The past of the session's source. The log is read once for all who ask. Damage in it becomes the session's.

    Args:
        session: what asks.
        name: what it is asked for, for errors.

    Raises:
        SourceError: the source does not know the log.
        CommandError: the log cannot be replayed, or the session shows an offset before it.
    """
    session.source.demand_log(name)
    session.travels()
    past = session.past
    assert past is not None
    known = past.history(session.progress)
    if known is None:
        _ = session.loaded  # which says what is wrong, if anything is
        raise CommandError(
            "the log cannot be replayed from its start", hint="`info` says why; `stat` knows the last record of a value"
        )
    history = known[0]
    until = history.log.end - 1 if session.until is None else session.until
    if until < history.log.start - 1:
        _ = session.loaded
        raise CommandError(f"offset {until} is before the log's start: what wrote the values is not known")
    session.note_damage(past.damage)
    return RecordedPast(history, until)
