"""Topics and partitions over the offsets of a log: a decision on each partition, and the offsets where it changes.

A decision is any value that a caller computes from a partition and its ``min.insync.replicas``. Most records bring a
partition into a state that other partitions had before. So a decision is made once per state, and the offset of a
record is looked up only where the decision changes. Start with :class:`PartitionPast`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import EMPTY, Image
from kshell.metadata.partition_changes import ALL_BUT_EPOCHS, Aspects
from kshell.metadata.partition_state import MIN_ISR_CONFIG, MinIsr
from kshell.metadata.partitions import Partition, Topic
from kshell.metadata.recorded_topics import RecordedTopic

if TYPE_CHECKING:
    from kshell.metadata.history import History
    from kshell.metadata.records import Undecoded
    from kshell.metadata.versions import Version

T = TypeVar("T")
_MOST_DECISIONS = 1 << 14
_LOOKED_UP = 1 << 10
"""Records that are processed before the offsets of their changes are looked up together."""


class TopicSpan(NamedTuple):
    """A topic and the offsets, from ``start`` up to ``end`` (exclusive), in which its name belonged to it."""

    topic: Topic
    start: int
    end: int


def topic_names(history: History, until: int) -> set[str]:
    """Return the names of all topics that existed up to an offset."""
    return {name for (name,) in history.every_key(NAMES, until)}


def topic_spans(history: History, name: str, until: int) -> Iterator[TopicSpan]:
    """Yield the topics that had a name, oldest first: a topic that is created again is another topic."""
    for start, end, topic_id in _spans(history.timeline(NAMES, (name,), until), until):
        for since, stop, topic in _spans(history.timeline(TOPICS, (topic_id,), until), until):
            low, high = max(start, since), min(end, stop)
            if low < high:
                yield TopicSpan(topic, low, high)


def _spans(versions: Sequence[Version], until: int) -> Iterator[tuple[int, int, Any]]:
    """Yield (start, end, value) of each version that is not ``None``; the end is exclusive."""
    ends = [since for since, _ in versions[1:]] + [until + 1]
    for (since, value), end in zip(versions, ends, strict=True):
        if value is not None:
            yield since, end, value


class MinIsrSpan(NamedTuple):
    """From offset ``start`` on: a topic's own min.insync.replicas, and an index into :attr:`MinIsrPast.of_brokers`."""

    start: int
    own: int | None
    brokers: int


class MinIsrPast:
    """``min.insync.replicas`` over the offsets of a log; ``default`` is as for :class:`.MinIsr`."""

    def __init__(self, history: History, until: int, default: int | None) -> None:
        self._history = history
        self._until = until
        configs: dict[tuple[str, str], list[Version]] = {}
        for resource, key in history.every_key("configs", until):
            if resource[0] == "BROKER" and key == MIN_ISR_CONFIG:
                configs[resource] = history.timeline("configs", (resource, key), until)
        self.starts = sorted({history.first, *(since for past in configs.values() for since, _ in past)})
        """The offsets at which a broker's value, or the cluster-wide default, changes."""
        self.of_brokers: list[MinIsr] = []
        """For each of :attr:`starts`, the brokers' values from there on."""
        for start in self.starts:
            present = {resource: _at(past, start) for resource, past in configs.items()}
            table = {resource: {MIN_ISR_CONFIG: entry} for resource, entry in present.items() if entry is not None}
            self.of_brokers.append(MinIsr(Image({"configs": table}, EMPTY.provenance), default))

    def spans(self, name: str, span: TopicSpan) -> list[MinIsrSpan]:
        """Return a topic's values over its span; one begins where the topic's own or a broker's value changes."""
        resource = ("TOPIC", name)
        own = self._history.timeline("configs", (resource, MIN_ISR_CONFIG), self._until)
        starts = {span.start, *(start for start in self.starts if span.start < start < span.end)}
        starts |= {since for since, _ in own if span.start < since < span.end}
        spans = []
        for start in sorted(starts):
            entry = _at(own, start)
            table = {} if entry is None else {resource: {MIN_ISR_CONFIG: entry}}
            value = MinIsr(Image({"configs": table}, EMPTY.provenance)).own(name)
            spans.append(MinIsrSpan(start, value, bisect_right(self.starts, start) - 1))
        return spans


def _at(versions: Sequence[Version], offset: int) -> object:
    """Return the value that a key has at an offset; ``None`` if it has none."""
    return next((value for since, value in reversed(versions) if since <= offset), None)


class Decisions(Generic[T]):
    """The cached decisions on partitions, for one value of the topic's own ``min.insync.replicas``.

    A partition value is identified by ``id()`` and kept, so that no other object gets the same identity.
    """

    def __init__(self, decide: Callable[[Partition, int | None], T], own: int | None, brokers: MinIsr) -> None:
        self._decide = decide
        self._own = own
        self._brokers = brokers
        self.cached: dict[int, tuple[T, Partition]] = {}

    def add(self, value: Partition) -> tuple[T, Partition]:
        """Decide on a value that is not cached yet."""
        if len(self.cached) >= _MOST_DECISIONS:
            self.cached.clear()
        min_isr = self._own if self._own is not None else self._brokers.of("", value.leader)
        decision = self.cached[id(value)] = self._decide(value, min_isr), value
        return decision


