"""The hash of an image: two sources that have the same metadata at the same offset have the same hash."""

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
"""The prefix of the digits. Another way of hashing would get another prefix, so that its hashes never match these."""
_PROVENANCE = ("image", "provenance")
_LINES_AT_ONCE = 1000

_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def image_hash(image: Image, path: Segments = ("image",)) -> str:
    """Hash every leaf of an image, secret values included: only the hash gets out.

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
    """A partition as JSON; cached, because most partitions of a cluster have one of some thousand values."""
    return _encode(plain(partition))


def _topic_lines(path: str, topic: TopicDirectory) -> Iterator[str]:
    """As :func:`_lines_below`, but faster: topics have only leaves, and in most images nearly all of the leaves."""
    for segment in sorted(topic.segments(), key=lambda segment: segment + "\t"):
        stored = topic.stored(segment)
        if isinstance(stored, Partition):
            yield f"{path}/{segment}\t{_partition_text(stored)}\n"
        else:
            leaf = topic.child(segment)
            assert isinstance(leaf, Leaf)
            yield f"{path}/{segment}\t{_encode(leaf.value())}\n"


def _lines_below(path: Segments, node: Node) -> Iterator[str]:
    """The lines of a node and of all nodes below it, in order; only one directory per level is in memory."""
    if isinstance(node, Leaf):
        if path != _PROVENANCE:
            yield f"{join(path)}\t{_encode(node.value())}\n"
        return
    assert isinstance(node, Directory)
    if isinstance(node, TopicDirectory):
        yield from _topic_lines(join(path), node)
        return
    # The character after a name in its line decides the order, too: a slash after a directory's, a tab after a leaf's.
    ends = {}
    for segment in node.segments():
        child = node.child(segment)
        if child is not None:
            ends[segment + ("/" if child.is_directory else "\t")] = child
    for end in sorted(ends):
        yield from _lines_below((*path, end[:-1]), ends[end])
