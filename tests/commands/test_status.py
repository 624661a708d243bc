"""status: the cluster on one screen, from every kind of source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kshell.engine.session import Session
from kshell.render import render
from kshell.sources.brokers.source import BrokerSource
from kshell.sources.quorum.source import QuorumSource
from tests import builders
from tests.builders import value
from tests.commands.healthy import ORDERS, broker, config, controller, records, write
from tests.commands.shell import lines, opened, run, sections
from tests.server import Quorum, faults, settings

SECTIONS = ["cluster", "versions", "quorum", "counts", "problems"]


def offline() -> bytes:
    """orders/0 without a leader."""
    return value("PARTITION_CHANGE", 2, partitionId=0, topicId=ORDERS, leader=-1, isr=[1])


def test_without_records_nothing_is_known_of_problems(tmp_path: Path) -> None:
    builders.write_log(tmp_path)
    builders.write_epochs(tmp_path, (1, 0))
    session = opened(tmp_path)
    assert lines(session, "status")[0] == "Problems: not known, there are no records"
    assert any("the log's records are gone" in note for note in session.notes())


def test_a_directory(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("cluster.id=abc\n")
    down = value("BROKER_REGISTRATION_CHANGE", 1, brokerId=1, brokerEpoch=1, fenced=1)
    leaving = value("BROKER_REGISTRATION_CHANGE", 1, brokerId=2, brokerEpoch=2, inControlledShutdown=1)
    session = opened(write(tmp_path, offline(), down, leaving))
    told = sections(session, "status")
    assert list(told) == SECTIONS
    last = session.image.provenance
    assert told["cluster"] == {
        "clusterId": "abc",
        "source": str(tmp_path),
        "kind": "directory",
        "offset": last.offset,
        "time": "2023-11-14T22:13:20.000Z",
        "timeMs": builders.TIME,
    }
    assert told["versions"] == {
        "metadataVersion": "4.3-IV0",
        "kraftVersion": 0,
        "lowestRelease": "4.3",
        "highestRelease": "4.3",
        "releaseSource": "registered",
    }
    assert told["quorum"] == {
        "leaderId": 11, "leaderEpoch": 1, "highWatermark": None, "voters": [11, 12, 13], "observers": None,
        "maxLag": None,
    }  # fmt: skip
    assert told["counts"] == {
        "brokers": 3, "brokersFenced": 1, "brokersShuttingDown": 1, "controllers": 3, "topics": 2, "partitions": 3,
        "offline": 1, "underMinIsr": 1, "underReplicated": 1,
    }  # fmt: skip
    assert told["problems"] == [
        {"level": "critical", "finding": "offlinePartition", "count": 1, "first": "/image/topics/byName/orders/0"},
        {"level": "error", "finding": "underMinIsr", "count": 1, "first": "/image/topics/byName/orders/0"},
        {"level": "error", "finding": "brokerFenced", "count": 1, "first": "/image/cluster/brokers/1"},
        {"level": "warning", "finding": "underReplicated", "count": 1, "first": "/image/topics/byName/orders/0"},
        {"level": "warning", "finding": "brokerShuttingDown", "count": 1, "first": "/image/cluster/brokers/2"},
    ]
    assert run(session, "status").exit_code == 0


def test_releases_of_a_rolling_upgrade(tmp_path: Path) -> None:
    features = [{"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": 25}]
    level = value("FEATURE_LEVEL", name="metadata.version", featureLevel=25)
    told = sections(opened(write(tmp_path, level, broker(1, features=features))), "status")["versions"]
    assert (told["lowestRelease"], told["highestRelease"]) == ("4.0", "4.3")


def test_a_moment(tmp_path: Path) -> None:
    session = opened(write(tmp_path, offline()))
    before = len(records())
    told = sections(session, f"status --as-of {before}")
    assert (told["cluster"]["offset"], told["counts"]["offline"], told["problems"]) == (before, 0, [])


def test_a_moment_inside_the_first_transaction(sample: Session) -> None:
    shown = lines(sample, "status --as-of 3")
    assert any(line.split() == "as of offset 3: no record has taken effect yet".split() for line in shown)
    assert lines(sample, "as-of 3") == ["as of offset 3: no record has taken effect yet"]


def test_min_isr_is_known_or_said(tmp_path: Path) -> None:
    shrunk = value("PARTITION_CHANGE", 2, partitionId=0, topicId=ORDERS, isr=[1])
    no_default = [at for at, record in enumerate(records()) if record == config(4, "", "min.insync.replicas", "2")]
    session = opened(write(tmp_path, shrunk, without=no_default))
    assert sections(session, "status")["counts"]["underMinIsr"] == 0
    assert "--min-isr-default" in session.remarks[0]
    assert sections(session, "status --min-isr-default 2")["counts"]["underMinIsr"] == 1


class TestLive:
    def test_a_quorum(self) -> None:
        def behind(body: dict[str, Any]) -> None:
            found = body["topics"][0]["partitions"][0]
            found["currentVoters"][1]["logEndOffset"] = found["currentVoters"][0]["logEndOffset"] - 7

        with Quorum(controllers=3, brokers=1) as quorum:
            quorum.append(*(controller(node.id) for node in quorum.controllers))
            quorum.append(*(value("NO_OP") for _ in range(10)))
            quorum.on("DescribeQuorum", faults.change(behind))
            session = Session(quorum.keep(QuorumSource(quorum.bootstrap, settings())))
            told = sections(session, "status")
            assert told["cluster"]["clusterId"] == quorum.cluster_id
            assert told["cluster"]["kind"] == "quorum"
            assert told["quorum"] == {
                "leaderId": 1, "leaderEpoch": quorum.epoch, "highWatermark": quorum.log.high_watermark,
                "voters": [1, 2, 3], "observers": [101], "maxLag": 7,
            }  # fmt: skip
            assert (told["versions"]["highestRelease"], told["versions"]["releaseSource"]) == ("4.4", "inferred")

    def test_brokers(self) -> None:
        """What they do not tell is null."""
        with Quorum(controllers=3, brokers=2) as quorum:
            session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))
            told = sections(session, "status")
            assert told["cluster"]["kind"] == "brokers"
            assert (told["cluster"]["offset"], told["cluster"]["time"]) == (None, None)
            assert (told["quorum"]["leaderId"], told["quorum"]["voters"]) == (1, [1, 2, 3])
            assert (told["counts"]["brokers"], told["counts"]["controllers"]) == (2, 3)

    def test_who_may_not_describe_the_quorum_gets_the_rest(self) -> None:
        with Quorum(controllers=1) as quorum:
            quorum.on("DescribeQuorum", faults.error(31))
            session = Session(quorum.keep(QuorumSource(quorum.bootstrap, settings())))
            told = sections(session, "status")
            assert told["quorum"]["highWatermark"] is None
            assert told["quorum"]["leaderEpoch"] == quorum.epoch
            assert any("CLUSTER:kafka-cluster" in remark for remark in session.remarks)

    def test_brokers_tell_everybody_the_clusters_id(self) -> None:
        """DescribeCluster at a broker needs no operation."""
        with Quorum(controllers=1, brokers=1) as quorum:
            quorum.on("DescribeQuorum", faults.error(31, whole=True))
            session = Session(quorum.keep(BrokerSource(quorum.bootstrap_servers, settings())))
            told = sections(session, "status")
            assert told["cluster"]["clusterId"] == quorum.cluster_id
            assert told["quorum"]["leaderId"] is None


def test_golden(tmp_path: Path) -> None:
    session = opened(write(tmp_path, offline()))
    shown = "\n".join(lines(session, "status")).replace(str(tmp_path), "DIRECTORY")
    assert shown == (
        "Problems: `health` has what to do\n"
        "  level     finding           count  first\n"
        "  critical  offlinePartition      1  /image/topics/byName/orders/0\n"
        "  error     underMinIsr           1  /image/topics/byName/orders/0\n"
        "  warning   underReplicated       1  /image/topics/byName/orders/0\n"
        "\n"
        "Cluster\n"
        "  clusterId   -\n"
        "  source      DIRECTORY (directory)\n"
        f"  as of       offset {session.image.provenance.offset}, 2023-11-14T22:13:20.000Z\n"
        "  versions    metadata.version 4.3-IV0, kraft.version 0\n"
        "  software    Kafka 4.3 (registered)\n"
        "  quorum      leader 11, epoch 1, voters 11 12 13\n"
        "  nodes       3 brokers (0 fenced, 0 shutting down), 3 controllers\n"
        "  partitions  2 topics, 3 partitions: 1 offline, 1 under min ISR, 1 under-replicated"
    )
    told = json.loads("".join(render(run(session, "status"), "json")))
    assert list(told) == SECTIONS
    assert told["problems"][0]["finding"] == "offlinePartition"
    flat = "".join(render(run(session, "status"), "csv")).splitlines()
    assert flat[0] == "section,key,value"
    assert "counts,offline,1" in flat
    assert "problems,0.finding,offlinePartition" in flat


def test_nothing_wrong(tmp_path: Path) -> None:
    assert lines(opened(write(tmp_path)), "status")[0] == "Problems: none"
