"""log: the records that touched a part of the tree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.result import Rows
from kshell.engine.session import Session
from kshell.errors import DataError, NodeError, NoSuchPathError, UsageError
from kshell.metadata.delta import Touch
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.quorum.source import QuorumSource
from kshell.tree.image import iso
from kshell.tree.paths import paths
from tests.builders import (
    FIXTURES,
    TIME,
    batch,
    control_batch,
    copy_of,
    leader_change,
    recorded,
    snapshot,
    timed_batch,
    uuid,
    value,
    write_log,
    write_snapshot,
)
from tests.commands.shell import lines, opened, rows, run
from tests.server import Quorum, settings

NO_OP = "NO_OP_RECORD"


def offsets(session: Session, line: str) -> list[int]:
    return [row["offset"] for row in rows(session, line)]


def shown(session: Session, line: str) -> list[dict[str, Any]]:
    result = run(session, line)
    assert isinstance(result, Rows)
    return [{column.name: row[column.name] for column in result.columns} for row in result]


def timeless(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what `log` has beside `dump`: the time as people read it, which must be the record's."""
    for row in told:
        assert row["time"] == iso(row["timestampMs"])
    return [{name: value for name, value in row.items() if name != "time"} for row in told]


def test_without_a_path_it_is_the_dump_without_no_ops(sample: Session) -> None:
    assert timeless(shown(sample, "log --noop")) == rows(sample, "dump")
    assert timeless(shown(sample, "log")) == [row for row in rows(sample, "dump") if row["type"] != NO_OP]
    assert any(row["type"] == NO_OP for row in rows(sample, "log --noop"))
    assert {row["type"] for row in rows(sample, "log --type no_op")} == {NO_OP}


def test_a_topic(sample: Session) -> None:
    told = rows(sample, "log /image/topics/byName/legacy-import")
    assert [(row["offset"], row["type"]) for row in told] == [
        (94, "TOPIC_RECORD"), (96, "PARTITION_RECORD"), (182, "PARTITION_CHANGE_RECORD"),
    ]  # fmt: skip
    topic_id = told[0]["data"]["topicId"]
    assert offsets(sample, f"log /image/topics/byId/{topic_id}") == [94, 96, 182]
    assert offsets(sample, "log /image/topics/byName/legacy-import/0") == [94, 96, 182]


def test_a_topic_that_is_gone(sample: Session) -> None:
    told = [row["type"] for row in rows(sample, "log /image/topics/byName/tmp-backfill")]
    assert (told[0], told[-1]) == ("TOPIC_RECORD", "REMOVE_TOPIC_RECORD")


def test_agrees_with_every_diff() -> None:
    """A record touched a path exactly if the image there differs after it (or it set what was set)."""
    session = opened(FIXTURES / "4.3.1-more" / "controller-3000")
    session.travels()
    last = session.image.provenance.offset
    for place in ("/image/cluster", "/image/configs", "/image/topics/byName", "/image/acls"):
        told = set(offsets(session, f"log {place}"))
        changed = {n for n in range(1, last + 1) if rows(session, f"diff {n - 1} {n} {place}")}
        types = {row["offset"]: row["type"] for row in rows(session, "log --noop")}
        assert changed - {n for n in changed if types[n] == "END_TRANSACTION_RECORD"} <= told
        assert changed


def test_newest_first_and_count(sample: Session) -> None:
    forward = offsets(sample, "log /image/configs")
    assert offsets(sample, "log /image/configs --newest-first") == forward[::-1]
    assert offsets(sample, "log /image/configs -r --count 2") == forward[:-3:-1]
    assert offsets(sample, "log /image/configs --count 2") == forward[:2]
    assert offsets(sample, "log /image/configs --count 0") == []


