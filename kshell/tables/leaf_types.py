"""The types of the tree's leaves: one per family of the image, and those of leaves outside the image."""

from __future__ import annotations

from collections.abc import Iterable

from kshell.engine.session import Session
from kshell.errors import UsageError, did_you_mean
from kshell.metadata.image import families
from kshell.tables.enumeration import Enumeration

_OTHER_TYPES = {
    "provenance": "the last record in the image: offset, epoch, time",
    "partition": "replicas, ISR, leader and epochs of one partition",
    "topicName": "a topic's name",
    "topicId": "a topic's id",
    "version": "kshell's own version",
    "quorum": "one fact of the quorum",
    "voter": "a voter: its id and directory id, its endpoints where the log has them",
    "snapshot": "a snapshot's file: end offset, epoch, size",
    "offset": "an offset of the log",
    "segment": "a segment's file: base offset, size",
    "problem": "a record that is not in the image, and why",
    "unavailable": "why a live source cannot say what would be there",
}
"""Leaf types that no family declares -> what such a leaf has."""


def leaf_types() -> dict[str, str]:
    """Return every leaf type -> what such a leaf has, sorted by name."""
    declared = {family.leaf: f"an entry below /image/{'/'.join(family.path)}" for family in families().values()}
    return dict(sorted((declared | _OTHER_TYPES).items()))


LEAF_TYPE = Enumeration(leaf_types)
"""The column type of leaf types."""


def node_type(name: str) -> str:
    """Return the node type that was typed: ``d``, ``f`` or a leaf's. Raises UsageError, which proposes types."""
    types = leaf_types()
    if name in ("d", "f") or name in types:
        return name
    if name == "directory":
        return "d"
    hint = did_you_mean(name, types, f"d, f, or one of {', '.join(types)}")
    raise UsageError(f"{name}: no node has that type", hint=hint)


def complete_type(session: Session, typed: str) -> Iterable[str]:
    """Complete a node type."""
    return [name for name in ("d", "f", *leaf_types()) if name.startswith(typed)]
