"""What fills the log: the number and bytes of its records by type, by topic and by hour, as rows and as bars.

The bytes of a batch, with its header, framing and compression, are shared among its records in proportion to their
size, so that the bytes of all records add up to those of all batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kshell.engine.result import Row, StyledText
from kshell.history.plot import Parts, clip_label
from kshell.history.records import TypeNames
from kshell.metadata.families.configs import TOPIC_CONFIG
from kshell.metadata.families.topics import TOPICS
from kshell.metadata.partition_changes import PARTITION, PARTITION_CHANGE, TOPIC_ID
from kshell.metadata.records import HEAD_SIZE, decode_value
from kshell.protocol.batches import Batch, RawRecord, iter_records
from kshell.protocol.primitives import Uuid
from kshell.sources.points import Since
from kshell.tables.declaration import Field
from kshell.tables.enumeration import Enumeration
from kshell.tree.image import iso

if TYPE_CHECKING:
    from kshell.metadata.image import Image

BY_TYPE, BY_TOPIC, BY_HOUR = "type", "topic", "hour"
_BY = Enumeration((BY_TYPE, BY_TOPIC, BY_HOUR))
FIELDS = (
    Field("by", _BY, "type, topic or hour: each of them has all records", spare=-1),
    Field(
        "name", "string", "the type, the topic (null: records of no topic), or when the hour begins, in UTC", spare=-1
    ),
    Field("records", "int64", "how many records"),
    Field("bytes", "int64", "their bytes in the log, with their share of the batches around them"),
    Field("share", "float64", "of the bytes of all records: 1 is all"),
    Field("timeMs", "int64", "of an hour: when it begins, in milliseconds since 1970", True),
)
_HOUR = 3_600_000
_FRAMING = 7
"""Bytes of a small record in addition to its key and value."""
_TOPIC, _CONFIG, _REMOVE_TOPIC, _CLEAR_ELR = 2, 4, 9, 28
"""API keys of the record types, in addition to the two for partitions, that are about one topic."""


class Weight:
    """A number of records, and their bytes."""

    __slots__ = ("bytes", "records")

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0


class LogWeight:
    """Counts the records of ``types`` (empty: all) from ``since`` to ``until``, and their bytes.

    Call :meth:`count` for each batch in the order of the log, then :meth:`rows` or :func:`draw`. ``topics`` (id ->
    name) names those that the log does not name.
    """

    def __init__(self, topics: Mapping[bytes, str], since: Since, until: int | None, types: frozenset[str]) -> None:
        self.total = Weight()
        self.groups: dict[str, dict[str | int | None, Weight]] = {BY_TYPE: {}, BY_TOPIC: {}, BY_HOUR: {}}
        self.first: int | None = None
        self.last = -1
        self._names = dict(topics)
        self._types = types
        self._since = since
        self._until = until
        self._type_names = TypeNames()

    def count(self, batch: Batch) -> None:
        """Count the records of a batch. Raises DecodeError, MissingCodecError."""
        records = list(iter_records(batch))
        sizes = [_FRAMING + len(record.key or b"") + len(record.value or b"") for record in records]
        total, until = max(sum(sizes), 1), 0
        for record, size in zip(records, sizes, strict=True):
            before, until = until, until + size
            share = batch.size * until // total - batch.size * before // total
            topic = None if batch.is_control else self._topic(record)
            self._add(record, batch.is_control, topic, share)

    def _add(self, record: RawRecord, control: bool, topic: str | None, share: int) -> None:
        is_late = self._until is not None and record.offset > self._until
        if is_late or not self._since.includes(record.offset, record.timestamp):
            return
        name = self._type_names.of(record, control)
        if self._types and name not in self._types:
            return
        self.first = record.offset if self.first is None else self.first
        self.last = record.offset
        hour = None if record.timestamp < 0 else record.timestamp // _HOUR * _HOUR
        for group, key in ((BY_TYPE, name), (BY_TOPIC, topic), (BY_HOUR, hour)):
            weight = self.groups[group].get(key)
            if weight is None:
                weight = self.groups[group][key] = Weight()
            weight.records += 1
            weight.bytes += share
        self.total.records += 1
        self.total.bytes += share

    def _topic(self, record: RawRecord) -> str | None:
        """Return the name of the topic that a record is about, or its id if it has no known name; else ``None``."""
        value = record.value or b""
        if len(value) < HEAD_SIZE or value[0] != 1 or value[2] > 0x7F:
            return None
        if value[1] in (PARTITION, PARTITION_CHANGE):
            topic_id = value[TOPIC_ID]
            return self._names.get(topic_id) or (str(Uuid(topic_id)) if len(topic_id) == 16 else None)
        if value[1] not in (_TOPIC, _CONFIG, _REMOVE_TOPIC, _CLEAR_ELR):
            return None
        data = decode_value(value).data
        if data is None:
            return None
        if value[1] == _TOPIC:
            self._names[bytes(data["topicId"])] = data["name"]
            return str(data["name"])
        if value[1] == _CONFIG:
            return data["resourceName"] if data["resourceType"] == TOPIC_CONFIG else None
        if value[1] == _REMOVE_TOPIC:
            return self._names.get(bytes(data["topicId"])) or str(data["topicId"])
        return data["topicName"] or None

    def rows(self) -> Iterator[Row]:
        """Yield the rows of all groups: types and topics with the most bytes first, then hours in order."""
        for group, weights in self.groups.items():
            for key, weight in self.ordered(group, weights):
                is_hour = isinstance(key, int)
                yield {
                    "by": group,
                    "name": iso(key) if isinstance(key, int) else key,
                    "records": weight.records,
                    "bytes": weight.bytes,
                    "share": round(weight.bytes / max(self.total.bytes, 1), 6),
                    "timeMs": key if is_hour else None,
                }

    def ordered(self, group: str, weights: Mapping[str | int | None, Weight]) -> list[tuple[str | int | None, Weight]]:
        """Return the weights of a group in the order in which they are shown."""
        if group == BY_HOUR:
            return sorted(weights.items(), key=lambda item: -1 if item[0] is None else int(item[0]))
        return sorted(weights.items(), key=lambda item: (-item[1].bytes, str(item[0] or "")))


def topic_names(image: Image) -> dict[bytes, str]:
    """Return topic id -> name of an image's topics."""
    return {bytes(topic_id): topic.name for topic_id, topic in image[TOPICS].items()}


