"""``orders-3``: which partition, or topic, a word means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from kshell.errors import CommandError, did_you_mean
from kshell.history.story import Story
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.names import decode_name
from kshell.tree.paths import split

if TYPE_CHECKING:
    from kshell.engine.session import Session

_MOST = 200
"""Words that are offered."""
_BY_NAME, _BY_ID = ("image", "topics", "byName"), ("image", "topics", "byId")


class Target(NamedTuple):
    """A topic, or one partition of it."""

    topic: str
    partition: int | None


def target(session: Session, story: Story, text: str) -> Target:
    """What a word means: TOPIC-PARTITION, TOPIC/PARTITION, a path, or a topic's name. Raises CommandError.

    A topic's name may end in a dash and digits: a topic of the whole name comes first.
    """
    names = story.names()
    found = [one for one in _readings(session, story, text) if one.topic in names]
    for one in found:
        if one.partition is None or one.partition in _numbers(story, one.topic):
            return one
    raise _nothing(story, text, found)


def one_partition(session: Session, story: Story, text: str) -> tuple[str, int]:
    """The partition that a word means; a topic's name will do where there is only one. Raises CommandError."""
    names = story.names()
    found = [one for one in _readings(session, story, text) if one.topic in names]
    for one in found:
        if one.partition is not None and one.partition in _numbers(story, one.topic):
            return one.topic, one.partition
    for one in found:
        numbers = _numbers(story, one.topic) if one.partition is None else []
        if len(numbers) == 1:
            return one.topic, numbers[0]
    raise _nothing(story, text, found)


def _readings(session: Session, story: Story, text: str) -> list[Target]:
    found = [Target(text, None)]
    for mark in "-/":
        topic, _, number = text.rpartition(mark)
        if topic and number.isascii() and number.isdigit() and len(number) < 10:
            found.append(Target(topic, int(number)))
    path = split(text, session.cwd)
    if len(path) in (4, 5) and path[:3] in (_BY_NAME, _BY_ID) and (len(path) == 4 or path[4].isdecimal()):
        name = decode_name(path[3]) if path[:3] == _BY_NAME else _named(story, path[3])
        found.append(Target(name, int(path[4]) if len(path) == 5 else None))
    return found


def _named(story: Story, topic_id: str) -> str:
    return next((topic.name for key, topic in story.image[TOPICS].items() if str(key) == topic_id), "")


def _numbers(story: Story, topic: str) -> list[int]:
    topic_id = story.topic_id(topic)
    return [] if topic_id is None else story.numbers(topic_id)


def _nothing(story: Story, text: str, found: list[Target]) -> CommandError:
    for one in found:
        numbers = _numbers(story, one.topic)
        if numbers:
            there = f"{one.topic}-{numbers[0]}" + (f" to {one.topic}-{numbers[-1]}" if len(numbers) > 1 else "")
            reason = (
                "which of its partitions?" if one.partition is None else f"{one.topic} has no partition of that number"
            )
            return CommandError(f"{text}: {reason}", hint=f"there is {there}")
    topics = [one.topic for one in _split(text)]
    listed = "`topics` lists them; a partition is written TOPIC-NUMBER"
    hint = did_you_mean(topics[-1], story.names(), listed, limit=3)
    return CommandError(f"{text}: no such topic or partition, now or in the log", hint=hint)


def _split(text: str) -> list[Target]:
    topic, _, number = text.rpartition("-")
    return [Target(text, None)] + ([Target(topic, int(number))] if topic and number.isdecimal() else [])


def complete_partition(session: Session, typed: str) -> Iterable[str]:
    """Topics with their first partition; all partitions of one whose name and dash were typed."""
    found: list[str] = []
    for name in sorted(session.image[NAMES]):
        if len(found) >= _MOST:
            break
        if typed.startswith(f"{name}-") or name.startswith(typed):
            numbers = session.image[TOPICS][session.image[NAMES][name]].partition_ids()
            wanted = numbers if typed.startswith(f"{name}-") else numbers[:1]
            found += [word for word in (f"{name}-{number}" for number in wanted) if word.startswith(typed)]
    return found[:_MOST]


def complete_target(session: Session, typed: str) -> Iterable[str]:
    """Topics, and partitions as above."""
    names = [name for name in sorted(session.image[NAMES]) if name.startswith(typed)]
    return [*names[:_MOST], *complete_partition(session, typed)]
