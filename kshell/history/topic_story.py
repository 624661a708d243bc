"""``why`` for a topic: its creation, its configs and the main events of its partitions, and its state in a sentence.

Only events of partitions that matter to an operator are included: a leader lost or elected again, an unclean election,
a recovery, a reassignment. Changes of the ISR and ordinary changes of leader are in the story of each partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from kshell.engine.result import Row, typed
from kshell.history.explain import Event, event_row, holds_since, is_from, partition_events, since
from kshell.history.story import NODE_KINDS, AnyRevision, Partitions, Revision, Story, successive
from kshell.metadata.partial import reported_or_none
from kshell.metadata.partition_state import ONLINE, MinIsr, problems, state
from kshell.metadata.partitions import Partition
from kshell.metadata.redaction import Redaction
from kshell.protocol.primitives import Uuid
from kshell.sources.points import Since
from kshell.tree.image import epoch_ms, iso

EVENT_COLUMNS = typed("offset:int64 time:timestamp timeMs:int64 type:string event:string partition:int32 what:string")
PARTITION_COLUMNS = typed(
    "partition:int32 state:string sinceOffset:int64 sinceTime:timestamp sinceTimeMs:int64 leader:int32 isr:[int32]"
    " replicas:[int32]"
)
_EVENTS = frozenset(
    (
        "leader-lost",
        "leader-elected",
        "unclean-election",
        "recovered",
        "reassignment-started",
        "reassignment-ended",
        "reassignment-cancelled",
    )
)


class TopicStory(NamedTuple):
    """What is known of a topic: its creation and deletion, its partitions by number, and its own configs by key.

    Revisions are oldest first. Those of ``configs`` include configs of earlier topics of the same name.
    """

    name: str
    topic_id: Uuid
    lifetime: list[Revision[str]]
    partitions: dict[int, Partitions]
    configs: dict[str, list[Revision[str]]]

    @property
    def deleted(self) -> Revision[str] | None:
        """The topic's deletion; ``None`` if it exists."""
        last = self.lifetime[-1] if self.lifetime else None
        return last if last is not None and last.value is None else None


def topic_story(story: Story, name: str, topic_id: Uuid) -> TopicStory:
    """Return all that is known of a topic."""
    chronicle = story.chronicle
    lifetime = [] if chronicle is None else chronicle.topic(topic_id)
    keys = [] if chronicle is None else chronicle.config_keys(name)
    configs = {key: story.values("configs", (("TOPIC", name), key), "CONFIG_RECORD") for key in keys}
    return TopicStory(name, topic_id, lifetime, dict(sorted(story.partitions(topic_id).items())), configs)


def topic_rows(topic: TopicStory, redaction: Redaction, first: Since | None) -> list[Row]:
    """Return one row per event, oldest first; ``first``: only events from this point on."""
    start = topic.lifetime[0].offset if topic.lifetime else -1
    end = None if topic.deleted is None else topic.deleted.since
    events: list[tuple[Event, int | None]] = [(event, None) for event in _lifetime(topic)]
    for key, revisions in topic.configs.items():
        own = [revision for revision in revisions if revision.offset >= start and (end is None or revision.since < end)]
        events += [(event, None) for event in _config_events(key, own, redaction)]
    for number, partitions in topic.partitions.items():
        for event in partition_events(partitions):
            if event.event in _EVENTS:
                events.append((event, number))
    events.sort(key=lambda item: (item[0].at.offset, item[0].at.since))
    return [event_row(event) | {"partition": number} for event, number in events if is_from(event, first)]


def _lifetime(topic: TopicStory) -> Iterator[Event]:
    """Yield the topic's creation, the addition of partitions, and the topic's deletion."""
    created = topic.lifetime[0] if topic.lifetime else None
    if created is not None and created.value is not None:
        initial = [number for number, revisions in topic.partitions.items() if revisions[0].time == created.time]
        if created.since < 0:
            yield Event(created, "snapshot", f"as a snapshot has it: {_partitions(len(initial))}")
        else:
            yield Event(created, "created", f"created with {_partitions(len(initial))}")
    added: dict[int, list[int]] = {}
    for number, revisions in topic.partitions.items():
        if created is not None and revisions[0].time != created.time:
            added.setdefault(revisions[0].time, []).append(number)
    for numbers in added.values():
        listed = f"number {numbers[0]}" if len(numbers) == 1 else f"numbers {numbers[0]} to {numbers[-1]}"
        first = topic.partitions[numbers[0]][0]
        yield Event(first, "partitions-added", f"{_partitions(len(numbers))} added, {listed}: now {numbers[-1] + 1}")
    if topic.deleted is not None:
        yield Event(topic.deleted, "deleted", "the topic is deleted")


