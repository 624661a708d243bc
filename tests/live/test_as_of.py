"""As of every offset of every recorded log that starts at 0: the image that Kafka's own classes have there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kshell.engine.session import Session
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.directory.source import DirectorySource
from kshell.sources.past import Past
from tests.builders import node_name, recorded
from tests.kafka import jars, text
from tests.kafka.oracle import images_at_each
from tests.leaves import printed, session_at
from tests.live import oneshot

pytestmark = [pytest.mark.live, pytest.mark.slow]

STEP = int(os.environ.get("KSHELL_AS_OF_STEP", "1"))
BY_ITSELF = 97
"""Every so many offsets, a process of its own is asked as well."""


@pytest.mark.parametrize("node", recorded(log_from_zero=True), ids=node_name)
def test_every_offset(node: Path, tmp_path: Path) -> None:
    jars.require(jars.LATEST)
    directory = node / METADATA_DIRECTORY
    images = images_at_each(directory, STEP, tmp_path)
    source = DirectorySource(str(node))
    past = Past(source)
    end = source.load().log_end_offset
    assert end is not None and sorted(images) == list(range(0, end, STEP))
    ends = {file.end_offset for file in source.listing().snapshots}
    for offset, image in images.items():
        expected = text.read(image)
        for session in (session_at(source, past, offset), Session(source, show_secrets=True, until=offset)):
            differences = text.compare(expected, printed(session))
            if offset + 1 in ends:  # then the image is the snapshot's: it stands at its end, a control record's as well
                differences = [one for one in differences if not one.startswith(f"/image/provenance: offset {offset} ")]
            assert differences == [], offset
        if offset % BY_ITSELF == 0:
            said = oneshot.lines(node, *oneshot.FIND, "--as-of", str(offset))
            assert text.compare(expected, said) == [], offset
