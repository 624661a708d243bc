"""The toolbar below the prompt: which source is open, how new its data is, and what is wrong with it."""

from __future__ import annotations

import os
import time

from prompt_toolkit.formatted_text import StyleAndTextTuples

from kshell.engine.levels import node_at
from kshell.engine.session import Session
from kshell.errors import KshellError
from kshell.render.answer import localized_text
from kshell.repl.loading import Loader
from kshell.repl.terminal import clean, shortened, width_of
from kshell.sources.source import Following, Loaded
from kshell.tree.image import provenance
from kshell.tree.node import Leaf

_FRESH = 5.0
"""Seconds for which the problems and notes of the data are cached, as the toolbar is drawn at every key press."""
_GAP = " · "
_VERSION = ("image", "features", "metadataVersion")


class Toolbar:
    """Makes the toolbar: one line about the source, and a second one if there is a problem or note."""

    def __init__(self, session: Session, loader: Loader) -> None:
        self._session = session
        self._loader = loader
        self._cached: tuple[Loaded, float, list[str], list[str]] | None = None

    def render(self, columns: int) -> StyleAndTextTuples:
        """Return the toolbar as styled fragments for a terminal with so many columns."""
        facts = self._facts()
        out = self._first_line(facts, columns)
        style, text = self._worry()
        if text:
            out.append(("", "\n"))
            out.append((style, _fitted(f" {text}", columns)))
        return out

    def _first_line(self, facts: list[str], columns: int) -> StyleAndTextTuples:
        source = clean(self._session.source.name)
        while facts and width_of(_GAP.join(facts)) > columns - min(width_of(source), columns // 3) - 5:
            facts.pop()
        rest = "".join(_GAP + fact for fact in facts)
        name = shortened(source, max(columns - width_of(rest) - 2, 8))
        line = _fitted(f"{rest} ", columns - width_of(name) - 1)
        return [("class:bar.source", f" {name}"), ("class:bar", line)]

    def _facts(self) -> list[str]:
        """Return the facts about the state, the most important first; a narrow terminal leaves out the last ones."""
        session = self._session
        following = session.source.following() if session.until is None else None
        if following is not None and (session.is_loaded or following.end_offset or following.trouble):
            return _live_facts(following)
        if not session.is_loaded:
            return [self._loader.status_text()]
        last = provenance(session.image)
        if not session.source.has_log:
            return [fact for fact in ("what brokers report", self._metadata_version()) if fact]
        if last["offset"] < 0:
            return ["empty"]
        time_of_last = localized_text(str(last["time"] or ""), session.settings.get("timezone")).replace("T", " ")
        facts = [f"as of offset {last['offset']}", time_of_last, f"epoch {last['epoch']}"]
        version = self._metadata_version()
        return [fact for fact in [*facts[:2], version, facts[2]] if fact]

    def _metadata_version(self) -> str:
        try:
            node = node_at(self._session, _VERSION)
            value = node.value() if isinstance(node, Leaf) else None
        except KshellError:
            return ""
        return f"metadata.version {clean(str(value))}" if value else ""

    def _worry(self) -> tuple[str, str]:
        """Return the style and text of the most severe message: a loading error, a problem, a note; else empty."""
        if self._loader.error is not None and not self._session.is_loaded:
            return "class:bar.wrong", self._counted([self._loader.error.message])
        problems, notes = self._problems_and_notes()
        if problems:
            return "class:bar.wrong", self._counted(problems)
        return "class:bar.note", self._counted(notes) if notes else ""

    def _counted(self, sentences: list[str]) -> str:
        """Return the first sentence, with file names in place of full paths, and the number of further ones."""
        path = self._session.source.path
        directory = path if os.path.isdir(path) else os.path.dirname(path)
        more = f" (and {len(sentences) - 1} more: info)" if len(sentences) > 1 else ""
        return clean(sentences[0].replace(os.path.join(directory, ""), "")) + more

    def _problems_and_notes(self) -> tuple[list[str], list[str]]:
        session = self._session
        if not session.is_loaded:
            return [], []
        now = time.monotonic()
        if self._cached is None or self._cached[0] is not session.loaded or now - self._cached[1] > _FRESH:
            self._cached = (session.loaded, now, session.problems(), session.notes())
        return self._cached[2], self._cached[3]


def _live_facts(following: Following) -> list[str]:
    """Return the facts about a live source: leader, epoch, offset and lag; without a leader, the reason."""
    if following.trouble is not None or following.leader_id < 0:
        offset = [f"offset {following.end_offset - 1}"] if following.end_offset else []
        return ["no leader", *offset, clean(following.trouble or "looking for one")]
    return [
        f"leader {following.leader_id}",
        f"epoch {following.leader_epoch}",
        f"offset {following.end_offset - 1}",
        f"lag {following.lag}",
    ]


def _fitted(text: str, columns: int) -> str:
    """Pad a text with blanks, or cut it with ``…``, to exactly so many columns."""
    if width_of(text) <= columns:
        return text + " " * (columns - width_of(text))
    end = len(text)
    while end and width_of(text[:end]) > columns - 1:
        end -= 1
    return text[:end] + "…" if columns > 0 else ""