def test_since_and_until(sample: Session) -> None:
    assert offsets(sample, "log /image/topics/byName/legacy-import --since 95") == [96, 182]
    assert offsets(sample, "log /image/topics/byName/legacy-import --until 181") == [94, 96]
    assert offsets(sample, "log /image/topics/byName/legacy-import --as-of 96") == [94, 96]
    assert offsets(sample, "log /image/topics/byName/legacy-import --since now") == []
    assert offsets(sample, "log --since -1ms") == offsets(sample, "log --since now")


def test_grep_searches_what_is_shown(sample: Session) -> None:
    told = rows(sample, "log --grep 'TOPIC_RECORD.*payments'")
    assert {row["type"] for row in told} == {"TOPIC_RECORD"}
    assert all("payments" in json.dumps(row["data"]) for row in told)
    assert rows(sample, "log --grep redacted --type USER_SCRAM_CREDENTIAL")
    assert rows(sample, "log --grep 'resourceName=orders, name=retention.ms'")


def test_text_names_the_path(sample: Session) -> None:
    (line,) = lines(sample, "log /image/cluster/brokers/3 -r --count 1")
    assert "BROKER_REGISTRATION_CHANGE_RECORD /image/cluster/brokers/3: fenced false -> true" in line


def test_a_log_that_begins_later(cut_sample: Session, sample: Session) -> None:
    for path in ("/image/topics/byName/legacy-import", "/image/topics/byName", "/image/cluster", "/image/configs"):
        assert offsets(cut_sample, f"log {path}") == [n for n in offsets(sample, f"log {path}") if n >= 158]


def test_records_before_the_oldest_snapshot_are_told_by_it() -> None:
    session = opened(FIXTURES / "4.2.1-rolled" / "controller-3000")
    whole = opened(FIXTURES / "4.2.1-rolled" / "controller-3002")
    for path in ("/image/topics/byName", "/image/cluster"):
        told = [n for n in offsets(session, f"log {path}") if n <= 710]
        assert set(told) <= set(offsets(whole, f"log {path}"))
        assert [n for n in told if n >= 469] == [n for n in offsets(whole, f"log {path}") if n >= 469]


def test_where_no_image_can_be_made_there_are_still_records(tmp_path: Path) -> None:
    name = "00000000000000000699.log"
    file = FIXTURES / "4.2.1-rolled" / "controller-3001" / METADATA_DIRECTORY / name
    target = tmp_path / METADATA_DIRECTORY
    target.mkdir()
    (target / name).write_bytes(file.read_bytes())
    session = opened(target)
    assert len(lines(session, "log")) == len(offsets(session, "log")) > 100
    with pytest.raises(DataError):
        offsets(session, "log /image/topics")


def test_an_aborted_transaction_is_in_the_log(tmp_path: Path) -> None:
    made = value("TOPIC", name="t", topicId=uuid(1))
    write_log(
        tmp_path, control_batch([leader_change()]),
        batch([value("BEGIN_TRANSACTION"), made, value("ABORT_TRANSACTION")], 1),
    )  # fmt: skip
    assert offsets(opened(tmp_path), "log /image/topics") == [2]


def test_after_an_aborted_transaction_all_is_as_before_it(tmp_path: Path) -> None:
    made, gone = value("TOPIC", name="t", topicId=uuid(1)), value("REMOVE_TOPIC", topicId=uuid(1))
    other = value("TOPIC", name="other", topicId=uuid(2))
    config = value("CONFIG", resourceType=2, resourceName="t", name="retention.ms", value="5")
    write_log(
        tmp_path, control_batch([leader_change()]), batch([made, config], 1),
        batch([value("BEGIN_TRANSACTION"), gone, other, value("ABORT_TRANSACTION")], 3),
        batch([gone], 7),
    )  # fmt: skip
    session = opened(tmp_path)
    assert offsets(session, "log /image/topics/byName/t") == [1, 4, 7]
    assert offsets(session, "log /image/configs/TOPIC:t") == [2, 4, 7]
    assert offsets(session, "log /image/topics/byName/other") == [5]


