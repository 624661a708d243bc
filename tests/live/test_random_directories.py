"""Directories that chance made: real controllers kept busy, killed, stopped and started again, of every release.

Each is read as its newest state and as of offsets, and must have what Kafka's own classes have there, leaf by leaf.
``KSHELL_SOAK_COUNT`` says how many clusters there are; each leaves five directories.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from kshell.sources.directory.source import DirectorySource
from kshell.sources.past import Past
from tests.kafka import jars, text
from tests.kafka.cluster import Cluster
from tests.kafka.node import METADATA, Node, copy_node
from tests.kafka.oracle import expected_image
from tests.kafka.properties import small_files
from tests.kafka.waiting import wait_until
from tests.leaves import printed, session_at
from tests.live import oneshot, workload

pytestmark = [pytest.mark.live, pytest.mark.soak]

RELEASES = ("4.4.0", "3.9.2", "4.1.1", "3.3.2", "4.0.0", "3.6.2", "4.3.1", "3.7.2", "4.2.1", "3.5.2")
CLUSTERS = int(os.environ.get("KSHELL_SOAK_COUNT", "10"))
DIRECTORIES = 5
OFFSETS = 4
"""As of which each directory is asked, beside its newest state."""


@pytest.mark.parametrize("seed", range(CLUSTERS))
def test_what_chance_makes(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    release = RELEASES[seed % len(RELEASES)]
    jars.require(jars.LATEST, release)
    props = small_files(
        release, snapshot_bytes=rng.choice((2_000, 8_000, 1 << 20)), segment_bytes=rng.choice((4_000, 30_000, 1 << 20))
    )
    controllers, dynamic = rng.choice((1, 3)), release >= "4" and rng.random() < 0.5
    records = 0
    with Cluster(release, controllers=controllers, dynamic=dynamic, props=props) as cluster:
        for number in range(DIRECTORIES):
            copy = tmp_path / f"directory-{number}"
            with workload.changing(cluster.admin(), scram=release >= "3.5", first=1000 * number) as work:
                wait_until(lambda work=work: work.rounds + work.refused > 0, "nothing changes")  # type: ignore[misc]
                time.sleep(rng.uniform(0, 2))
                disturb(cluster, cluster.controllers[rng.randrange(controllers)], rng, copy)
            records += check(copy, rng)
    print(f"seed {seed}, Kafka {release}, {controllers} controllers: {records} records")


def disturb(cluster: Cluster, node: Node, rng: random.Random, copy: Path) -> None:
    """End a controller while it works, keep what it leaves, and start it again; sometimes a broker restarts, too."""
    if rng.random() < 0.3:
        broker = cluster.brokers[0]
        cluster.kill(broker)
        cluster.start(broker)
    if rng.random() < 0.7:
        cluster.kill(node)
    else:
        cluster.stop(node)
    copy_node(node, copy)
    cluster.start(node)


def check(copy: Path, rng: random.Random) -> int:
    """Hold every leaf against Kafka's classes, now and as of some offsets; return how many records there are."""
    directory = copy / METADATA
    newest = text.read(expected_image(directory))
    assert len(newest.leaves) > 10
    assert text.compare(newest, oneshot.lines(copy, *oneshot.FIND)) == []
    source = DirectorySource(str(copy))
    past, listing = Past(source), source.listing()
    first = max(listing.segments[0].base_offset or 0, listing.snapshots[0].end_offset or 0 if listing.snapshots else 0)
    first = min(first, newest.last_offset)  # nothing may have come after the snapshot yet
    for _ in range(OFFSETS):
        offset = rng.randint(first, newest.last_offset)
        expected = text.read(expected_image(directory, offset))
        assert text.compare(expected, printed(session_at(source, past, offset))) == [], offset
        assert text.compare(expected, oneshot.lines(copy, *oneshot.FIND, "--as-of", str(offset))) == [], offset
    return newest.last_offset + 1 - first
