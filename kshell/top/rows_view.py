"""A textual widget for a table (or text) with any number of rows, which makes only the visible rows.

textual's own ``DataTable`` would hold every cell of every row, but a topic may have a million partitions. Texts are
drawn unchanged, without interpreting markup in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kshell.render.cells import blanks, cells, clip
from kshell.top.panels import Opening, PanelColumn, PanelRows, lines

_SAMPLE: Final = 300
"""The number of rows that decide the widths of columns; wider cells further down are cut."""
_GAP: Final = 2
_MOST: Final = 0.3
"""The largest share of a line for a column other than the one that fills the rest."""
_TONES: Final = {
    "critical": Style(color="red", bold=True),
    "error": Style(color="red"),
    "warning": Style(color="yellow"),
}


class RowsView(ScrollView, can_focus=False):
    """The widget that shows a :class:`PanelRows`, given to :meth:`show`; the screen draws its :meth:`head`.

    It posts :class:`Chosen` and :class:`LaidOut`. It has no keys of its own: the screen moves its cursor.
    """

    DEFAULT_CSS = "RowsView { overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; }"

    class Chosen(Message):
        """The user has chosen the cursor's row with a second click."""

    class LaidOut(Message):
        """The widths of the columns, and so the text of :meth:`head`, have changed."""

    def __init__(self, *, colored: bool) -> None:
        super().__init__()
        self.cursor = 0
        """The index of the cursor's row among the filtered rows."""
        self._colored = colored
        self._listing: PanelRows = lines(())
        self._indexes: Sequence[int] = ()
        self._widths: list[int] = []

    def show(self, listing: PanelRows, indexes: Sequence[int] | None, cursor: int) -> None:
        """Show a listing, or only its rows with these ``indexes``; ``cursor`` is a :attr:`position` from before."""
        self._listing = listing
        self._indexes = range(len(listing)) if indexes is None else indexes
        self.cursor = max(0, min(cursor, len(self._indexes) - 1))
        self._lay_out()
        if self._is_text:
            self.scroll_to(y=cursor, animate=False)
        else:
            self._follow()

    @property
    def _is_text(self) -> bool:
        return not self._listing.columns

    @property
    def position(self) -> int:
        """The position of the user: the cursor's row, or the first visible line of a text."""
        return self.scroll_offset.y if self._is_text else self.cursor

    def on_resize(self) -> None:
        """Compute the widths of the columns for the new size."""
        self._lay_out()
        self._follow()
        self.post_message(self.LaidOut())

    def _lay_out(self) -> None:
        columns = self._listing.columns
        # The last column of the screen is reserved for the scroll bar, so that nothing moves when it appears.
        room = max(self.size.width - 1, 1)
        self.virtual_size = Size(room, len(self._indexes))
        if columns:
            sample = [self._listing.cells(index) for index in self._indexes[:_SAMPLE]]
            self._widths = _widths(columns, sample, room)
        self.refresh()

    def head(self) -> str:
        """Return the line with the names of the columns, aligned with the rows; empty for a text."""
        columns = self._listing.columns
        return self._row(tuple(column.name for column in columns)) if columns else ""

    def _row(self, row: tuple[str, ...]) -> str:
        parts = []
        for column, text, width in zip(self._listing.columns, row, self._widths, strict=True):
            cut = clip(text, width)
            parts.append(blanks(cut, width) + cut if column.right else cut + blanks(cut, width))
        return (" " * _GAP).join(parts)

    def render_line(self, y: int) -> Strip:
        """Render the line ``y`` of the widget."""
        position, width = self.scroll_offset.y + y, self.size.width
        if position >= len(self._indexes):
            return Strip.blank(width, self.rich_style)
        index = self._indexes[position]
        row = self._listing.cells(index)
        text = row[0] if self._is_text else self._row(row)
        style = self.rich_style
        if self._colored:
            style += _TONES.get(self._listing.tone(index), Style())
        if position == self.cursor and not self._is_text:
            style += Style(reverse=True)
        return Strip([Segment(text, style)]).adjust_cell_length(width, style)

    # --- moving --------------------------------------------------------------------------------------------------

    def move(self, rows: int) -> None:
        """Move the cursor, or scroll a text, by so many rows."""
        if self._is_text:
            self.scroll_to(y=self.scroll_offset.y + rows, animate=False)
            return
        self.cursor = max(0, min(self.cursor + rows, len(self._indexes) - 1))
        self._follow()
        self.refresh()

    def page(self, pages: int) -> None:
        """Move a screenful up or down."""
        self.move(pages * max(self.size.height - 1, 1))

    def end(self, last: bool) -> None:
        """Go to the first or the last row."""
        self.move(len(self._indexes) if last else -len(self._indexes))

    @property
    def opening(self) -> Opening | None:
        """The page of the cursor's row; ``None`` if it has none."""
        return None if self._is_text or not self._indexes else self._listing.opens(self._indexes[self.cursor])

    def on_click(self, event: object) -> None:
        """Move the cursor to the clicked row; if it is there already, choose the row."""
        y = getattr(event, "y", 0) + self.scroll_offset.y
        if y >= len(self._indexes) or self._is_text:
            return
        if y == self.cursor:
            self.post_message(self.Chosen())
        else:
            self.move(y - self.cursor)

    def _follow(self) -> None:
        if not self._is_text:
            self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)


def _widths(columns: tuple[PanelColumn, ...], sample: list[tuple[str, ...]], room: int) -> list[int]:
    """Return the widths of the columns: as wide as their cells, within a limit; the filling column gets the rest."""
    most = max(round(room * _MOST), 1)
    widths = [min(max(map(cells, texts)), most) for texts in zip([each.name for each in columns], *sample, strict=True)]
    filling = next(number for number, column in enumerate(columns) if column.fills)
    widths[filling] = max(room - (sum(widths) - widths[filling]) - _GAP * (len(columns) - 1), 0)
    return widths