@pytest.mark.parametrize(("end", "touched"), [("END_TRANSACTION", [2, 4, 6]), ("ABORT_TRANSACTION", [2, 4])])
def test_since_the_middle_of_a_transaction(tmp_path: Path, end: str, touched: list[int]) -> None:
    """What its records before that point made is known to those after it, and gone once it is aborted."""

    def partition(number: int) -> bytes:
        return value("PARTITION", partitionId=number, topicId=uuid(1), replicas=[1], isr=[1], leader=1, leaderEpoch=0)

    records = [value("BEGIN_TRANSACTION"), value("TOPIC", name="t", topicId=uuid(1)), value("NO_OP"), partition(0)]
    write_log(tmp_path, control_batch([leader_change()]), batch([*records, value(end), partition(1)], 1))
    session = opened(tmp_path)
    assert offsets(session, "log /image/topics/byName/t") == touched
    assert offsets(session, "log /image/topics/byName/t --since 3") == touched[1:]


def test_control_records_touch_the_quorum(sample: Session) -> None:
    assert {row["type"] for row in rows(sample, "log /quorum")} >= {"LEADER_CHANGE"}


def test_damage_is_told_after_what_can_be_read(tmp_path: Path) -> None:
    target = copy_of(recorded(log_from_zero=True)[0], tmp_path)
    file = target / f"{0:020d}.log"
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    file.write_bytes(raw)
    session = opened(target)
    told = rows(session, "log")
    assert told and rows(session, "log -r") == told[::-1]
    assert [getattr(error, "file", None) for error in session.found_damage] == [str(file)]
    assert session.exit_code() == 4


@pytest.mark.parametrize("line", ["log /image/*", "log --grep (", "log --since someday", "log --type nosuch"])
def test_what_is_no_question(sample: Session, line: str) -> None:
    with pytest.raises(UsageError):
        rows(sample, line)


def test_every_touch_of_the_sample_has_its_path() -> None:
    assert paths(Touch("configs", (("TOPIC", "a/b"), "x"))) == [("image", "configs", "TOPIC:a%2Fb", "x")]


def test_a_condition_chooses_records_by_what_they_hold(sample: Session) -> None:
    every = rows(sample, "log --type PARTITION_RECORD")
    led = [row["offset"] for row in every if row["data"]["leader"] == 3]
    assert 0 < len(led) < len(every)
    assert offsets(sample, "log --where 'data.leader == 3 and type == PARTITION_RECORD'") == led
    assert offsets(sample, "log --where 'data.leader == 3' --type PARTITION_RECORD -r --count 1") == led[-1:]
    assert len(lines(sample, "log --where 'data.leader == 3' --type PARTITION_RECORD")) == len(led)
    with pytest.raises(UsageError) as raised:
        run(sample, "log --where 'path == x'")
    assert "timestampMs" in (raised.value.hint or "")


def written_at(base_offset: int, *times: int, append: bool = False) -> bytes:
    """A batch of configs of topic t, each record written at its own time (milliseconds after TIME)."""
    records = [value("CONFIG", resourceType=2, resourceName="t", name="retention.ms", value=str(at)) for at in times]
    return timed_batch(records, [TIME + at for at in times], base_offset, append=append)


def iso_at(milliseconds: int) -> str:
    """A point in time as somebody writes it."""
    return datetime.fromtimestamp((TIME + milliseconds) / 1000, UTC).isoformat(timespec="milliseconds")


