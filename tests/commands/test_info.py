"""info: counts, files, and what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kshell.engine.session import Session
from kshell.errors import EXIT_DATA, EXIT_OK
from kshell.protocol.decoder import UNKNOWN_TAGS
from tests import builders
from tests.commands.shell import lines, opened, run, sections


def test_the_sample(sample: Session) -> None:
    found = sections(sample, "info")
    assert found["source"]["clusterId"] == "w87E-iSgQZ67Z-LXBSmM2A"
    assert (found["source"]["nodeId"], found["source"]["kind"]) == (3000, "metadata directory")
    image = found["image"]
    assert (image["metadataVersion"], image["kraftVersion"], image["snapshot"]) == ("4.3-IV0", 1, "159-1")
    assert (image["counts"]["topics"], image["counts"]["partitions"], image["counts"]["fencedBrokers"]) == (12, 37, 1)
    assert [voter["id"] for voter in found["quorum"]["voters"]] == [3000, 3001, 3002]
    assert all(voter["directoryId"] for voter in found["quorum"]["voters"])
    assert (found["log"]["startOffset"], found["log"]["endOffset"]) == (0, 207)
    assert [(row["baseOffset"], row["endOffset"]) for row in found["segments"]] == [(0, 81), (81, 158), (158, 207)]
    assert [row["id"] for row in found["snapshots"]] == ["0-0", "57-1", "116-1", "159-1"]
    assert all(row["complete"] for row in found["snapshots"])
    assert found["epochs"][1] == {"epoch": 2, "startOffset": 163, "firstRecordOffset": 163}
    assert found["commit"]["committedEndOffset"] == 159
    assert "159 to 206: commit status unknown" in found["commit"]["note"]
    assert found["problems"] == []
    assert run(sample, "info").exit_code == EXIT_OK


def test_counts_are_those_of_dump(sample: Session) -> None:
    found = sections(sample, "info")
    for key, line in (("records", "dump"), ("snapshotRecords", "dump --snapshot 159-1")):
        counts: dict[tuple[str, int], int] = {}
        for row in run(sample, line):  # type: ignore[attr-defined]  # Rows
            place = (row["type"], row["version"])
            counts[place] = counts.get(place, 0) + 1
        assert {(row["type"], row["version"]): row["count"] for row in found[key]} == counts


def test_the_log_starts_inside_its_first_segment() -> None:
    for node in builders.recorded():
        found = sections(opened(node), "info")
        assert found["problems"] == [], node
        log = found["log"]
        assert log["firstOffset"] <= log["startOffset"] <= log["endOffset"]
    rolled = sections(opened(builders.FIXTURES / "4.2.1-rolled" / "controller-3001"), "info")
    assert rolled["log"]["startOffset"] > 0
    assert len(rolled["epochs"]) > 1


def odd_values() -> list[bytes]:
    """A topic, an unknown type twice, a higher version, and tags at two depths."""
    tags = {UNKNOWN_TAGS: [{"tag": 77, "data": b"\x01"}]}
    deep = {"name": "L", "host": "h", "port": 1, "securityProtocol": 0, **tags}
    broker = builders.value("REGISTER_BROKER", brokerId=1, incarnationId=builders.uuid(3), endPoints=[deep], rack=None)
    return [
        builders.value("TOPIC", name="t", topicId=builders.uuid(1), **tags),
        broker,
        b"\x01\x63\x00",
        b"\x01\x63\x00",
        b"\x01\x02\x09\x00",
    ]


def by_kind(found: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    out: dict[str, list[dict[str, Any]]] = {}
    for row in found["problems"]:
        out.setdefault(row["kind"], []).append(row)
    return out


def test_unknown_types_versions_and_tags_are_named_and_counted(tmp_path: Path) -> None:
    builders.write_log(tmp_path, builders.control_batch([builders.leader_change()]), builders.batch(odd_values(), 1))
    session = opened(tmp_path)
    found = sections(session, "info")
    kinds = by_kind(found)
    assert [(row["record"], row["version"], row["count"]) for row in kinds["unknown"]] == [
        ("TOPIC_RECORD", 9, 1),
        ("UNKNOWN_99", 0, 2),
    ]
    assert [(row["record"], row["count"]) for row in kinds["unknown tags"]] == [
        ("REGISTER_BROKER_RECORD", 1),
        ("TOPIC_RECORD", 1),
    ]
    assert set(kinds) == {"unknown", "unknown tags"}
    # Newer than kshell is no damage.
    assert run(session, "info").exit_code == EXIT_OK
    assert any(line.strip().startswith("unknown UNKNOWN_99 v0 x2: ") for line in lines(session, "info"))


def test_the_same_inside_a_snapshot(tmp_path: Path) -> None:
    builders.write_snapshot(tmp_path, builders.snapshot(odd_values()), end_offset=30)
    kinds = by_kind(sections(opened(tmp_path), "info"))
    assert [row["record"] for row in kinds["unknown"]] == ["TOPIC_RECORD", "UNKNOWN_99"]
    assert {row["place"] for row in kinds["unknown tags"]} == {"snapshot 30-1"}


def test_damage(tmp_path: Path) -> None:
    """The newest snapshot is cut, a batch of the log is damaged, a record does not fit, the tail is torn."""
    topic = builders.value("TOPIC", name="t", topicId=builders.uuid(1))
    gone = builders.value("REMOVE_TOPIC", topicId=builders.uuid(2))
    first = [builders.control_batch([builders.leader_change()]), builders.batch([topic, gone], 1)]
    builders.write_log(tmp_path, *first)
    bad = bytearray(builders.batch([topic], 4))
    bad[-1] ^= 1
    rest = [builders.batch([topic], 5), builders.batch([topic], 6)[:-2]]
    builders.write_log(tmp_path, builders.batch([topic], 3), bytes(bad), *rest, base_offset=3)
    cut = builders.snapshot([topic])
    builders.write_snapshot(tmp_path, cut[:-4], end_offset=2)
    session = opened(tmp_path)
    kinds = by_kind(sections(session, "info"))
    reasons = "\n".join(row["reason"] for row in kinds["damage"])
    assert "CRC" in reasons
    assert "the snapshot is truncated" in reasons
    assert kinds["skipped"][0]["record"] == "REMOVE_TOPIC_RECORD"
    assert "torn tail" in kinds
    assert run(session, "info").exit_code == EXIT_DATA
    snapshots = sections(session, "info")["snapshots"]
    assert (snapshots[0]["complete"], snapshots[0]["records"]) == (False, None)


def test_without_an_image(tmp_path: Path) -> None:
    topic = builders.value("TOPIC", name="t", topicId=builders.uuid(1))
    builders.write_log(tmp_path, builders.batch([topic], 50), base_offset=50)
    session = opened(tmp_path)
    found = sections(session, "info")
    assert "starts at offset 50" in found["image"]["error"]
    assert found["records"][0]["count"] == 1
    assert run(session, "info").exit_code == EXIT_DATA


def test_as_of(sample: Session) -> None:
    found = sections(sample, "info --as-of 100")
    assert found["image"]["provenance"]["offset"] == 100
    assert sum(row["count"] for row in found["records"]) == 101


def test_zk_migration_state(tmp_path: Path) -> None:
    state = builders.value("ZK_MIGRATION_STATE", zkMigrationState=2)
    builders.write_log(tmp_path, builders.control_batch([builders.leader_change()]), builders.batch([state], 1))
    assert sections(opened(tmp_path), "info")["image"]["zkMigrationState"] == "MIGRATION"


def test_malformed_records_are_damage(tmp_path: Path) -> None:
    topic = builders.value("TOPIC", name="t", topicId=builders.uuid(1))
    partition = builders.value("PARTITION", topicId=builders.uuid(1), replicas=[1], isr=[1])
    builders.write_log(tmp_path / "log", builders.batch([topic[:-1]]))
    builders.write_snapshot(tmp_path / "snapshot", builders.snapshot([topic, partition[:-1]]), 9)
    for name in ("log", "snapshot"):
        result = run(opened(tmp_path / name), "info")
        assert result.exit_code == EXIT_DATA
        kinds = by_kind(sections(opened(tmp_path / name), "info"))
        assert [row["count"] for row in kinds["malformed"]] == [1]
