"""hash and verify on a running cluster: one hash on every node at the same offset, and whole files behind every log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kafka import jars
from tests.kafka.cluster import Cluster
from tests.kafka.waiting import wait_until
from tests.live import oneshot, workload

pytestmark = pytest.mark.live

VERSIONS = ("3.3.2", "3.9.2", "4.3.1")
ROUNDS = 6
_WITH_SCRAM = (3, 5)
_AUTHORIZER = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three controllers, after changes of every kind and snapshots in between."""
    version = request.param
    jars.require(version)
    props = [_AUTHORIZER, "super.users=User:ANONYMOUS", "metadata.log.max.record.bytes.between.snapshots=2000"]
    with Cluster(version, controllers=3, brokers=1, props=props) as running:
        release = tuple(map(int, version.split(".")[:2]))
        with running.admin() as admin:
            for number in range(ROUNDS):
                workload.change(admin, number, scram=release >= _WITH_SCRAM)
        yield running


def answer(source: Path | tuple[str, ...], *words: str) -> dict[str, Any]:
    return json.loads("\n".join(oneshot.lines(source, *words, "-o", "json")))  # type: ignore[no-any-return]


def directories(cluster: Cluster) -> list[Path]:
    return [node.metadata for node in cluster.nodes]


def test_every_node_has_the_hash_of_the_quorum_at_the_same_offset(cluster: Cluster) -> None:
    live = answer(("-q", cluster.bootstrap_controllers), "hash")
    offset = live["offset"]

    def reached() -> bool:
        return all(answer(directory, "hash")["offset"] >= offset for directory in directories(cluster))

    wait_until(reached, "every node has the records", 30)
    found = [answer(directory, "hash", "--as-of", str(offset)) for directory in directories(cluster)]
    assert len(found) == 4
    assert {each["hash"] for each in found} == {live["hash"]}
    assert {each["offset"] for each in found} == {offset}
    again = oneshot.run(("-q", cluster.bootstrap_controllers), "hash", "--as-of", str(offset), "--expect", live["hash"])
    assert again.returncode == 0, again.stderr
    other = oneshot.run(directories(cluster)[0], "hash", "--as-of", str(offset // 2), "--expect", live["hash"])
    assert other.returncode == 1


def test_files_of_running_nodes_and_what_an_observer_fetched_are_whole(cluster: Cluster) -> None:
    sources: list[Path | tuple[str, ...]] = [*directories(cluster), ("-q", cluster.bootstrap_controllers)]
    for source in sources:
        done = oneshot.run(source, "verify", "--deep", "-o", "json")
        checks = json.loads(done.stdout)
        told = [(each["file"], each["verdict"], each["firstBadByte"], each["reason"]) for each in checks]
        assert [each for each in told if each[1] not in oneshot.WELL] == [], source
        assert done.returncode == 0, done.stderr
        assert any(check["kind"] == "segment" and check["records"] for check in checks)
    snapshots = [
        check
        for directory in directories(cluster)
        for check in json.loads("\n".join(oneshot.lines(directory, "verify", "--deep", "-o", "json")))
        if check["kind"] == "snapshot" and "replay of the log gives the same values" in check["witness"]
    ]
    assert snapshots


def test_a_record_of_the_quorum_is_explained_as_the_nodes_file_has_it(cluster: Cluster) -> None:
    words = ("explain", "3", "--record", "-o", "jsonl", "--columns", "hex,field,value")
    live = oneshot.lines(("-q", cluster.bootstrap_controllers), *words)
    assert live
    assert all(oneshot.lines(directory, *words) == live for directory in directories(cluster))
