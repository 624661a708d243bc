"""The hash of an image: two sources that hold the same metadata at the same offset have the same one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache

from kshell.metadata.image import Image
from kshell.metadata.partitions import Partition
from kshell.metadata.redaction import Redaction
from kshell.metadata.values import plain
from kshell.tree.image import TopicDirectory, image_directory
from kshell.tree.node import Directory, Leaf, Node
from kshell.tree.paths import Segments, join, walk

PREFIX = "sha256:"
"""Stands before the digits. Another recipe would have another prefix, so that hashes of two recipes never match."""
_PROVENANCE = ("image", "provenance")
_LINES_AT_ONCE = 1000

_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def image_hash(image: Image, path: Segments = ("image",)) -> str:
    """Hash every leaf of an image, secret values included: only their hash leaves.

    SHA-256 over the lines ``path TAB value LF`` in the order of their bytes. The value is JSON with sorted keys and
    without spaces, in UTF-8. ``/image/provenance`` is left out: it says when the last record was written, which a
    snapshot and the log before it may report differently.

    Args:
        image: what is hashed.
        path: only what is at or below this path.

    Returns:
        ``sha256:`` and 64 hexadecimal digits. A path that does not exist has the hash of no lines.
    """
    digest = hashlib.sha256()
    pending: list[str] = []
    for line in _lines(image, path):
        pending.append(line)
        if len(pending) == _LINES_AT_ONCE:
            digest.update("".join(pending).encode("utf-8", "surrogatepass"))
            pending.clear()
    digest.update("".join(pending).encode("utf-8", "surrogatepass"))
    return PREFIX + digest.hexdigest()


def _lines(image: Image, path: Segments) -> Iterator[str]:
    node = walk(image_directory(image, Redaction(show_secrets=True)), path[1:])
    if node is not None:
        yield from _lines_below(path, node)


@lru_cache(maxsize=1 << 14)
def _partition_text(partition: Partition) -> str:
    """Partitions of a cluster are mostly one of some thousand values."""
    return _encode(plain(partition))


def _topic_lines(path: str, topic: TopicDirectory) -> Iterator[str]:
    """As :func:`_lines_below`, of a directory that has leaves alone, and in most images nearly all of them."""
    for segment in sorted(topic.segments(), key=lambda segment: segment + "\t"):
        stored = topic.stored(segment)
        if isinstance(stored, Partition):
            yield f"{path}/{segment}\t{_partition_text(stored)}\n"
        else:
            leaf = topic.child(segment)
            assert isinstance(leaf, Leaf)
            yield f"{path}/{segment}\t{_encode(leaf.value())}\n"


def _lines_below(path: Segments, node: Node) -> Iterator[str]:
    """The lines of a node and of all below it, in order; of each level one directory is in memory."""
    if isinstance(node, Leaf):
        if path != _PROVENANCE:
            yield f"{join(path)}\t{_encode(node.value())}\n"
        return
    assert isinstance(node, Directory)
    if isinstance(node, TopicDirectory):
        yield from _topic_lines(join(path), node)
        return
    # What follows a name in its line decides the order, too: a slash where there is more below it, else a tab.
    ends = {}
    for segment in node.segments():
        child = node.child(segment)
        if child is not None:
            ends[segment + ("/" if child.is_directory else "\t")] = child
    for end in sorted(ends):
        yield from _lines_below((*path, end[:-1]), ends[end])
