"""The history of a session's log, for commands and tables that ask about the whole past."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kshell.errors import CommandError
from kshell.metadata.history import History

if TYPE_CHECKING:
    from kshell.engine.session import Session


class RecordedPast(NamedTuple):
    """The history of a log up to the offset that the session shows.

    Attributes:
        history: every value with the offset at which it took effect.
        until: the last offset that counts.
    """

    history: History
    until: int

    @property
    def start(self) -> int:
        """The offset of the state before the log's first record; -1 if that state is empty."""
        return self.history.base.provenance.offset

    def timestamp(self, offset: int) -> int:
        """Return an offset's time in epoch milliseconds; of :attr:`start`, the time of the snapshot's last record."""
        log = self.history.log
        return log.timestamp(offset) if offset >= log.start else self.history.base.provenance.timestamp


def begins_after_damage(start: int) -> str:
    """The sentence about a history that begins behind damage, at offset ``start``."""
    return (
        f"the log before offset {start} is damaged or incomplete: before that, a snapshot has the state, but no events"
    )


def recorded_past(session: Session, name: str) -> RecordedPast:
    """Return the history of the session's log. The log is read once, however often this is called.

    Damage in the log is noted in the session.

    Args:
        session: its source is read, up to the offset that it shows.
        name: the command or table that asks, for error messages.

    Raises:
        SourceError: the source has no log.
        CommandError: the log cannot be replayed, or the session shows an offset before the log.
    """
    session.source.require_log(name)
    session.travels()
    past = session.past
    assert past is not None
    recorded = past.up_to(session.until, session.progress)
    if recorded is None:
        _ = session.loaded  # loading raises the error that explains it, if there is one
        raise CommandError(
            "the log cannot be replayed from its start", hint="`info` says why; `stat` knows the last record of a value"
        )
    history = recorded.history
    until = min(history.log.end - 1, session.loaded.last_offset) if session.until is None else session.until
    if until < history.log.start - 1:
        _ = session.loaded
        raise CommandError(f"offset {until} is before the log's start: what wrote the values is not known")
    session.note_damage(recorded.damage)
    if recorded.begins_after_damage:
        session.remark(begins_after_damage(history.log.start))
    return RecordedPast(history, until)