# --- bars ------------------------------------------------------------------------------------------------------------

_MOST = 15
_STEPS = (1, 2, 3, 6, 12, 24, 48, 96, 168, 336, 672)
"""Possible numbers of hours per bar; the smallest that needs no more than ``_MOST_BARS`` bars is used."""
_MOST_BARS = 24
_NUMBERS = 28
"""Characters of a line for records, bytes and share."""
_LEAST_BAR = 10
_EIGHTHS = " ▏▎▍▌▋▊▉█"


class _Bar(NamedTuple):
    label: str
    records: int
    size: int


def draw(weight: LogWeight, width: int, *, plain: bool, timezone: str = "UTC") -> list[Parts]:
    """Draw bars: lines of parts, at most ``width`` characters wide unless that is very little.

    Args:
        weight: what was counted.
        width: of a line, in columns.
        plain: ASCII only.
        timezone: of the beginnings of hours, as :func:`kshell.engine.zones.zone` takes it.
    """
    total = weight.total
    if weight.first is None:
        return [["no records"]]
    head = f"{total.records:,} records, {_size(total.bytes)}, offsets {weight.first} to {weight.last}"
    lines: list[Parts] = [[head]]
    for group, title in ((BY_TYPE, "Type"), (BY_TOPIC, "Topic")):
        ordered = weight.ordered(group, weight.groups[group])
        bars = [_Bar("(no topic)" if key is None else str(key), item.records, item.bytes) for key, item in ordered]
        rest = bars[_MOST:]
        if len(rest) > 1:
            text = f"({len(rest)} more)"
            bars[_MOST:] = [_Bar(text, sum(bar.records for bar in rest), sum(bar.size for bar in rest))]
        lines += [[], *_bars(title, bars, total.bytes, width, plain)]
    hours, step = _by_time(weight, timezone)
    if hours:
        period = "Hour" if step == 1 else f"{step} hours from" if step < 24 else f"{step // 24} d from"
        lines += [[], *_bars(f"{period} ({timezone})", hours, total.bytes, width, plain)]
    return lines


def _by_time(weight: LogWeight, timezone: str) -> tuple[list[_Bar], int]:
    """Return one bar per period, empty ones included, and how many hours a period has."""
    hours = {key: item for key, item in weight.groups[BY_HOUR].items() if isinstance(key, int)}
    if not hours:
        return [], 1
    span = (max(hours) - min(hours)) // _HOUR + 1
    step = next((step for step in _STEPS if span / step <= _MOST_BARS - 1), -(-span // (_MOST_BARS - 1)))
    length = step * _HOUR
    sums: dict[int, tuple[int, int]] = {}
    for key, item in hours.items():
        at = key // length * length
        records, size = sums.get(at, (0, 0))
        sums[at] = records + item.records, size + item.bytes
    starts = range(min(sums), max(sums) + 1, length)
    labels = [iso(at) or str(at) for at in starts]
    if timezone != "UTC":
        from kshell.engine.zones import text_in_zone  # late: zones take as long to import as all of log

        labels = [text_in_zone(label, timezone) for label in labels]
    labels = [label[:16].replace("T", " ") for label in labels]
    return [_Bar(label, *sums.get(at, (0, 0))) for label, at in zip(labels, starts, strict=True)], step


def _bars(title: str, bars: list[_Bar], total: int, width: int, plain: bool) -> Iterator[Parts]:
    widest = max(8, width - _NUMBERS - _LEAST_BAR)
    labels = [clip_label(bar.label, widest, plain) for bar in bars]
    name = max(map(len, [title, *labels]))
    room = max(_LEAST_BAR, width - name - _NUMBERS)
    largest = max((bar.size for bar in bars), default=0) or 1
    yield [f"{title:<{name}}{'records':>10}{'size':>10}{'share':>7}"]
    for label, bar in zip(labels, bars, strict=True):
        share = bar.size / max(total, 1)
        numbers = f"{label:<{name}}{bar.records:>10,}{_size(bar.size):>10}{share:>7.1%} "
        yield [numbers, StyledText(_filled(bar.size / largest * room, plain), "series1")]


def _filled(length: float, plain: bool) -> str:
    """Draw a bar of ``length`` characters, in eighths of a character unless it is plain."""
    if plain:
        return "#" * max(round(length), length > 0)
    eighths = max(round(length * 8), int(length > 0))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _size(count: int) -> str:
    """Write bytes in the largest unit that is not below one, with one decimal: ``1.5 KiB``."""
    for size, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