@pytest.fixture
def clocks(tmp_path: Path) -> Session:
    """Offsets 0 to 9. The clock went back at offset 3 to 4; the broker's clock wrote offsets 8 and 9 at 6 s."""
    write_log(
        tmp_path,
        written_at(0, 0, 1000),
        written_at(2, 3000, 500, 2000),
        written_at(5, 4000, 4000, 4001),
        written_at(8, 5000, 6000, append=True),
    )
    return opened(tmp_path)


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (-5000, range(10)),
        (0, range(10)),
        (1, range(1, 10)),
        (1000, [1, 2, 4, 5, 6, 7, 8, 9]),
        (1001, [2, 4, 5, 6, 7, 8, 9]),
        (3000, [2, 5, 6, 7, 8, 9]),
        (4000, range(5, 10)),
        (4001, range(7, 10)),
        (5500, [8, 9]),
        (6000, [8, 9]),
        (6001, []),
        (10**9, []),
    ],
)
@pytest.mark.parametrize("command", ["log", "log /image/configs/TOPIC:t", "log -r"])
def test_since_a_time_shows_nothing_from_before_it(
    clocks: Session, command: str, since: int, expected: Sequence[int]
) -> None:
    answer = rows(clocks, f"{command} --since {iso_at(since)}")
    assert sorted(row["offset"] for row in answer) == list(expected)
    assert all(row["timestampMs"] >= TIME + since for row in answer)


def test_since_a_while_ago_has_no_answer_when_nothing_happened(clocks: Session) -> None:
    assert offsets(clocks, "log --since -10m") == offsets(clocks, "log --since now") == []
    assert lines(clocks, "log --since -10m") == []


def test_since_a_mark_begins_with_its_record(clocks: Session) -> None:
    run(clocks, "mark here 7")
    assert offsets(clocks, "log --since @here") == offsets(clocks, "log --since 7") == [7, 8, 9]


def test_follow_since_a_time_shows_nothing_from_before_it(clocks: Session) -> None:
    assert offsets(clocks, f"follow --since {iso_at(3000)} --count 6") == [2, 5, 6, 7, 8, 9]


