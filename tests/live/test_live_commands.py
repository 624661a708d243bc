"""quorum, api-versions, compat, controllers and loggers on real clusters, beside what Kafka's own tools say."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kafka import jars
from tests.kafka.cluster import Cluster
from tests.kafka.waiting import wait_until
from tests.live import oneshot

pytestmark = pytest.mark.live

VERSIONS = ("3.3.2", "3.9.2", "4.4.0")
NAMED_FROM = (3, 7)
"""The release from which on controllers tell each other's ids and addresses, and serve loggers."""
ENDPOINTS_FROM = (3, 9)
TELEMETRY = (71, 72)
"""Offered only by brokers that have a metrics reporter for clients' telemetry."""


def release(cluster: Cluster) -> tuple[int, ...]:
    return tuple(map(int, cluster.version.split(".")[:2]))


def q(cluster: Cluster) -> tuple[str, ...]:
    return ("-q", cluster.bootstrap_controllers)


def b(cluster: Cluster) -> tuple[str, ...]:
    return ("-b", cluster.bootstrap_servers)


def rows(source: tuple[str, ...], *words: str) -> list[dict[str, Any]]:
    done = oneshot.run(source, *words, "-o", "jsonl")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    jars.require(request.param)
    dynamic = tuple(map(int, request.param.split(".")[:2])) >= ENDPOINTS_FROM
    with Cluster(request.param, controllers=3, brokers=2, dynamic=dynamic) as running:
        yield running


# --- quorum ----------------------------------------------------------------------------------------------------------


def described(cluster: Cluster, *what: str) -> str:
    """What Kafka's own command says; at the brokers, for those of before 3.7 know no controllers."""
    # Below 3.5 the tool is another class, and its answers have fewer columns.
    main = "kafka.admin.MetadataQuorumCommand" if release(cluster) < (3, 5) else oneshot_main()
    options = ("--bootstrap-server", cluster.bootstrap_servers, "describe", *what)
    return jars.run(f"{jars.libs(cluster.version)}/*", main, *options)


def oneshot_main() -> str:
    return "org.apache.kafka.tools.MetadataQuorumCommand"


@pytest.mark.parametrize("source", [q, b], ids=["controllers", "brokers"])
def test_quorum_is_what_kafkas_own_command_says(cluster: Cluster, source: Any) -> None:
    """Nothing is committed meanwhile but NoOp records: offsets only grow, between two answers of ours."""
    (before,) = rows(source(cluster), "quorum")
    replication, status = described(cluster, "--replication"), described(cluster, "--status")
    (after,) = rows(source(cluster), "quorum")
    theirs = [line.split() for line in replication.splitlines()[1:] if line.strip()]
    ids = {"Leader": set(), "Follower": set(), "Observer": set()}  # type: dict[str, set[int]]
    for words in theirs:
        ids[words[-1]].add(int(words[0]))
    assert ids["Leader"] == {before["leaderId"]}
    assert ids["Leader"] | ids["Follower"] == {one["id"] for one in before["voters"]} == {3000, 3001, 3002}
    assert ids["Observer"] == {one["id"] for one in before["observers"]} == {0, 1}
    told = dict(re.findall(r"(\w+):\s+(\S+)", status))
    assert int(told["LeaderEpoch"]) == before["leaderEpoch"]
    assert before["highWatermark"] <= int(told["HighWatermark"]) <= after["highWatermark"]
    named = source is b or release(cluster) >= NAMED_FROM
    assert before["clusterId"] == (told["ClusterId"] if named else None)
    assert told["ClusterId"] == cluster.cluster_id or not named
    has_directories = release(cluster) >= ENDPOINTS_FROM
    for one in [*before["voters"], *before["observers"]]:
        assert one["lag"] >= 0 and one["logEndOffset"] > 0
        assert abs(one["lastFetchTimestamp"] - time.time() * 1000) < 60_000
        if has_directories:
            assert one["directoryId"] in replication
    points = {one["id"]: [f"{p['host']}:{p['port']}" for p in one["endpoints"]] for one in before["voters"]}
    assert points == {node.id: [node.address] if has_directories else [] for node in cluster.controllers}


def test_quorum_follows_the_leader(cluster: Cluster) -> None:
    (before,) = rows(q(cluster), "quorum")
    old = cluster.leader()
    cluster.stop(old)
    try:
        (after,) = rows(q(cluster), "quorum")
        assert after["leaderId"] not in (-1, old.id)
        assert after["leaderEpoch"] > before["leaderEpoch"]
    finally:
        cluster.start(old)

    def has_caught_up() -> bool:
        lag = rows(q(cluster), "quorum")[0]["voters"][0]["lag"]
        return lag is not None and lag < 10  # null: the leader has not heard of it yet

    wait_until(has_caught_up, "the old leader does not catch up")


