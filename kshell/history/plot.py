"""``timeline``: leaders and ISR sizes over time, drawn in characters: two lines per partition, time from left to right.

Each character position is a period. If several states fall into one, it shows the worst: no leader rather than any
leader (of several leaders the last), and the smallest ISR.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kshell.engine.result import StyledText
from kshell.tree.image import format_duration, iso

_LEVELS = "▁▂▃▄▅▆▇█"
_SERIES = 7
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LEAST = 20
"""Character positions that the time axis has at least."""
Parts = list[str]


class LeadershipSpan(NamedTuple):
    """A period without a change of leader (-1: none) or ISR size: from ``start`` up to ``end``, epoch milliseconds."""

    start: int
    end: int
    leader: int
    isr_size: int
    replicas: int


class PartitionLane(NamedTuple):
    """A partition's spans, oldest first; a gap is a time when the partition did not exist or is not known."""

    label: str
    spans: list[LeadershipSpan]


class Signs(NamedTuple):
    """The characters of a drawing: that of each broker's leadership, of no leader, and of the ISR's size."""

    brokers: dict[int, str]
    ascii: bool

    @property
    def none(self) -> str:
        """The character for no leader."""
        return "!" if self.ascii else "✗"

    def level(self, cell: LeadershipSpan) -> str:
        """Return the character for the ISR: its size as a digit in ASCII, else a block as high as its share."""
        if self.ascii:
            return str(cell.isr_size) if cell.isr_size < 10 else "+"
        if cell.isr_size == 0:
            return self.none
        share = min(1.0, cell.isr_size / max(cell.replicas, 1))
        return _LEVELS[max(0, round(share * len(_LEVELS)) - 1)]


def signs(lanes: Sequence[PartitionLane], *, plain: bool) -> Signs:
    """Choose the characters: a broker below 10 is its own digit, others get letters, or ``?`` once letters run out."""
    brokers = sorted({span.leader for lane in lanes for span in lane.spans if span.leader >= 0})
    letters = iter(_LETTERS)
    return Signs({broker: str(broker) if broker < 10 else next(letters, "?") for broker in brokers}, plain)


def draw(lanes: Sequence[PartitionLane], start: int, end: int, width: int, *, plain: bool) -> list[Parts]:
    """Draw partitions from ``start`` to ``end`` (epoch milliseconds) as lines of parts.

    Lines are at most ``width`` characters wide unless that is very little. ``plain``: ASCII only.
    """
    marks = signs(lanes, plain=plain)
    widest = max(8, width - _LEAST - 9)
    labels = [clip_label(lane.label, widest, plain) for lane in lanes]
    name = max(map(len, labels), default=0)
    columns = max(_LEAST, width - name - 9)
    lines: list[Parts] = []
    for label, lane in zip(labels, lanes, strict=True):
        cells = _cells(lane.spans, start, end, columns)
        lines.append([f"{label:<{name}}  leader ", *_joined([_leader(cell, marks) for cell in cells])])
        lines.append([f"{'':<{name}}  ISR    ", *_joined([_isr(cell, marks) for cell in cells])])
    return [*lines, *_axis(start, end, name + 9, columns, plain), *_legend(marks, start, end, columns, width)]


def clip_label(label: str, widest: int, plain: bool) -> str:
    """Cut a label to ``widest`` characters in its middle, since its end distinguishes the partitions of a topic."""
    label = "".join(char if char.isprintable() and (char.isascii() or not plain) else "?" for char in label)
    if len(label) <= widest:
        return label
    end = widest // 2
    return label[: widest - end - 1] + ("~" if plain else "…") + label[len(label) - end :]


