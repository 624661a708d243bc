"""Which values of the image a record writes or removes: what ties the log's records to paths of the tree.

Found by replaying each record on a delta of its own that takes notes, so a record type says it nowhere twice.
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
    """Begins at an image and must be given every record after it, in order.

    Records of an open metadata transaction are taken as they come: they are in the log, whatever becomes of them. What
    follows an aborted one meets the image from before it.
    """

    def __init__(self, image: Image, *, keeps_old: bool = False) -> None:
        """``keeps_old``: whether :meth:`values` will be asked for."""
        self._keeps_old = keeps_old
        self._delta = Delta(image)
        self._before_transaction: Image | None = None

    def topic_name(self, topic_id: bytes) -> str | None:
        """The name of the topic that has an id now."""
        topic: Topic | None = self._delta.peek(TOPICS).get(topic_id)
        return None if topic is None else topic.name

    def touched(self, decoded: Decoded, origin: Origin) -> list[Touch]:
        """What the record touches; nothing for one that changes nothing, is not known, or does not fit."""
        self._mark(decoded.name)
        if decoded.data is None:
            return []
        self._delta.touched = []
        self._delta.old = {} if self._keeps_old else None
        try:
            if decoded.type is not None:
                decoded.type.replay(self._delta, decoded.data, origin)
            else:
                control(self._delta, decoded.name, decoded.data, origin)
        except ReplayError:
            return []
        return self._delta.touched

    def values(self, touch: Touch) -> tuple[object, object]:
        """What the last record found where it touched, and what it left there; ``None`` for nothing, or not kept."""
        if self._delta.old is None:
            return None, None
        return self._delta.old.get(touch), self._delta.value(touch)

    def _mark(self, name: str) -> None:
        """Act on a transaction's marker, one that cannot be decoded too, as the replayer does."""
        before = self._before_transaction
        if name == BEGIN.name and before is None:
            self._before_transaction = self._delta.apply(EMPTY.provenance)
            self._delta = Delta(self._before_transaction)
        elif name in (END.name, ABORT.name) and before is not None:
            self._before_transaction = None
            if name == ABORT.name:
                self._delta = Delta(before)
