"""CSV and TSV lines out of plain values, for answers as well as for files.

CSV follows RFC 4180, but with ``\\n`` between records as Unix tools have it; null is an empty field, an empty string is
``""``, nested values are JSON. TSV escapes instead of quoting, so a row is always one line. What a terminal or a
spreadsheet would interpret is escaped (:mod:`kshell.escape`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kshell import escape
from kshell.json_text import to_json


def csv_line(values: Sequence[object]) -> str:
    """Return a row of plain values as a line of CSV."""
    # A row with one empty field would be an empty line, which readers skip.
    return (",".join(map(_csv_field, values)) or '""') + "\n"


def _csv_field(value: object) -> str:
    if value is None:
        return ""
    return escape.csv_field(escape.csv(value) if isinstance(value, str) else _scalar(value))


def tsv_line(values: Sequence[object]) -> str:
    """Return a row of plain values as a line of TSV."""
    return "\t".join(escape.tsv(value if isinstance(value, str) else _scalar(value)) for value in values) + "\n"


def _scalar(value: object) -> str:
    """Write a value that is no string, not yet escaped: ``""`` for null, compact JSON for nested values."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return to_json(value) if isinstance(value, Mapping | list | tuple) else repr(value)
