"""Placeholders for values that a source does not report, in images made from the answers of brokers.

Brokers report much of the metadata, but not all of it. A field that they do not report has the string
:data:`NOT_AVAILABLE` as its value. For a whole subtree, the table :data:`MISSING` of the image has a sentence that says
why, which the tree shows in its place.
"""

from __future__ import annotations

from typing import Any, TypeVar

from kshell.metadata.values import BatchPosition, Origin

_Id = TypeVar("_Id")
NOT_AVAILABLE = "not available from brokers"
UNREPORTED: Any = NOT_AVAILABLE
""":data:`NOT_AVAILABLE`, typed so that it can be the value of any field."""
MISSING = "missing"
"""Name of a table of the image: path segments of a subtree below ``/image`` -> the sentence shown in its place."""


def reported_by(node: str, api: str, version: int) -> Origin:
    """Return the origin of a value whose record is not known: the node that reported it, and the API of its answer."""
    return Origin(-1, -1, api, version, BatchPosition(node, -1, -1, False))


def is_node_reported(origin: Origin) -> bool:
    """Whether the value was reported by a node (:func:`reported_by`), so that the record that wrote it is not known."""
    return origin.offset < 0


def reported_or_none(value: object) -> Any:
    """Return a value for a row of a table: ``None`` where the source does not report it."""
    return None if is_unreported(value) else value


def reported_ids(values: tuple[_Id, ...] | str) -> tuple[_Id, ...]:
    """Return the ids of brokers or directories; none where the source does not report them."""
    return () if isinstance(values, str) else values


def is_unreported(value: object) -> bool:
    """Whether this is the placeholder of a value that the source does not report."""
    return isinstance(value, str) and value == NOT_AVAILABLE
