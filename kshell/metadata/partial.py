"""Images of sources that do not report everything: what takes the place of a value that is not known.

Brokers answer for much of the metadata and not for all of it. A field of a leaf that they do not report is the string
:data:`NOT_AVAILABLE`; a whole subtree is named in the table :data:`MISSING` with a sentence that says why, and the tree
shows that sentence in its place.
"""

from __future__ import annotations

from typing import Any

from kshell.metadata.values import BatchPosition, Origin

NOT_AVAILABLE = "not available from brokers"
UNREPORTED: Any = NOT_AVAILABLE
"""The same, for a field that is declared with another type."""
MISSING = "missing"
"""Table: segments below ``/image`` -> the sentence in its place."""


def reported_by(node: str, api: str, version: int) -> Origin:
    """The origin of a value that no record is known of: which node reported it, in the answer of which API."""
    return Origin(-1, -1, api, version, BatchPosition(node, -1, -1, False))


def is_node_reported(origin: Origin) -> bool:
    """Whether a node reported the value, so that the record that wrote it is not known (:func:`reported_by`)."""
    return origin.offset < 0


def reported_or_none(value: Any) -> Any:
    """Return the value for a row: null where the source does not report it."""
    return None if is_unreported(value) else value


def is_unreported(value: Any) -> bool:
    """Whether it takes the place of a value that the source does not report."""
    return isinstance(value, str) and value == NOT_AVAILABLE