def test_quorum_is_watched(cluster: Cluster) -> None:
    """Not at a terminal: each answer that differs, one a line; Ctrl-C ends it."""
    command = oneshot.command(q(cluster), "quorum", "--watch", "-n", "0.2", "-o", "jsonl")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=oneshot.ROOT) as process:
        assert process.stdout is not None
        marks = [json.loads(process.stdout.readline())["highWatermark"] for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    assert marks == sorted(marks)


# --- controllers -----------------------------------------------------------------------------------------------------


def test_controllers(cluster: Cluster) -> None:
    found = rows(q(cluster), "controllers")
    assert [row["id"] for row in found] == [3000, 3001, 3002]
    assert [row["id"] for row in found if row["isLeader"]] == [cluster.leader().id]
    for row, node in zip(found, cluster.controllers, strict=True):
        if release(cluster) >= NAMED_FROM:
            listener = {"name": "CONTROLLER", "host": "127.0.0.1", "port": node.port, "securityProtocol": "PLAINTEXT"}
            assert (row["listeners"], row["address"]) == ([listener], node.address)
        else:
            assert row["listeners"] is None
    from_brokers = rows(b(cluster), "controllers")
    assert [(row["id"], row["isLeader"]) for row in from_brokers] == [(row["id"], row["isLeader"]) for row in found]
    from_files = rows(("-d", str(cluster.leader().logs)), "controllers")
    assert [(row["id"], row["listeners"]) for row in from_files] == [(row["id"], row["listeners"]) for row in found]


# --- versions --------------------------------------------------------------------------------------------------------


def test_api_versions_are_those_of_the_release(cluster: Cluster) -> None:
    from tests.server.quorum import ranges_of

    line = ".".join(cluster.version.split(".")[:2])
    for source, kind, nodes in ((q, "controller", cluster.controllers), (b, "broker", cluster.brokers)):
        found = rows(source(cluster), "api-versions")
        known = {row["apiKey"]: (row["minVersion"], row["maxVersion"]) for row in found}
        expected = ranges_of(kind, line)
        assert known == {key: span for key, span in expected.items() if key not in TELEMETRY}
        by_id = kind == "broker" or release(cluster) >= NAMED_FROM
        names = [str(node.id) if by_id else node.address for node in nodes]
        assert all(list(row["nodes"]) == names for row in found)


def test_api_versions_of_all(cluster: Cluster) -> None:
    known = {row["apiKey"]: row for row in rows(q(cluster), "api-versions", "--all")}
    assert list(known[0]["nodes"]) == ["0", "1"]
    assert known[0]["minVersion"] is known[0]["maxVersion"] is None
    assert len(known[1]["nodes"]) == 5
    assert known[1]["maxVersion"] == known[1]["nodes"]["0"]["max"]


def test_a_broker_that_is_down(cluster: Cluster) -> None:
    down = cluster.brokers[1]
    cluster.stop(down)
    try:
        done = oneshot.run(q(cluster), "api-versions", "--node", "1")
        assert done.returncode == 3
        assert down.address in done.stderr
        done = oneshot.run(q(cluster), "api-versions", "--all", "-o", "jsonl")
        assert done.returncode == 0
        assert "kshell: note: broker 1 was not asked: " in done.stderr
        assert list(json.loads(done.stdout.splitlines()[0])["nodes"]) == ["0"]
        done = oneshot.run(q(cluster), "compat", "transactions", "-o", "jsonl")
        assert (done.returncode, json.loads(done.stdout)["usable"]) == (3, None)
    finally:
        cluster.start(down)
    cluster.wait_for_brokers({0, 1})


def test_compat_knows_what_came_when(cluster: Cluster) -> None:
    found = {row["kip"]: row for row in rows(q(cluster), "compat")}
    assert found["KIP-630"]["usable"] is found["KIP-98"]["usable"] is True
    assert found["KIP-919"]["usable"] is (release(cluster) >= NAMED_FROM)
    assert found["KIP-853"]["usable"] is (release(cluster) >= ENDPOINTS_FROM)
    assert found["KIP-1166"]["usable"] is (release(cluster) >= (4, 1))
    if release(cluster) < (4, 1):
        assert len(found["KIP-1166"]["inTheWay"]) == 3


# --- loggers ---------------------------------------------------------------------------------------------------------


def test_loggers_of_a_broker(cluster: Cluster) -> None:
    for source in (q, b):
        assert "root" in [row["name"] for row in rows(source(cluster), "loggers", "1")]


def test_loggers_of_a_controller(cluster: Cluster) -> None:
    """The one that does not lead is changed, and it alone; then all is as before."""
    node = next(node for node in cluster.controllers if node.id != cluster.leader().id)
    if release(cluster) < NAMED_FROM:
        done = oneshot.run(q(cluster), "loggers", str(node.id))
        assert (done.returncode, "UnsupportedVersion" in done.stderr) == (3, True)
        return

    def levels() -> dict[int, str]:
        every = {one.id: rows(q(cluster), "loggers", str(one.id)) for one in cluster.controllers}
        return {key: next(row["level"] for row in found if row["name"] == "root") for key, found in every.items()}

    before = levels()
    (change,) = rows(q(cluster), "loggers", str(node.id), "set", "root", "trace", "--yes")
    assert change == {"node": node.id, "name": "root", "before": before[node.id], "after": "TRACE"}
    assert levels() == before | {node.id: "TRACE"}
    rows(q(cluster), "loggers", str(node.id), "set", "root", before[node.id], "--yes")
    assert levels() == before
    assert oneshot.run(q(cluster), "loggers", str(node.id), "set", "root", "WARN").returncode == 2
    assert oneshot.run(q(cluster), "loggers", str(node.id), "set", "nowhere", "WARN", "--yes").returncode == 2


def test_a_person_is_asked(cluster: Cluster) -> None:
    level = {row["name"]: row["level"] for row in rows(q(cluster), "loggers", "1")}["root"]
    for typed, code in ((b"n\n", 2), (b"y\n", 0)):
        ours, theirs = pty.openpty()
        command = oneshot.command(q(cluster), "loggers", "1", "set", "root", "WARN")
        with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=oneshot.ROOT) as process:
            os.close(theirs)
            shown = b""
            while b"[y/N]" not in shown:
                shown += os.read(ours, 1000)
            os.write(ours, typed)
            assert process.wait(30) == code
        os.close(ours)
        where = cluster.brokers[1].address
        assert f"Change root at broker 1 ({where}) from {level} to WARN".encode() in shown
        now = {row["name"]: row["level"] for row in rows(q(cluster), "loggers", "1")}["root"]
        assert now == (level if code else "WARN")
    rows(q(cluster), "loggers", "1", "set", "root", level, "--yes")
