"""``/image`` of a source that cannot tell everything: a sentence stands where a subtree is not known."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kshell.metadata.image import Image, families
from kshell.metadata.names import sort_key
from kshell.metadata.partial import MISSING
from kshell.metadata.redaction import Redaction
from kshell.protocol.primitives import Uuid
from kshell.tree.image import FamilyDirectory
from kshell.tree.node import Directory, Node, leaf
from kshell.tree.paths import Segments

UNAVAILABLE = "unavailable"
"""The type of a leaf that says why nothing else is there."""
_Makers = Mapping[Segments, Callable[[], Node]]


class PartialDirectory(Directory):
    """A directory in which some nodes are replaced, or added, at any depth."""

    def __init__(self, below: Directory, placed: _Makers) -> None:
        self._below = below
        self._placed = placed

    def segments(self) -> list[str]:
        added = {path[0] for path in self._placed if len(path) == 1}
        return sorted({*self._below.segments(), *added}, key=sort_key)

    def child(self, segment: str) -> Node | None:
        make = self._placed.get((segment,))
        if make is not None:
            return make()
        node = self._below.child(segment)
        deeper = {path[1:]: make for path, make in self._placed.items() if path[0] == segment}
        return PartialDirectory(node, deeper) if deeper and isinstance(node, Directory) else node


def partial_directory(whole: Directory, image: Image, redaction: Redaction) -> Directory:
    """``whole`` with the sentences of the table ``missing`` in it, and ACLs whose ids are not known beside ``byId``."""
    placed: dict[Segments, Callable[[], Node]] = {
        path: leaf(UNAVAILABLE, sentence) for path, sentence in image[MISSING].items()
    }
    entries = {key: entry for key, entry in image["acls"].items() if not isinstance(key, Uuid)}
    if entries:
        family = families()["acls"]
        placed[(*family.path[:-1], "byEntry")] = lambda: FamilyDirectory(entries, family, redaction, ())
    return PartialDirectory(whole, placed)