class TestReadable:
    """Text for people: Kafka's names, and what stood there before. Other formats stay Kafka's data."""

    @pytest.fixture
    def session(self, tmp_path: Path) -> Session:
        acl = value(
            "ACCESS_CONTROL_ENTRY", id=uuid(9), resourceType=2, resourceName="t", patternType=4, principal="User:a",
            host="*", operation=3, permissionType=2,
        )  # fmt: skip
        credential = {"name": "alice", "salt": b"s", "storedKey": b"k", "serverKey": b"v"}
        partition = value(
            "PARTITION", 1, partitionId=0, topicId=uuid(1), replicas=[1, 2], isr=[1, 2], leader=1, leaderEpoch=0,
            partitionEpoch=0, directories=[uuid(3), uuid(3)],
        )  # fmt: skip
        point = {"name": "P", "host": "h", "port": 9092, "securityProtocol": 1}
        feature = {"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": 29}
        records = [
            value("FEATURE_LEVEL", name="metadata.version", featureLevel=25),
            value("FEATURE_LEVEL", name="metadata.version", featureLevel=26),
            value("TOPIC", name="t", topicId=uuid(1)),
            partition,
            value("PARTITION_CHANGE", partitionId=0, topicId=uuid(1), leader=2, isr=[2], leaderRecoveryState=1),
            value("CONFIG", resourceType=2, resourceName="t", name="retention.ms", value="1000"),
            value("CONFIG", resourceType=2, resourceName="t", name="retention.ms", value="2000"),
            value("CONFIG", resourceType=2, resourceName="t", name="retention.ms", value=None),
            acl,
            value("REMOVE_ACCESS_CONTROL_ENTRY", id=uuid(9)),
            value("USER_SCRAM_CREDENTIAL", mechanism=1, iterations=4096, **credential),
            value("USER_SCRAM_CREDENTIAL", mechanism=1, iterations=8192, **credential),
            value("CONFIG", resourceType=2, resourceName="t", name="no.such.key", value="canary-1"),
            value("CONFIG", resourceType=2, resourceName="t", name="no.such.key", value="canary-2"),
            value(
                "REGISTER_BROKER", brokerId=1, brokerEpoch=7, incarnationId=uuid(4), endPoints=[point],
                features=[feature], rack=None, fenced=True,
            ),
            value("BROKER_REGISTRATION_CHANGE", brokerId=1, brokerEpoch=7, fenced=-1),
            value("CONFIG", resourceType=99, resourceName="t", name="k", value="v"),
        ]  # fmt: skip
        write_log(tmp_path, control_batch([leader_change()]), *(batch([one], at) for at, one in enumerate(records, 1)))
        return opened(tmp_path)

    EXPECTED = (
        (1, "/image/features/metadataVersion: set to 4.0-IV3"),
        (2, "/image/features/metadataVersion: 4.0-IV3 -> 4.1-IV0"),
        (5, "/image/topics/byName/t/0: isr [1,2] -> [2], leader 1 -> 2, leaderRecoveryState RECOVERED -> RECOVERING"),
        (6, "/image/configs/TOPIC:t/retention.ms: set to 1000"),
        (7, "/retention.ms: 1000 -> 2000"),
        (8, "/retention.ms: removed, was 2000"),
        (9, "resourceType=TOPIC, resourceName=t, patternType=PREFIXED, principal=User:a"),
        (9, "operation=READ, permissionType=DENY"),
        (10, ": removed, was resourceType=TOPIC, resourceName=t, patternType=PREFIXED, principal=User:a"),
        (11, "mechanism=SCRAM-SHA-256, salt=[redacted]"),
        (12, ": iterations 4096 -> 8192"),
        (14, ": [redacted] -> [redacted]"),
        (15, "securityProtocol=SSL"),
        (15, "minSupportedVersion=3.3-IV3,maxSupportedVersion=4.2-IV1"),
        (16, "/image/cluster/brokers/1: fenced true -> false"),
        (17, "/image/configs/UNKNOWN(99):t/k: set to [redacted]"),
    )

    @pytest.mark.parametrize(("offset", "text"), EXPECTED)
    def test_names_and_what_changed(self, session: Session, offset: int, text: str) -> None:
        line = next(line for line in lines(session, "log") if line.split()[0] == str(offset))
        assert text in line

    def test_a_path_and_a_later_start_know_what_was_before(self, session: Session) -> None:
        (line,) = lines(session, "log /image/configs/TOPIC:t/retention.ms --since 7 --until 7")
        assert line.endswith(": 1000 -> 2000")
        (line,) = lines(session, "log --since 7 --until 7")
        assert line.endswith(": 1000 -> 2000")
        assert lines(session, "follow --since 7 --count 1")[0].endswith(": 1000 -> 2000")

    def test_secrets_stay_secret(self, session: Session) -> None:
        assert "canary" not in "\n".join(lines(session, "log"))
        assert ": canary-1 -> canary-2" in "\n".join(lines(opened_with_secrets(session), "log"))

    def test_other_formats_are_kafkas_data(self, session: Session) -> None:
        assert timeless(shown(session, "log --noop")) == rows(session, "dump")
        (row,) = rows(session, "log --since 6 --until 6")
        assert row["data"]["resourceType"] == 2
        assert "path" not in [column.name for column in run(session, "log").columns]  # type: ignore[attr-defined]

    def test_grep_finds_both_ways_of_saying_it(self, session: Session) -> None:
        assert offsets(session, "log --grep PREFIXED") == offsets(session, "log --grep '\"patternType\":4'") == [9]


@pytest.mark.parametrize(("line", "printed"), [("follow", [3, 4]), ("follow --since 2", [2, 3, 4]), ("follow", [])])
def test_where_to_go_on_when_the_quorum_is_away_for_too_long(line: str, printed: list[int]) -> None:
    with Quorum(controllers=3) as quorum:
        quorum.append(value("NO_OP"), value("NO_OP"))
        session = Session(quorum.keep(QuorumSource(quorum.bootstrap, settings(default_api_timeout_ms="300"))))
        assert session.loaded.log_end_offset == 3
        result = run(session, line)
        assert isinstance(result, Rows)
        told = iter(result)
        if printed:
            quorum.append(value("NO_OP"), value("NO_OP"))
        assert [next(told)["offset"] for _ in printed] == printed
        for node in quorum.controllers:
            node.stop()
        with pytest.raises(NodeError) as raised:
            next(told)
    assert str(raised.value.hint).endswith(f"`follow --since {5 if printed else 3}` goes on after what was printed")


