"""Every leaf of an image, and sessions at any offset of a log that is read once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kshell.engine.session import Session
from kshell.sources.past import Past
from kshell.sources.source import Source
from kshell.tree.node import Directory, Leaf, Node


def image_of(session: Session) -> Node:
    """``/image``."""
    found = session.root.child("image")
    assert found is not None
    return found


def leaves(node: Node, path: str = "/image") -> Iterator[tuple[str, Leaf]]:
    """The leaves below a node with their paths, in the tree's order."""
    if isinstance(node, Directory):
        for segment in node.segments():
            child = node.child(segment)
            assert child is not None
            yield from leaves(child, f"{path}/{segment}")
    elif isinstance(node, Leaf):
        yield path, node


def values(session: Session) -> dict[str, Any]:
    """Path -> value of every leaf of the image."""
    return {path: leaf.value() for path, leaf in leaves(image_of(session))}


def printed(session: Session) -> list[str]:
    """What ``find /image --values -o jsonl`` prints, without the front end."""
    found = leaves(image_of(session))
    return [json.dumps({"path": path, "type": leaf.type, "value": leaf.value()}) for path, leaf in found]


def session_at(source: Source, past: Past, offset: int) -> Session:
    """A session that shows an offset, out of what was read once; secrets are shown."""
    loaded = past.at(offset)
    assert loaded is not None
    session = Session(source, show_secrets=True, until=offset)
    session.__dict__["loaded"] = loaded
    return session
