"""One-shot ``quorum`` against ``kafka-metadata-quorum.sh describe`` on the same running quorum of three controllers.

Kafka's command is started without the script around it, which only adds to its time. It needs two runs for what one of
ours tells; each counts alone. Goal: at most 1/3 of the time of ``--status``; ``--replication`` is a note.
"""

from __future__ import annotations

import re
import statistics
import time

from tests.bench.harness import Comparison, kshell, pair
from tests.kafka import jars
from tests.kafka.cluster import Cluster

_MAIN = "org.apache.kafka.tools.MetadataQuorumCommand"
_FEW = 3


def run(rounds: int) -> Comparison:
    """``rounds`` answers of each side."""
    with Cluster(jars.LATEST, controllers=3, brokers=1, dynamic=True) as cluster:
        leader = cluster.leader().id

        def ours() -> float:
            done = kshell("-q", cluster.bootstrap_controllers, "quorum")
            assert done.code == 0 and re.search(rf"leaderId +{leader}\b", done.output), done
            return done.seconds

        def theirs() -> float:
            seconds, output = _describe(cluster, "--status")
            assert re.search(rf"LeaderId:\s+{leader}\b", output), output
            return seconds

        mine, other = pair(rounds, ours, theirs)
        replication = statistics.median(_describe(cluster, "--replication")[0] for _ in range(_FEW))
    note = f"describe --replication: median {replication * 1000:.0f} ms of {_FEW}"
    return Comparison("one-shot quorum, three controllers", mine, other, 1 / 3, [note])


def _describe(cluster: Cluster, what: str) -> tuple[float, str]:
    options = ("--bootstrap-controller", cluster.bootstrap_controllers, "describe", what)
    start = time.perf_counter()
    output = jars.run(f"{jars.libs(cluster.version)}/*", _MAIN, *options, heap="128m")
    return time.perf_counter() - start, output
