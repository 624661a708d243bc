"""What a session knows of partitions over time: the log's history, and the image where the log does not tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kshell.history.lifetimes import Brokers, Chronicle, Held, Partitions
from kshell.metadata.families.cluster import BROKERS, Broker
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import Image
from kshell.metadata.partial import is_untold
from kshell.metadata.partitions import Partition
from kshell.protocol.primitives import Uuid
from kshell.tables.declaration import image_for

if TYPE_CHECKING:
    from kshell.engine.session import Session

T = TypeVar("T")
STATE = -2
"""``since`` of what only an image tells: a state whose beginning is not known."""


class Story(NamedTuple):
    """``chronicle`` is ``None`` where there is no log to ask; ``reach`` says what is known of the past."""

    image: Image
    chronicle: Chronicle | None
    reach: str

    def names(self) -> set[str]:
        """Every topic there is, or ever was in the log."""
        return {*self.image[NAMES], *(self.chronicle.names() if self.chronicle else ())}

    def topic_id(self, name: str) -> Uuid | None:
        """The newest topic of that name."""
        present: Uuid | None = self.image[NAMES].get(name)
        if present is None and self.chronicle is not None:
            past = self.chronicle.topic_ids(name)
            return past[-1] if past else None
        return present

    def older_ids(self, name: str) -> list[Uuid]:
        """The topics that had the name before, and were deleted."""
        past = self.chronicle.topic_ids(name) if self.chronicle else []
        return [one for one in past if one != self.topic_id(name)]

    def numbers(self, topic_id: Uuid) -> list[int]:
        """The partitions that a topic has, or had when it was deleted."""
        topic = self.image[TOPICS].get(topic_id)
        if topic is not None:
            present: list[int] = topic.partition_ids()
            return present
        return self.chronicle.numbers(topic_id) if self.chronicle else []

    def partition(self, topic_id: Uuid, number: int) -> Partitions:
        """All that is known of one partition, oldest first."""
        return self.partitions(topic_id, number).get(number, [])

    def partitions(self, topic_id: Uuid, only: int | None = None) -> dict[int, Partitions]:
        """Partition (all, or ``only`` one) -> what is known of it, oldest first."""
        found = self.chronicle.partitions(topic_id, only) if self.chronicle else {}
        topic = self.image[TOPICS].get(topic_id)
        for number in () if topic is None else topic.partition_ids() if only is None else (only,):
            entry = None if topic is None else topic.partition(number)
            if entry is not None and isinstance(entry.value, Partition):
                told = found.get(number, [])
                if not told or told[-1].value != entry.value:
                    found[number] = [*told, self._state(entry.value)]
        return found

    def broker(self, broker_id: int) -> Brokers:
        """A broker's registrations, oldest first."""
        found = self.chronicle.broker(broker_id) if self.chronicle else []
        entry = self.image[BROKERS.name].get(broker_id)
        value: Broker | None = None if entry is None else entry.value
        if value is not None and (not found or found[-1].value != value):
            found = [*found, self._state(value)]
        return found

    def end(self) -> tuple[int, int]:
        """Offset and time of the last record that counts; (-1, -1) where a source tells neither."""
        last = self.image.provenance
        return max(self.chronicle.end(), (last.offset, last.timestamp)) if self.chronicle else last[::2]

    def _state(self, value: T) -> Held[T]:
        last = self.image.provenance
        return Held(value, STATE, last.offset, last.timestamp, None)


def story_of(session: Session, name: str) -> Story:
    """The story of a session's source up to the moment that it shows; ``name`` is the command. Raises KshellError."""
    if not session.source.has_log:
        image = image_for(session, name, ("topics", "brokers"))
        return Story(image, None, "brokers tell the present state alone; what came before is in the log (-q, -d)")
    from kshell.sources.past import Past  # late: it brings all that replays

    session.travels()
    past = session.past or Past(session.source)
    if not session.source.is_live:  # first, so that the image need not be made of the same log once more
        past.history(session.progress)
    image = session.image
    known = past.history(session.progress)
    if known is None:
        return Story(image, None, "the log cannot be replayed from its start: only the state is known, not its past")
    end = session.loaded.log_end_offset
    until = session.until if session.until is not None else (end or known[0].log.end) - 1
    chronicle = Chronicle(known[0], until)
    return Story(image, chronicle, _reach(chronicle))


def _reach(chronicle: Chronicle) -> str:
    if chronicle.starts_with_snapshot:
        return f"the log starts at offset {chronicle.start}: of what was before, a snapshot gives the state, no events"
    return "the log is there from its first record"


def told(values: tuple[int, ...] | str) -> tuple[int, ...]:
    """Broker ids; none where a source does not tell them."""
    return () if isinstance(values, str) or is_untold(values) else values
