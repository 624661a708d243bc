"""The formats of answers: each is declared once, here and rendered by the module of :mod:`kshell.render` that it names.

Options (``kshell-pipeline``'s, too), completion, settings, help, the renderers and ``watch`` take them from here.
"""

from __future__ import annotations

from typing import NamedTuple


class Format(NamedTuple):
    """How answers can be printed.

    Attributes:
        name: what ``-o`` takes.
        about: what `help formats` says of it.
        module: the module of :mod:`kshell.render` whose ``FORMATS`` has it.
        between: what separates an answer from the one before it, where a command gives several (``watch``).
        one_header: whether several answers have one header together.
        is_text: whether it is made to be read at a terminal: times are of the user's zone there.
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
