"""The second stage of a report: turn the collected rows into a :class:`Document`, for any output format."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kshell.errors import UsageError
from kshell.plots import draw_rows
from kshell.spark.report.section import LEVELS, Answers, Attention, ReportSection, Scope, SectionContent, text_of
from kshell.spark.report.sections import sections

NO_PICTURES = "Without pictures: they need the package matplotlib (pip install 'kraft-shell[spark]')."


class RenderedPicture(NamedTuple):
    """A picture: its file's name without ending, bytes, a description, the size in CSS pixels, and a note below it."""

    name: str
    png: bytes
    alt: str
    size: tuple[int, int]
    note: str


class ComposedSection(NamedTuple):
    """A section's declaration with its content and its pictures (none without matplotlib)."""

    section: ReportSection
    content: SectionContent
    pictures: tuple[RenderedPicture, ...]


class Document(NamedTuple):
    """A whole report. ``facts`` say where its data is from, ``notes`` what is missing; ``attention``: worst first."""

    title: str
    facts: tuple[str, ...]
    attention: tuple[tuple[Attention, ReportSection], ...]
    parts: tuple[ComposedSection, ...]
    notes: tuple[str, ...]


def compose(scope: Scope, answers: Mapping[str, Answers], facts: tuple[str, ...]) -> Document:
    """Describe each section by its ``answers``, draw its pictures, and sort what needs attention by level."""
    can_draw = importlib.util.find_spec("matplotlib") is not None
    parts = []
    for section in sections():
        content = section.describe(scope, answers[section.name])
        parts.append(ComposedSection(section, content, tuple(_pictures(section, content)) if can_draw else ()))
    attention = [(item, part.section) for part in parts for item in part.content.attention]
    attention.sort(key=lambda pair: LEVELS.index(pair[0].level))  # a stable sort: sections keep their order
    title = "Fleet report" if scope.is_fleet else f"Cluster {scope.cluster}"
    last = max((row["lastTimestampMs"] or 0 for row in answers["overview"]["clusters"]), default=0)
    facts = (*facts, f"records up to {text_of('time', last)} UTC") if last else facts
    return Document(title, facts, tuple(attention), tuple(parts), () if can_draw else (NO_PICTURES,))


def _pictures(section: ReportSection, content: SectionContent) -> Iterator[RenderedPicture]:
    """Draw a section's pictures. One with nothing to draw is left out: the section's lead says so already."""
    for number, drawing in enumerate(content.drawings):
        name = section.name + (f"-{number}" if number else "")
        with contextlib.suppress(UsageError):
            plot = draw_rows(drawing.rows)
            yield RenderedPicture(name, plot.png(), plot.alt, plot.size, drawing.note)
