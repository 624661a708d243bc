"""Comparison of a snapshot with the log before it; where they disagree, a replay goes on with the snapshot's values.

Both describe the same offset, and mostly they agree. But a node that was down replays what it missed as one
``MetadataDelta``, and Kafka's deltas lose the order of changes: a topic that was created, configured and removed within
one delta leaves its configs in the image, and in every snapshot that the node writes from then on. The node's own state
is its snapshot and the log after it, so a replay that passes a snapshot takes over the snapshot's values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kshell.metadata.delta import Delta, Touch
from kshell.metadata.families.topics import NAMES, TOPICS, drop
from kshell.metadata.image import Image, Table, families, keys_of_both
from kshell.metadata.partitions import Topic
from kshell.metadata.records import Undecoded
from kshell.metadata.values import Entry, Provenance

ONLY_LOG, ONLY_SNAPSHOT, OTHER_VALUE = "only in the log", "only in the snapshot", "another value in the snapshot"


class LogCheckpoint(NamedTuple):
    """A snapshot that ends within the log, so that a replay of the log will pass its end offset (exclusive)."""

    end_offset: int
    file: str
    """The name of the snapshot file, as in the origins of its values."""
    load: Callable[[], Image | None]
    """Loads the snapshot's image; returns ``None`` if it is damaged."""


class Disagreement(NamedTuple):
    """A value that differs between a snapshot and the log before it."""

    touch: Touch
    difference: str
    """One of :data:`ONLY_LOG`, :data:`ONLY_SNAPSHOT`, :data:`OTHER_VALUE`."""


class PassedCheckpoint(NamedTuple):
    """A snapshot inside the log that a replay has passed, with the result of the comparison."""

    file: str
    provenance: Provenance
    disagreements: list[Disagreement]


def take_over(delta: Delta, snapshot: Image) -> list[Disagreement]:
    """Change the state of a replay to that of a snapshot which ends at the same offset.

    Args:
        delta: the state after all records before the snapshot's end. Changes are noted in it as those of records are.
        snapshot: the image of the snapshot alone.

    Returns:
        Every difference that there was; an empty list if the snapshot agrees with the log.
    """
    differences = list(_topics(delta, snapshot))
    for name in families():
        differences += _table(delta, name, snapshot[name])
    return differences


def _difference(here: object, there: object) -> str:
    if here is None:
        return ONLY_SNAPSHOT
    return ONLY_LOG if there is None else OTHER_VALUE


def _table(delta: Delta, family: str, snapshot: Table) -> list[Disagreement]:
    """Give a family's table the values of the snapshot's; return the differences."""
    differences: list[Disagreement] = []
    for key in list(keys_of_both(delta.peek(family), snapshot)):
        here, there = delta.peek(family).get(key), snapshot.get(key)
        if isinstance(here or there, Entry):
            if here != there:
                _set(delta, family, key, there)
                differences.append(Disagreement(Touch(family, (key,)), _difference(here, there)))
            continue
        below, above = here or {}, there or {}
        for name in list(keys_of_both(below, above)):
            if below.get(name) != above.get(name):
                differences.append(
                    Disagreement(Touch(family, (key, name)), _difference(below.get(name), above.get(name)))
                )
                _set_inner(delta, family, key, name, above.get(name))
    return differences


def _set(delta: Delta, family: str, key: object, entry: Entry[object] | None) -> None:
    if entry is None:
        delta.drop(family, key)
    else:
        delta.put(family, key, entry.value, entry.origin)


def _set_inner(delta: Delta, family: str, key: object, name: object, entry: Entry[object] | None) -> None:
    if entry is None:
        delta.drop_inner(family, key, name)
    else:
        delta.put_inner(family, key, name, entry.value, entry.origin)


def _topics(delta: Delta, snapshot: Image) -> Iterator[Disagreement]:
    """Replace each topic that differs by the snapshot's, with all its partitions; yield the differences."""
    for topic_id in list(keys_of_both(delta.peek(TOPICS), snapshot[TOPICS])):
        here: Topic | None = delta.peek(TOPICS).get(topic_id)
        there: Topic | None = snapshot[TOPICS].get(topic_id)
        if here is not None and there is not None and here.agrees(there):
            continue
        if here is not None and (there is None or there.name != here.name):
            yield Disagreement(Touch(TOPICS, (topic_id, here.name)), ONLY_LOG)
            drop(delta, here)
        elif here is not None and there is not None:
            for number in here.differing(there):
                mine, theirs = here.partition(number), there.partition(number)
                if theirs is None or not isinstance(theirs.value, Undecoded):  # newer than kshell: not a difference
                    yield Disagreement(Touch(TOPICS, (topic_id, here.name, number)), _difference(mine, theirs))
        if there is not None:
            if here is None or there.name != here.name:
                yield Disagreement(Touch(TOPICS, (topic_id, there.name)), ONLY_SNAPSHOT)
            delta.touch(TOPICS, topic_id, there.name)
            delta.table(TOPICS)[topic_id] = there.copy()
            delta.table(NAMES)[there.name] = topic_id
