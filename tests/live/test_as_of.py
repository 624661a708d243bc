"""As of every offset of every recorded log that starts at 0: the image that Kafka's own classes have there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kshell.session import Session
from kshell.sources.directory import DirectorySource
from kshell.sources.files import METADATA_DIRECTORY
from kshell.sources.past import Past
from kshell.tree.node import Directory, Leaf, Node
from tests.builders import node_name, recorded
from tests.kafka import jars, text
from tests.kafka.oracle import images_at_each
from tests.live import oneshot

pytestmark = [pytest.mark.live, pytest.mark.slow]

STEP = int(os.environ.get("KSHELL_AS_OF_STEP", "1"))
BY_ITSELF = 97
"""Every so many offsets, a process of its own is asked as well."""


def leaves(node: Node, path: str) -> Iterator[str]:
    """The lines of ``find /image --values -o jsonl --show-secrets``."""
    if isinstance(node, Directory):
        for segment in node.segments():
            child = node.child(segment)
            assert child is not None
            yield from leaves(child, f"{path}/{segment}")
    elif isinstance(node, Leaf):
        yield json.dumps({"path": path, "type": node.type, "value": node.value()})


@pytest.mark.parametrize("node", recorded(log_from_zero=True), ids=node_name)
def test_every_offset(node: Path, tmp_path: Path) -> None:
    jars.require(jars.LATEST)
    directory = node / METADATA_DIRECTORY
    images = images_at_each(directory, STEP, tmp_path)
    source = DirectorySource(str(node))
    past = Past(source)
    end = source.load().log_end_offset
    assert end is not None and sorted(images) == list(range(0, end, STEP))
    for offset, expected in images.items():
        loaded = past.at(offset)
        assert loaded is not None
        for session in (Session(source, show_secrets=True, until=offset), Session(source, show_secrets=True)):
            if session.until is None:
                session.__dict__["loaded"] = loaded
            image = session.root.child("image")
            assert image is not None
            assert text.compare(text.read(expected), leaves(image, "/image")) == [], offset
        if offset % BY_ITSELF == 0:
            said = oneshot.lines(node, *oneshot.FIND, "--as-of", str(offset))
            assert text.compare(text.read(expected), said) == [], offset
