"""Makes a report out of what was collected; how it is written down is the business of others."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import NamedTuple

from kshell.errors import UsageError
from kshell.spark.report.base.cells import said
from kshell.spark.report.base.told import LEVELS, Answers, Attention, Drawing, Scope, Section, Told
from kshell.spark.report.sections import sections

NO_PICTURES = "Without pictures: they need the package matplotlib (pip install 'kraft-shell[spark]')."


class Shown(NamedTuple):
    """A picture: its bytes, what it shows in words, CSS pixels, and what is to be said below it."""

    name: str
    png: bytes
    alt: str
    size: tuple[int, int]
    note: str


class Part(NamedTuple):
    """A section, and what it says."""

    section: Section
    told: Told
    pictures: tuple[Shown, ...]


class Document(NamedTuple):
    """A whole report. ``facts`` say what it was made of; ``notes`` what is missing."""

    title: str
    facts: tuple[str, ...]
    attention: tuple[tuple[Attention, Section], ...]
    parts: tuple[Part, ...]
    notes: tuple[str, ...]


def compose(scope: Scope, answers: Mapping[str, Answers], facts: tuple[str, ...]) -> Document:
    """``answers``: section -> the answers to what it asks."""
    can_draw = importlib.util.find_spec("matplotlib") is not None
    parts = []
    for section in sections():
        told = section.tell(scope, answers[section.name])
        parts.append(Part(section, told, tuple(_pictures(section, told)) if can_draw else ()))
    found = [(one, part.section) for part in parts for one in part.told.attention]
    found.sort(key=lambda one: LEVELS.index(one[0].level))  # else they stay in the order of the sections
    title = "Fleet report" if scope.is_fleet else f"Cluster {scope.cluster}"
    last = max((row["lastTimestampMs"] or 0 for row in answers["overview"]["clusters"]), default=0)
    facts = (*facts, f"records up to {said('time', last)} UTC") if last else facts
    return Document(title, facts, tuple(found), tuple(parts), () if can_draw else (NO_PICTURES,))


def _pictures(section: Section, told: Told) -> list[Shown]:
    made = [_shown(section.name + (f"-{place}" if place else ""), one) for place, one in enumerate(told.drawings)]
    return [one for one in made if one is not None]


def _shown(name: str, drawing: Drawing) -> Shown | None:
    """``None`` where there is nothing to draw: the section's lead says so."""
    from kshell.plots import draw_rows

    try:
        plot = draw_rows(drawing.rows)
    except UsageError:
        return None
    return Shown(name, plot.png(), plot.alt, plot.size, drawing.note)