class DecisionStep(NamedTuple, Generic[T]):
    """A change of the decision on a partition at an offset; ``None``: the partition does not exist before, or after."""

    offset: int
    partition: int
    before: T | None
    after: T | None


class PartitionPast(Generic[T]):
    """Decides on the partitions of topics over the offsets of a log: call :meth:`steps` for each span of each topic.

    Args:
        decide: returns the decision on a partition with that value and min.insync.replicas.
        undecoded: returns the decision on a partition whose record cannot be decoded.
        aspects: the properties of a partition that decisions depend on.
    """

    def __init__(
        self,
        history: History,
        min_isr: MinIsrPast,
        decide: Callable[[Partition, int | None], T],
        undecoded: Callable[[], T],
        aspects: Aspects = ALL_BUT_EPOCHS,
    ) -> None:
        self._log = history.log
        self._changes = history.changes
        self._min_isr = min_isr
        self._decide = decide
        self._undecoded = undecoded
        self._aspects = aspects
        self._decisions: dict[tuple[int | None, int], Decisions[T]] = {}

    def forget(self) -> None:
        """Drop all cached decisions: what ``decide`` also depends on, such as the partition's number, changes."""
        self._decisions.clear()

    def steps(self, name: str, span: TopicSpan) -> Iterator[tuple[int, Iterator[DecisionStep[T]]]]:
        """Yield (number, steps) of each partition of a topic in its span; at the span's end each has its last step."""
        topic, log = span.topic, self._log
        recorded = topic.records if isinstance(topic, RecordedTopic) else None
        base = topic if recorded is None else recorded.base
        first = {} if base is None else dict(base.scan())
        min_isrs = self._min_isr.spans(name, span)
        ends = [part.start for part in min_isrs[1:]] + [span.end]
        # Of several records that take effect at the start of a part, only their result counts.
        limits = [(log.limit(part.start), log.limit(end - 1)) for part, end in zip(min_isrs, ends, strict=True)]
        addresses = {} if recorded is None else {_number(key): filed for key, filed in recorded.addresses.items()}
        for number in sorted({*first, *addresses}):
            filed = addresses.get(number, ())
            yield number, self._partition(number, first.get(number), filed, min_isrs, limits, span.end)

    def _partition(
        self,
        number: int,
        first: Partition | Undecoded | None,
        filed: Sequence[int],
        min_isrs: Sequence[MinIsrSpan],
        limits: Sequence[tuple[int, int]],
        end: int,
    ) -> Iterator[DecisionStep[T]]:
        """Yield the steps of one partition; ``filed`` has its records' addresses, ``limits`` the bounds per part."""
        bounds = [(bisect_left(filed, low), bisect_left(filed, high)) for low, high in limits]
        value = first
        begin = first if isinstance(first, Partition) else None
        states = self._changes.states(begin, filed[: bounds[-1][1]], self._aspects)
        index = 0
        before: T | None = None
        for part, (low, high) in zip(min_isrs, bounds, strict=True):
            for passed in islice(states, low - index):
                value = passed
            index = max(index, low)
            decisions = self._of(part)
            after = self._decision(decisions, value)
            if after != before:
                yield DecisionStep(part.start, number, before, after)
                before = after
            cached, add = decisions.cached, decisions.add
            while index < high:
                stop = min(index + _LOOKED_UP, high)
                changes: list[tuple[int, T | None, T]] = []
                # zip() asks for an address first: no state is lost where the addresses end.
                for address, state in zip(filed[index:stop], states, strict=False):
                    after = (cached.get(id(state)) or add(state))[0]
                    if after != before:
                        changes.append((address, before, after))
                        before = after
                offsets = self._log.effective_offsets([address for address, _, _ in changes])
                for offset, (_, old, new) in zip(offsets, changes, strict=True):
                    yield DecisionStep(offset, number, old, new)
                index, value = stop, state
        if before is not None:
            yield DecisionStep(end, number, before, None)

    def _of(self, part: MinIsrSpan) -> Decisions[T]:
        key = part.own, part.brokers
        decisions = self._decisions.get(key)
        if decisions is None:
            decisions = Decisions(self._decide, part.own, self._min_isr.of_brokers[part.brokers])
            self._decisions[key] = decisions
        return decisions

    def _decision(self, decisions: Decisions[T], value: Partition | Undecoded | None) -> T | None:
        if value is None:
            return None
        if not isinstance(value, Partition):
            return self._undecoded()
        return (decisions.cached.get(id(value)) or decisions.add(value))[0]


def topic_configs(history: History, until: int) -> dict[str, list[str]]:
    """Return topic -> the keys of all configs that it had of its own up to an offset."""
    keys: defaultdict[str, list[str]] = defaultdict(list)
    for (kind, name), key in history.every_key("configs", until):
        if kind == "TOPIC":
            keys[name].append(key)
    return keys


def _number(key: bytes) -> int:
    """Return a partition's number from its key in the recorded addresses."""
    return int.from_bytes(key, "big", signed=True)