def _cells(spans: Sequence[LeadershipSpan], start: int, end: int, columns: int) -> list[LeadershipSpan | None]:
    """Return what each character position shows of the spans there; ``None`` where no span is."""
    cells: list[LeadershipSpan | None] = [None] * columns
    length = max(end - start, 1)
    for span in spans:
        if span.end < start or span.start > end:
            continue
        first = min(columns - 1, max(0, (span.start - start) * columns // length))
        last = min(columns - 1, max(first, -(-(min(span.end, end) - start) * columns // length) - 1))
        for at in range(first, last + 1):
            cells[at] = _worst(cells[at], span)
    return cells


def _worst(old: LeadershipSpan | None, new: LeadershipSpan) -> LeadershipSpan:
    """Return the worse of two states in the same position: no leader if either has none, and the smaller ISR."""
    if old is None:
        return new
    leader = -1 if -1 in (old.leader, new.leader) else new.leader
    return new._replace(leader=leader, isr_size=min(old.isr_size, new.isr_size))


def _tone(leader: int, marks: Signs) -> str:
    return f"series{list(marks.brokers).index(leader) % _SERIES + 1}"


def _leader(cell: LeadershipSpan | None, marks: Signs) -> str:
    if cell is None:
        return " "
    if cell.leader < 0:
        return StyledText(marks.none, "error")
    return StyledText(marks.brokers[cell.leader], _tone(cell.leader, marks))


def _isr(cell: LeadershipSpan | None, marks: Signs) -> str:
    if cell is None:
        return " "
    tone = "error" if cell.leader < 0 or cell.isr_size == 0 else _tone(cell.leader, marks)
    return StyledText(marks.level(cell), tone)


def _joined(chars: list[str]) -> Parts:
    """Join neighbouring characters of the same tone into one part."""
    parts: Parts = []
    for char in chars:
        tone = char.tone if isinstance(char, StyledText) else ""
        last = parts[-1] if parts else None
        if last is not None and (last.tone if isinstance(last, StyledText) else "") == tone:
            parts[-1] = StyledText(last + char, tone) if tone else last + char
        else:
            parts.append(char)
    return parts


def _axis(start: int, end: int, indent: int, columns: int, plain: bool) -> list[Parts]:
    """Return the time axis and the times at its ends: on one line, or on two where there is little room."""
    first_label, last_label = iso(start) or "", iso(end) or ""
    rule = ("+" + "-" * (columns - 2) + "+") if plain else "└" + "─" * (columns - 2) + "┘"
    gap = columns - len(first_label) - len(last_label)
    if gap >= 1:
        return [[" " * indent + rule], [" " * indent + first_label + " " * gap + last_label]]
    return [[" " * indent + rule], [f"from {first_label}"], [f"to   {last_label}"]]


def _legend(marks: Signs, start: int, end: int, columns: int, width: int) -> list[Parts]:
    """Return the lines that explain the characters, broken to fit the width."""
    entries: Parts = [
        StyledText(sign if sign == str(broker) else f"{sign} = {broker}", _tone(broker, marks))
        for broker, sign in marks.brokers.items()
    ]
    line: Parts = ["leader: broker "] if entries else []
    for entry in entries:
        line += [entry, " "]
    line += [StyledText(f"{marks.none} none", "error")]
    full = "ISR: how many are in sync" if marks.ascii else "ISR: █ all replicas … ▁ few"
    span = format_duration((end - start) / columns)
    lines: list[Parts] = [line, [f"{full}; a column is {span}, and shows the worst of it"]]
    return [broken for unbroken in lines for broken in _broken(unbroken, width)]


def _broken(line: Parts, width: int) -> list[Parts]:
    """Break a line at blanks into lines of at most ``width`` characters."""
    lines: list[Parts] = [[]]
    used = 0
    for part in line:
        for number, text in enumerate(part.split(" ")):
            piece = text if number == 0 else f" {text}"
            if used and used + len(piece) > width:
                lines.append([])
                piece, used = text, 0
            if piece:
                lines[-1].append(StyledText(piece, part.tone) if isinstance(part, StyledText) else piece)
                used += len(piece)
    return [wrapped for wrapped in lines if "".join(wrapped).strip()]
