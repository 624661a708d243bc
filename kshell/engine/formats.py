"""The declarations of all output formats (``-o``). The module of :mod:`kshell.render` that a format names renders it.

The options (also those of ``kshell-pipeline``), completion, settings, help, the renderers and ``watch`` use this list.
"""

from __future__ import annotations

from typing import NamedTuple


class Format(NamedTuple):
    """The declaration of an output format.

    Attributes:
        name: the value of ``-o``.
        about: its description in `help formats`.
        module: the module of :mod:`kshell.render` whose ``FORMATS`` has the renderers.
        between: the text between two answers of one command (``watch``).
        one_header: whether only the first of several answers has a header line.
        is_text: whether it is for reading at a terminal, so that times are in the user's time zone.
    """

    name: str
    module: str
    about: str
    between: str = ""
    one_header: bool = False
    is_text: bool = False


FORMATS = {
    declared.name: declared
    for declared in (
        Format("text", "text", "for a terminal; columns that do not fit are left out", between="\n", is_text=True),
        Format("wide", "text", "as text, with every column, however long the lines are", between="\n", is_text=True),
        Format("record", "record", "one field per line, every column", between="\n", is_text=True),
        Format("json", "json_format", "one value, indented; exact"),
        Format("jsonl", "json_format", "one object per line; for jq, and for long answers"),
        Format("yaml", "yaml_format", "exact, and easy to read", between="---\n"),
        Format("csv", "delimited", "for spreadsheets; formulas are made harmless", one_header=True),
        Format("tsv", "delimited", "tabs between columns; for cut and awk", one_header=True),
        Format("markdown", "markdown", "tables for issues and runbooks", between="\n"),
        Format("html", "html", "a page without scripts"),
    )
}