def opened_with_secrets(session: Session) -> Session:
    return opened(session.source.path, show_secrets=True)


@pytest.mark.parametrize("line", ["log orders", "log orders --type TOPIC_RECORD -r", "log /image/topics/orders"])
def test_a_path_where_nothing_ever_was_is_refused(sample: Session, line: str) -> None:
    """Empty and exit code 0 would say that nothing ever happened to it."""
    with pytest.raises(NoSuchPathError) as raised:
        rows(sample, line)
    assert raised.value.hint == "did you mean /image/topics/byName/orders or /image/configs/TOPIC:orders?"


def test_a_path_where_something_is_or_was_may_have_no_record_in_sight(sample: Session) -> None:
    assert rows(sample, "log /image/topics/byName/tmp-backfill --since 205") == []
    assert rows(sample, "log /image/topics/byName/tmp-backfill --type CONFIG_RECORD") == []
    assert rows(sample, "log /image/topics/byName/orders --since 205") == []


def test_since_a_time_after_the_last_record_says_so(sample: Session) -> None:
    assert rows(sample, "log --since -10m") == []
    note = "no record is newer than -10m: the last one was written at 2026-11-21T15:11:24.494Z, "
    assert sample.remarks[0].startswith(note) and sample.remarks[0].endswith("`end-10m` counts back from it")
    assert rows(sample, "log --since end-10m") and sample.remarks == []


@pytest.mark.parametrize(
    ("line", "note"),
    [
        (
            "log --since 200 --until 100",
            "--since (offset 200) is after --until (offset 100): no record is between them",
        ),
        ("log --type UNREGISTER_BROKER --until 10", "no record matches"),
        ("log --since 300", "the log ends with offset 206, before --since (offset 300)"),
        ("log --since now", "the log ends with offset 206, before --since (offset 207)"),
        ("log --since 206", "no record, or NoOps alone: --noop shows them"),
    ],
)
def test_an_answer_without_a_record_says_why(sample: Session, line: str, note: str) -> None:
    """Nothing at all looks like an answer that was not given."""
    assert rows(sample, line) == []
    assert note in sample.remarks
    assert rows(sample, "log --count 1") and sample.remarks == []


@pytest.mark.parametrize("line", ["log --until 50", "log --type CONFIG --until 50", "log --stat --until 50"])
def test_an_end_before_the_log_starts_is_named(cut_sample: Session, line: str) -> None:
    """What is deleted is not what never happened."""
    assert rows(cut_sample, line) == []
    assert "the log starts at offset 158, after offset 50: the records before it are deleted" in cut_sample.remarks


def test_a_beginning_after_the_shown_point_is_named(sample: Session) -> None:
    then = sample.reshape(point="100")
    assert rows(then, "log --since 150") == []
    point = "the point in time that is shown (offset 100)"
    assert then.remarks == [f"--since (offset 150) is after {point}: no record is between them"]


@pytest.mark.parametrize("line", ["why orders-0 --since 150 --until 100", "timeline orders --since 150 --until 100"])
def test_a_story_that_begins_after_its_end_says_so(sample: Session, line: str) -> None:
    run(sample, line)
    assert "--since (offset 150) is after offset 100, the last one that is shown" in sample.remarks


@pytest.mark.parametrize("line", ["log", "log --noop", "log --stat", "log /image/topics", "timeline"])
def test_a_snapshot_alone_has_no_log_to_show(tmp_path: Path, line: str) -> None:
    write_snapshot(tmp_path, snapshot([value("TOPIC", name="t", topicId=uuid(1))]), 9)
    session = opened(tmp_path)
    lines(session, line)
    assert "there is no log here, only snapshot 9-1: `dump` shows its records" in session.remarks
