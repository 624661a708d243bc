"""The formats of answers: each is declared once, here and rendered by the module of :mod:`kshell.render` that it names.

Options, completion, settings, help, the renderers and ``watch`` take them from here.
"""

from __future__ import annotations

from typing import NamedTuple


class Format(NamedTuple):
    """How answers can be printed.

    Attributes:
        name: what ``-o`` takes.
        module: the module of :mod:`kshell.render` whose ``FORMATS`` has it.
        between: what separates an answer from the one before it, where a command gives several (``watch``).
        one_header: whether several answers have one header together.
    """

    name: str
    module: str
    between: str = ""
    one_header: bool = False


FORMATS = {
    declared.name: declared
    for declared in (
        Format("text", "text", between="\n"),
        Format("wide", "text", between="\n"),
        Format("record", "record", between="\n"),
        Format("json", "json_format"),
        Format("jsonl", "json_format"),
        Format("yaml", "yaml_format", between="---\n"),
        Format("csv", "delimited", one_header=True),
        Format("tsv", "delimited", one_header=True),
        Format("markdown", "markdown", between="\n"),
        Format("html", "html"),
    )
}
