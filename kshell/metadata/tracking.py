"""Which values of the image each record writes or removes: the connection from the log's records to paths of the tree.

It is found by replaying the record on a delta that notes changes, so no record type has to declare it separately.
"""

from __future__ import annotations

from kshell.metadata.delta import Delta, Touch
from kshell.metadata.families.markers import ABORT, BEGIN, END
from kshell.metadata.families.quorum import control
from kshell.metadata.families.topics import TOPICS
from kshell.metadata.image import EMPTY, Image
from kshell.metadata.partitions import Topic
from kshell.metadata.records import Decoded, ReplayError
from kshell.metadata.values import Origin


class Tracker:
    """Finds what each record touches. It starts at an image, and must be given every record after it, in order.

    Unlike a replay, it applies records of a metadata transaction at once, because it reports on records of the log,
    whether or not they take effect. When a transaction is aborted, it returns to the state before it.
    """

    def __init__(self, image: Image, *, keeps_old: bool = False) -> None:
        """Start at an image; ``keeps_old`` says whether :meth:`values` will be called."""
        self._keeps_old = keeps_old
        self._delta = Delta(image)
        self._before_transaction: Image | None = None
        self.quorum = Delta(image)
        """What control records have written: they are in no transaction, and in no snapshot from which another tracker
        could begin, so that one takes this over."""
        self._last = self._delta

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of the topic with an id, after the last record; ``None`` if there is none."""
        topic: Topic | None = self._delta.peek(TOPICS).get(topic_id)
        return None if topic is None else topic.name

    def touched(self, decoded: Decoded, origin: Origin) -> list[Touch]:
        """Apply the next record and return what it touches: nothing if it is unknown or does not fit the image."""
        self._mark(decoded.name)
        if decoded.data is None:
            return []
        delta = self._last = self.quorum if decoded.type is None else self._delta
        delta.touched = []
        delta.old = {} if self._keeps_old else None
        try:
            if decoded.type is not None:
                decoded.type.replay(delta, decoded.data, origin)
            else:
                control(delta, decoded.name, decoded.data, origin)
        except ReplayError:
            return []
        return delta.touched

    def values(self, touch: Touch) -> tuple[object, object]:
        """Return the value at a touch of the last record before and after it; ``None``: no value, or not kept."""
        if self._last.old is None:
            return None, None
        return self._last.old.get(touch), self._last.value(touch)

    def _mark(self, name: str) -> None:
        """Begin, end or abort a transaction if the record is such a marker, even one that could not be decoded."""
        before = self._before_transaction
        if name == BEGIN.name and before is None:
            self._before_transaction = self._delta.apply(EMPTY.provenance)
            self._delta = Delta(self._before_transaction)
        elif name in (END.name, ABORT.name) and before is not None:
            self._before_transaction = None
            if name == ABORT.name:
                self._delta = Delta(before)
