"""The last stage of a report: choose the files from a path and formats, and write them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from kshell.errors import CommandError, UsageError
from kshell.spark.report.compose import Document
from kshell.spark.report.markdown import markdown
from kshell.spark.report.page import page

HTML, MARKDOWN = "html", "markdown"
_ENDINGS = {".html": HTML, ".htm": HTML, ".md": MARKDOWN, ".markdown": MARKDOWN}
_NAME = "report"


def target_of(place: str, formats: Iterable[str] = ()) -> dict[str, str]:
    """Choose files (format -> path): ``report.html`` and ``report.md`` in a directory, or one with a known ending.

    ``formats``: only these; empty: all. Raises UsageError if the file's ending says another format.
    """
    wanted, ending_format = set(formats), _ENDINGS.get(os.path.splitext(place)[1].lower())
    if ending_format is None or os.path.isdir(place):
        names = {HTML: f"{_NAME}.html", MARKDOWN: f"{_NAME}.md"}
        return {name: os.path.join(place, file) for name, file in names.items() if not wanted or name in wanted}
    if wanted - {ending_format}:
        raise UsageError(f"{place}: its ending says {ending_format}", hint="--to DIR takes both formats")
    return {ending_format: place}


def write(document: Document, target: Mapping[str, str]) -> list[tuple[str, int]]:
    """Write the files of :func:`target_of`, and pictures in a directory beside the Markdown file.

    Returns path and size in bytes of each. Raises CommandError if that fails.
    """
    files: list[tuple[str, bytes]] = []
    if HTML in target:
        files.append((target[HTML], page(document).encode()))
    if MARKDOWN in target:
        folder = os.path.splitext(target[MARKDOWN])[0] + "-pictures"
        files.append((target[MARKDOWN], markdown(document, os.path.basename(folder)).encode()))
        pictures = (picture for part in document.parts for picture in part.pictures)
        files += [(os.path.join(folder, f"{picture.name}.png"), picture.png) for picture in pictures]
    try:
        for path, data in files:
            os.makedirs(os.path.dirname(path) or os.curdir, exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
    except OSError as error:
        raise CommandError(f"{error.filename}: {error.strerror or type(error).__name__}") from None
    return [(path, len(data)) for path, data in files]
