"""The declaration of a picture (:func:`picture`), and a drawn one (:class:`Plot`) to show, embed in HTML, or save.

Importing this module does not import matplotlib.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Container
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from kshell.engine.result import Row
from kshell.errors import CommandError, UsageError
from kshell.escape import html
from kshell.plots.theme import own_settings
from kshell.plots.vega import MIME

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from kshell.json_text import JsonObject


class Drawn(NamedTuple):
    """A figure with its alternative text: a few sentences that say what it shows. Names in the text are escaped."""

    figure: Figure
    alt: str


class Picture(NamedTuple):
    """A declared picture, made with :func:`picture`.

    Attributes:
        draw: draws at least one row; raises :class:`NothingToDraw`.
        needs: the columns that a result must have, all of them.
        any_of: columns; a result must have at least one of them; empty for no such condition.
        commands: examples of commands with this picture, for a hint.
        spec: makes a Vega-Lite chart of the same rows, for ``plot(interactive=True)``; ``None`` if there is none.
    """

    name: str
    draw: Callable[[list[Row]], Drawn]
    needs: tuple[str, ...]
    any_of: tuple[str, ...]
    commands: tuple[str, ...]
    spec: Callable[[list[Row]], JsonObject] | None = None


class NothingToDraw(Exception):
    """The rows hold nothing to draw. :func:`kshell.plots.draw` converts it to a UsageError."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.hint = hint


DECLARED: dict[str, Picture] = {}
"""Every picture whose module was imported, by name; :func:`kshell.plots.declared_pictures` imports them all."""

_Draw = TypeVar("_Draw", bound=Callable[[list[Row]], Drawn])


def picture(
    name: str,
    *,
    needs: tuple[str, ...],
    any_of: tuple[str, ...] = (),
    commands: tuple[str, ...] = (),
    spec: Callable[[list[Row]], JsonObject] | None = None,
) -> Callable[[_Draw], _Draw]:
    """Declare the decorated function as the way to draw a picture. See :class:`Picture`.

    Raises:
        ValueError: a picture of this name is declared already.
    """

    def declare(draw: _Draw) -> _Draw:
        if name in DECLARED:
            raise ValueError(f"the picture {name!r} is declared twice")
        DECLARED[name] = Picture(name, draw, needs, any_of, commands, spec)
        return draw

    return declare


def number(value: Any) -> float | None:
    """Convert a value of a row to a number; ``None`` if it is no finite number."""
    if value is None or isinstance(value, (bool, str)):
        return None
    try:
        converted = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return converted if abs(converted) < float("inf") else None  # NaN fails that, too


_SCALE = 2
"""Pixels of a PNG per CSS pixel, as on usual high-resolution screens."""


class Plot:
    """A drawn picture, without background, readable on white and on dark pages.

    Attributes:
        figure: a matplotlib Figure that is not registered with pyplot.
        alt: the alternative text.
        spec: a Vega-Lite chart, which notebooks that support it show in place of the figure; ``None`` if there is none.
    """

    def __init__(self, figure: Figure, alt: str, spec: JsonObject | None = None) -> None:
        self.figure = figure
        self.alt = alt
        self.spec = spec

    def __repr__(self) -> str:
        return self.alt

    @property
    def size(self) -> tuple[int, int]:
        """Width and height on a page, in CSS pixels."""
        width, height = self.figure.get_size_inches() * self.figure.dpi
        return round(width), round(height)

    def png(self) -> bytes:
        """The picture as a PNG; the same bytes for the same rows."""
        page = io.BytesIO()
        with own_settings():
            self.figure.savefig(page, format="png", dpi=self.figure.dpi * _SCALE, metadata={"Software": None})
        return page.getvalue()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file; its extension is the format (``png``, ``svg``, ``pdf``, …).

        Raises UsageError for an unknown extension, CommandError if the file cannot be written.
        """
        from pathlib import Path

        ending = Path(path).suffix.removeprefix(".").lower()
        formats = self.figure.canvas.get_supported_filetypes()
        if ending not in formats:
            raise UsageError(
                f"a picture cannot be saved as {ending or 'a file without an ending'}",
                hint=f"endings that are formats: {', '.join(sorted(formats))}",
            )
        undated = {
            "svg": {"Date": None},
            "svgz": {"Date": None},
            "pdf": {"CreationDate": None},
            "png": {"Software": None},
        }
        try:
            with own_settings():
                self.figure.savefig(path, format=ending, dpi=self.figure.dpi * _SCALE, metadata=undated.get(ending))
        except OSError as error:
            raise CommandError(f"the picture cannot be written: {error.strerror or type(error).__name__}") from None

    def to_html(self) -> str:
        """Return an ``<img>`` element with the picture as embedded data, and its alternative text."""
        width, height = self.size
        return (
            f'<img src="data:image/png;base64,{self._base64()}" alt="{html(self.alt)}" width="{width}"'
            f' height="{height}" style="max-width: 100%; height: auto">'
        )

    def _base64(self) -> str:
        import base64

        return base64.b64encode(self.png()).decode("ascii")

    def _repr_mimebundle_(
        self, include: Container[str] | None = None, exclude: Container[str] | None = None
    ) -> tuple[JsonObject, JsonObject]:
        """Return the forms that a notebook shows and saves, by MIME type, and their metadata."""
        width, height = self.size
        formats: dict[str, Callable[[], Any]] = {"image/png": self._base64, "text/plain": self.__repr__}
        if self.spec is not None:
            formats[MIME] = lambda: self.spec
        wanted = [kind for kind in formats if (not include or kind in include) and not (exclude and kind in exclude)]
        about = {"image/png": {"width": width, "height": height, "alt": self.alt}}
        return {kind: formats[kind]() for kind in wanted}, {kind: about[kind] for kind in wanted if kind in about}
