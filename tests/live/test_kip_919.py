"""KIP-919 as it landed, on real nodes: kinds of endpoints, cluster ids, and the log as far as the leader has it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka import jars
from tests.kafka.cluster import Cluster
from tests.kafka.node import copy_node
from tests.kafka.properties import small_files
from tests.live import oneshot, workload

pytestmark = pytest.mark.live

VERSIONS = ("3.3.2", "3.9.2", "4.4.0")
NOBODY = "127.0.0.1:1"


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A quorum that has snapshots and rolled its log: three dynamic voters where the release can, else one."""
    version: str = request.param
    jars.require(version)
    dynamic = version >= "3.9"
    props = small_files(version, snapshot_bytes=4000, segment_bytes=8000)
    with Cluster(version, controllers=3 if dynamic else 1, dynamic=dynamic, props=props) as running:
        with workload.changing(running.admin(), scram=version >= "3.5"):
            time.sleep(4)
        yield running


def failed(source: oneshot.Source, *words: str) -> str:
    """The one line that a command says which cannot have its source."""
    done = oneshot.run(source, *words)
    assert (done.returncode, done.stdout) == (3, ""), done
    return done.stderr


def test_one_reachable_controller_is_enough(cluster: Cluster) -> None:
    given = ",".join([NOBODY, cluster.bootstrap_controllers, NOBODY])
    assert "offset" in oneshot.run(("-q", given), "cat", "/image/provenance").stdout


def test_nobody_answers(cluster: Cluster) -> None:
    begun = time.monotonic()
    said = failed(("-q", f"{NOBODY},127.0.0.1:2"), "ls", "/image")
    assert f"{NOBODY}, 127.0.0.1:2: none can be reached" in said and "Connection refused" in said, said
    assert time.monotonic() - begun < 10  # nobody to wait for


def test_a_broker_among_the_controllers_is_fatal(cluster: Cluster) -> None:
    broker = cluster.brokers[0].address
    said = failed(("-q", broker), "ls", "/image")
    assert f"{broker}: this is a broker, and --bootstrap-controllers takes controllers" in said
    assert "--bootstrap-servers" in said
    assert "this is a broker" in failed(("-q", f"{NOBODY},{broker},{cluster.bootstrap_controllers}"), "ls", "/image")


def test_a_controller_among_the_brokers_is_fatal(cluster: Cluster) -> None:
    controller = cluster.controllers[0].address
    said = failed(("-b", controller), "ls", "/image")
    assert f"{controller}: this is a controller, and --bootstrap-servers takes brokers" in said


def test_another_cluster_than_the_one_that_is_meant(cluster: Cluster) -> None:
    wrong = "AAAAAAAAAAAAAAAAAAAAAA"
    said = failed(("-q", cluster.bootstrap_controllers, "-X", f"cluster.id={wrong}"), "ls", "/image")
    assert "cluster" in said and ("INCONSISTENT_CLUSTER_ID" in said or f"not to {wrong}" in said), said


def test_the_cluster_id(cluster: Cluster) -> None:
    """Below 3.7 no controller tells it: it is what the operator gives, confirmed by Fetch, else null."""
    source = ("-q", cluster.bootstrap_controllers)
    told = json.loads("".join(oneshot.lines(source, "info", "-o", "json")))
    with_id = (*source, "-X", f"cluster.id={cluster.cluster_id}")
    given = json.loads("".join(oneshot.lines(with_id, "info", "-o", "json")))
    assert given["source"]["clusterId"] == cluster.cluster_id
    assert told["source"]["clusterId"] == (None if cluster.version < "3.7" else cluster.cluster_id)


def test_the_whole_log_and_any_moment_of_it(cluster: Cluster, tmp_path: Path) -> None:
    source = ("-q", cluster.bootstrap_controllers)
    live = [json.loads(line) for line in oneshot.lines(source, "dump", "-o", "jsonl")]
    last = live[-1]["offset"]
    time.sleep(1)
    copy_node(cluster.leader(), tmp_path)
    rows = [json.loads(line) for line in oneshot.lines(tmp_path, "dump", "-o", "jsonl")]
    # With a snapshot at hand, no leader gives out the very first batch if that is a LeaderChange alone.
    assert live[0]["offset"] <= 1
    assert live == [row for row in rows if live[0]["offset"] <= row["offset"] <= last]
    for offset in [*range(15, last, max(1, last // 7)), last]:
        words = ("--as-of", str(offset), *oneshot.FIND)
        assert oneshot.run(source, *words).stdout == oneshot.run(tmp_path, *words).stdout, offset
