"""``min.insync.replicas`` of a partition, as far as the metadata log knows it.

The topic's own value counts, else that of the broker which leads (``BROKER:3``), else that of all brokers (``BROKER``).
What only a ``server.properties`` says is not in the log: then it is unknown, unless somebody says what it is.
"""

from __future__ import annotations

import re

from kshell.metadata.image import Image

CONFIG = "min.insync.replicas"
NUMBER = r"^[\x00-\x20]*\+?0*([0-9]{1,9})[\x00-\x20]*$"
"""What a broker takes for its number (``ConfigDef.parseType``: trimmed as Java does it), for Python and for Java."""


class MinIsr:
    """The values of an image; ``default`` is what the brokers' own files say, ``None`` if nobody knows."""

    def __init__(self, image: Image, default: int | None = None) -> None:
        self._topics: dict[str, int] = {}
        self._brokers: dict[str, int] = {}
        for (kind, name), configs in image["configs"].items():
            entry = configs.get(CONFIG) if kind in ("TOPIC", "BROKER") else None
            value = _number(entry.value) if entry is not None else None
            if value is not None:
                (self._topics if kind == "TOPIC" else self._brokers)[name] = value
        self._default = self._brokers.get("", default)

    def own(self, topic: str) -> int | None:
        """The topic's own value. Where there is none, that of its partitions depends on their leaders alone."""
        return self._topics.get(topic)

    def of(self, topic: str, leader: int | None = None) -> int | None:
        """In-sync replicas that a partition of the topic needs; ``leader`` is the broker that leads it, if one does."""
        own = self._topics.get(topic)
        if own is not None:
            return own
        return self._brokers.get(str(leader), self._default) if len(self._brokers) else self._default


def _number(value: str | None) -> int | None:
    """A config's value; what is no number in range cannot be in force."""
    found = re.match(NUMBER, value or "")
    return int(found[1]) if found is not None else None