def _config_events(key: str, revisions: list[Revision[str]], redaction: Redaction) -> Iterator[Event]:
    for before, revision in successive(revisions):
        if revision.since < 0:
            continue
        old = None if before is None else before.value
        new = revision.value
        texts = [None if value is None else redaction.config("TOPIC", key, value) for value in (old, new)]
        if new is None:
            yield Event(revision, "config-removed", f"{key} removed, was {texts[0]}")
        elif old is None:
            yield Event(revision, "config-set", f"{key} = {texts[1]}")
        else:
            yield Event(revision, "config-changed", f"{key} {texts[0]} -> {texts[1]}")


def partition_states(topic: TopicStory, least: MinIsr) -> list[Row]:
    """Return each partition's present state and since when it has it.

    Past states are compared with ``least``, today's minimum.
    """
    rows: list[Row] = []
    for number, revisions in topic.partitions.items():
        value = revisions[-1].value
        if value is None:
            continue
        present = _state(value, topic.name, least)
        start = _since(revisions, topic.name, least)
        at = start if start is not None and start.since >= 0 else None
        rows.append(
            {
                "partition": number,
                "state": present,
                "sinceOffset": None if at is None else at.offset,
                "sinceTime": None if at is None else iso(at.time),
                "sinceTimeMs": None if at is None else epoch_ms(at.time),
                "leader": reported_or_none(value.leader),
                "isr": list(value.isr),
                "replicas": list(value.replicas),
            }
        )
    return rows


def _state(value: Partition, name: str, least: MinIsr) -> str:
    return state(problems(value, least.of(name, value.leader)))


def _since(revisions: Partitions, name: str, least: MinIsr) -> AnyRevision | None:
    """Return the revision from which on a partition is in its present state, by the present min.insync.replicas."""
    last = revisions[-1].value
    if last is None:
        return None
    present = _state(last, name, least)
    return holds_since(revisions, lambda value: value is not None and _state(value, name, least) == present)


def topic_sentence(topic: TopicStory, rows: list[Row], least: MinIsr) -> str:
    """Summarize a topic's state from the rows of :func:`partition_states`, and name the commands that say more."""
    if topic.deleted is not None:
        at = topic.deleted
        return f"The topic {topic.name} was deleted at offset {at.offset}, {iso(at.time) or 'at a time not known'}."
    counts = Counter(row["state"] for row in rows)
    if not rows:
        return f"The topic {topic.name} has no partition that can be read."
    if set(counts) == {ONLINE}:
        has = f"The topic {topic.name} has {_partitions(len(rows))}"
        lagging = [row["partition"] for row in rows if not set(row["replicas"]) <= set(row["isr"])]
        if not lagging:
            return f"{has}, with every replica in sync."
        moved = "1 is" if len(lagging) == 1 else f"{len(lagging)} are"
        text = f"{has}, all online; {moved} being reassigned, and not every replica is in sync"
        return f"{text}: {_commands(topic.name, lagging)}"
    sentences = []
    for name in sorted(set(counts) - {ONLINE}):
        numbers = [row["partition"] for row in rows if row["state"] == name]
        starts = [start for number in numbers if (start := _since(topic.partitions[number], topic.name, least))]
        earliest = min(starts, key=lambda start: start.offset, default=None)
        verb = "is" if len(numbers) == 1 else "are"
        text = f"{len(numbers)} of {_partitions(len(rows))} {verb} {name}"
        span = f" {since(earliest)}" if len(numbers) == 1 else f", the first of them {since(earliest)}"
        sentences.append(f"{text}{span}: {_commands(topic.name, numbers)}")
    if counts[ONLINE]:
        sentences.append(f"The other {_partitions(counts[ONLINE])} {'is' if counts[ONLINE] == 1 else 'are'} online.")
    return " ".join(sentences)


def _commands(topic: str, numbers: list[int]) -> str:
    """Return the end of a sentence: the commands that show more of some partitions."""
    dash = "/" if topic in NODE_KINDS else "-"  # `why broker-1` is about a broker
    some = ", ".join(f"`why {topic}{dash}{number}`" for number in numbers[:3])
    return f"{some}{' …' if len(numbers) > 3 else ''}."


def _partitions(count: int) -> str:
    return f"{count} {'partition' if count == 1 else 'partitions'}"
