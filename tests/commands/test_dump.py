"""dump: the records as they are, damage or not."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kshell.cli import main
from kshell.engine.result import Rows
from kshell.engine.session import Session
from kshell.errors import CommandError, CorruptDataError, DataError, IncompleteLogError, UsageError
from kshell.json_text import to_json
from kshell.protocol.batches import pack, write_batch
from kshell.protocol.decoder import UNKNOWN_TAGS
from tests import builders
from tests.commands.shell import lines, opened, rows, run, value


def topic(number: int) -> bytes:
    return builders.value("TOPIC", name=f"t{number}", topicId=builders.uuid(number))


def small_log(directory: Path) -> Path:
    """Offsets 0 (LeaderChange), 1-2, 3-4, 5-6."""
    parts = [builders.control_batch([builders.leader_change()])]
    parts += [builders.batch([topic(at), topic(at + 1)], at) for at in (1, 3, 5)]
    return builders.write_log(directory, *parts)


def test_rows(tmp_path: Path) -> None:
    small_log(tmp_path)
    found = rows(opened(tmp_path), "dump")
    assert [row["offset"] for row in found] == list(range(7))
    assert found[0]["type"] == "LEADER_CHANGE"
    assert found[1] == {
        "offset": 1,
        "epoch": 1,
        "timestampMs": builders.TIME,
        "type": "TOPIC_RECORD",
        "version": 0,
        "data": {"name": "t1", "topicId": str(builders.uuid(1))},
    }


@pytest.mark.parametrize("words", [(), ("--from", "2"), ("--to", "5"), ("--type", "TOPIC"), ("--show-secrets",)])
def test_lines_of_json_are_the_rows(tmp_path: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    """Whole batches, halves of one, control records, a record that cannot be decoded, compressed and secret ones."""
    odd = [topic(7), b"\1\x02\0\x7f", b"\1\x77\0", topic(10)]
    secret = builders.value("CONFIG", resourceType=4, resourceName="1", name="ssl.key.password", value="s\x7f\u2028")
    parts = [small_log(tmp_path).read_bytes(), builders.batch(odd, 7), builders.batch([secret, topic(12)], 11)]
    last: list[tuple[bytes | None, bytes | None]] = [(None, topic(13)), (None, topic(14))]
    parts.append(write_batch(last, base_offset=13, epoch=1, timestamp=5, codec=1, compressed=gzip.compress(pack(last))))
    path = builders.write_log(tmp_path, *parts)
    shown = []
    for form in ("json", "jsonl"):
        code = main(["-d", str(path), "dump", *words, "-o", form])
        done = capfd.readouterr()
        shown.append((code, done.err, json.loads(done.out) if form == "json" else done.out))
    (code, err, found), (same_code, same_err, text) = shown
    assert (code, err) == (same_code, same_err)
    assert [json.loads(line) for line in text.splitlines()] == found
    assert text == "".join(to_json(row) + "\n" for row in found)
    assert len(found) > 1 and text.isascii()


def test_limits(tmp_path: Path, sample: Session) -> None:
    small_log(tmp_path)
    session = opened(tmp_path)
    for line, offsets in (
        ("dump --from 4", [4, 5, 6]),
        ("dump --to 1", [0, 1]),
        ("dump --from 2 --to 2", [2]),
        ("dump --as-of 3 --from 3", [3]),
        ("dump --type topic --to 2", [1, 2]),
        ("dump --type leader-change --type TOPIC_RECORD --to 1", [0, 1]),
        ("dump --type UNKNOWN_99", []),
        ("dump --from 99", []),
    ):
        assert [row["offset"] for row in rows(session, line)] == offsets
    # From the middle of the second segment on.
    assert [row["offset"] for row in rows(sample, "dump --from 100 --to 102")] == [100, 101, 102]


@pytest.mark.parametrize("line", ["dump --type TOPICS", "dump --from -1", "dump --to x", "dump what"])
def test_usage(sample: Session, line: str) -> None:
    with pytest.raises(UsageError):
        run(sample, line)


def test_types_are_proposed(sample: Session) -> None:
    with pytest.raises(UsageError) as raised:
        run(sample, "dump --type TOPIK_RECORD")
    assert raised.value.hint is not None
    assert "TOPIC_RECORD" in raised.value.hint
    with pytest.raises(UsageError) as refused:
        run(sample, "dump --type clear")
    assert refused.value.hint == "did you mean CLEAR_ELR_RECORD?"


def test_a_type_filter_gives_what_it_would_have_without(sample: Session) -> None:
    everything = rows(sample, "dump")
    for name in {row["type"] for row in everything}:
        assert rows(sample, f"dump --type {name}") == [row for row in everything if row["type"] == name]


def test_snapshots(sample: Session, tmp_path: Path) -> None:
    inside = rows(sample, "dump --snapshot 159-1")
    assert (inside[0]["type"], inside[-1]["type"]) == ("SNAPSHOT_HEADER", "SNAPSHOT_FOOTER")
    assert inside == rows(sample, "dump --snapshot 00000000000000000159-0000000001")
    assert [row["offset"] for row in inside] == list(range(len(inside)))
    with pytest.raises(CommandError) as raised:
        run(sample, "dump --snapshot 159-2")
    assert raised.value.hint == "the snapshots are 0-0, 57-1, 116-1, 159-1"
    # Snapshots only: the newest one. A lone file: that.
    for number in (1, 2):
        path = builders.write_snapshot(tmp_path, builders.snapshot([topic(number)]), end_offset=number * 10)
    assert rows(opened(tmp_path), "dump")[1]["data"]["name"] == "t2"
    assert rows(opened(path), "dump") == rows(opened(tmp_path), "dump")


def test_no_image_is_needed(tmp_path: Path) -> None:
    builders.write_log(tmp_path, builders.batch([topic(1)], 50), base_offset=50)
    session = opened(tmp_path)
    with pytest.raises(IncompleteLogError):
        _ = session.image
    assert [row["offset"] for row in rows(session, "dump")] == [50]


def collected(session: Session, line: str = "dump") -> tuple[list[int], list[DataError]]:
    """The offsets of the records that are readable, and the damage that was found; the exit code is 4."""
    result = run(session, line)
    assert isinstance(result, Rows)
    seen = [row["offset"] for row in result]
    assert result.exit_code == 4
    return seen, session.found_damage


def test_damage_ends_the_command_after_everything_readable(tmp_path: Path) -> None:
    path = small_log(tmp_path)
    raw = bytearray(path.read_bytes())
    start = builders.batches(bytes(raw))[2].position
    raw[start + 70] ^= 1
    path.write_bytes(raw)
    seen, (error,) = collected(opened(tmp_path))
    assert seen == [0, 1, 2, 5, 6]
    assert isinstance(error, CorruptDataError)
    assert error.position == start
    assert error.exit_code == 4


@pytest.mark.parametrize("command", ["dump", "log", "log -r"])
@pytest.mark.parametrize("form", ["text", "json", "jsonl", "yaml", "csv", "html"])
def test_every_format_of_a_damaged_log_is_whole(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], command: str, form: str
) -> None:
    """What is readable is the answer: JSON is closed, and a program can read it."""
    path = small_log(tmp_path)
    whole = [row["offset"] for row in rows(opened(tmp_path), command)]
    raw = bytearray(path.read_bytes())
    found = builders.batches(bytes(raw))[2]
    raw[found.position + 70] ^= 1
    path.write_bytes(raw)
    readable = [offset for offset in whole if not found.base_offset <= offset <= found.last_offset]
    assert 0 < len(readable) < len(whole)
    assert main(["-d", str(tmp_path), *command.split(), "-o", form]) == 4
    out, err = capfd.readouterr()
    assert f"error: {path}: byte {found.position}: " in err
    if form == "json":
        assert [row["offset"] for row in json.loads(out)] == readable
    elif form == "html":
        assert out.rstrip().endswith("</table></div>") and out.count("<tr") == len(readable) + 1
    elif form == "text":  # a record may take several lines
        assert [int(line[:6]) for line in out.splitlines() if line[:6].strip().isdigit()] == readable
    else:
        records = out.count("offset: ") if form == "yaml" else len(out.splitlines()) - (form == "csv")
        assert records == len(readable)


def test_an_end_before_the_beginning_is_named(sample: Session) -> None:
    assert rows(sample, "dump --from 10 --to 5") == []
    assert sample.remarks == ["--from 10 is after --to 5: no record is between them"]


@pytest.mark.parametrize("line", ["dump --to 50", "dump --from 10 --to 50 -o jsonl"])
def test_an_end_before_the_log_starts_is_named(cut_sample: Session, line: str) -> None:
    """What is deleted is not what never happened."""
    assert rows(cut_sample, line) == []
    assert cut_sample.remarks == ["the log starts at offset 158, after offset 50: the records before it are deleted"]
    assert rows(cut_sample, "dump --to 158") and cut_sample.remarks == []


@pytest.mark.parametrize("form", ["text", "jsonl"])
def test_a_beginning_after_the_logs_end_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str], form: str) -> None:
    small_log(tmp_path)
    assert main(["-d", str(tmp_path), "-o", form, "dump", "--from", "7"]) == 0
    out, err = capfd.readouterr()
    assert out == "" and "note: the log ends with offset 6, before --from\n" in err
    assert main(["-d", str(tmp_path), "-o", form, "dump", "--from", "6", "--type", "REMOVE_TOPIC"]) == 0
    assert "the log ends" not in capfd.readouterr().err


def test_two_damaged_batches_are_both_named(tmp_path: Path) -> None:
    path = small_log(tmp_path)
    raw = bytearray(path.read_bytes())
    places = [builders.batches(bytes(raw))[number].position for number in (1, 3)]
    for place in places:
        raw[place + 70] ^= 1
    path.write_bytes(raw)
    seen, errors = collected(opened(tmp_path))
    assert seen == [0, 3, 4]
    assert [getattr(error, "position", None) for error in errors] == places


def test_a_damaged_snapshot(tmp_path: Path) -> None:
    raw = builders.snapshot([topic(1), topic(2)], per_batch=1)
    path = builders.write_snapshot(tmp_path, raw[: builders.batches(raw)[2].position], end_offset=9)
    seen, (error,) = collected(opened(path))
    assert seen == [0, 1]
    assert "no footer" in error.message


def test_a_torn_tail_is_a_remark(tmp_path: Path) -> None:
    path = small_log(tmp_path)
    path.write_bytes(path.read_bytes()[:-3])
    session = opened(tmp_path)
    assert [row["offset"] for row in rows(session, "dump")] == [0, 1, 2, 3, 4]
    assert not session.is_loaded
    assert any("torn tail" in note for note in session.notes())
    assert session.problems() == []


def test_what_cannot_be_decoded_is_shown(tmp_path: Path) -> None:
    tagged = builders.value(
        "TOPIC", name="t", topicId=builders.uuid(1), **{UNKNOWN_TAGS: [{"tag": 9, "data": b"\xab"}]}
    )
    values = [b"\x01\x63\x00\x07", b"\x01\x02\x05\x07", b"\x01\x02\x00\x07", tagged]
    builders.write_log(
        tmp_path,
        builders.control_batch([builders.leader_change(), (b"\0\0\0\x09", b"\0\x03\xff")]),
        builders.batch(values, 2),
    )
    found = {row["offset"]: row for row in rows(opened(tmp_path), "dump")}
    assert found[1]["type"] == "UNKNOWN_CONTROL_9"
    assert found[1]["version"] == 3
    assert found[1]["data"]["undecoded"] == "0003ff"
    assert (found[2]["type"], found[2]["data"]["undecoded"]) == ("UNKNOWN_99", "01630007")
    assert (found[3]["type"], found[3]["version"], found[3]["data"]["undecoded"]) == ("TOPIC_RECORD", 5, "01020507")
    assert (found[4]["type"], found[4]["data"]["undecoded"]) == ("TOPIC_RECORD", "01020007")
    assert all(found[offset]["data"]["reason"] for offset in (1, 2, 3, 4))
    assert found[5]["data"][UNKNOWN_TAGS] == [{"tag": 9, "data": "ab"}]
    assert [row["offset"] for row in rows(opened(tmp_path), "dump --type unknown_99")] == [2]


def test_tagged_fields_with_their_default_are_left_out(tmp_path: Path) -> None:
    change: dict[str, Any] = {"partitionId": 0, "topicId": builders.uuid(1), "leader": -2, "isr": [1], "replicas": None}
    partition = builders.value(
        "PARTITION", topicId=builders.uuid(1), partitionId=1, leaderRecoveryState=0, replicas=[1], isr=[1]
    )
    builders.write_log(
        tmp_path,
        builders.control_batch([builders.leader_change()]),
        builders.batch([builders.value("PARTITION_CHANGE", **change), partition], 1),
    )
    _, changed, made = rows(opened(tmp_path), "dump")
    assert changed["data"] == {"partitionId": 0, "topicId": str(builders.uuid(1)), "isr": [1]}
    assert "leaderRecoveryState" not in made["data"]


def test_a_segment_that_vanishes_is_no_damage(tmp_path: Path) -> None:
    """A running server deletes the oldest segment while it is read."""
    parts = [builders.control_batch([builders.leader_change()]), builders.batch([topic(1)], 1)]
    first = builders.write_log(tmp_path, *parts)
    builders.write_log(tmp_path, builders.batch([topic(2)], 2), base_offset=2)
    builders.write_log(tmp_path, builders.batch([topic(3)], 3), base_offset=3)
    session = opened(tmp_path)
    found = iter(run(session, "dump"))  # type: ignore[call-overload]  # Rows
    seen = [next(found)["offset"]]
    first.unlink()
    (tmp_path / f"{2:020d}.log").unlink()
    seen += [row["offset"] for row in found]
    assert seen == [0, 1, 3]


def test_lines(sample: Session) -> None:
    assert lines(sample, "dump --from 24 --to 24") == [
        '    24   1 2026-11-21T15:11:05.421Z TOPIC_RECORD v0 {"name":"orders","topicId":"UXb3XJP4SyyIl0xszwYazw"}'
    ]


def told(session: Session, line: str = "dump") -> tuple[list[dict[str, Any]], int, list[str]]:
    """The rows, and afterwards the exit code, and what is said of damage and else."""
    result = run(session, line)
    found = [dict(row) for row in result]  # type: ignore[attr-defined]  # Rows
    return found, result.exit_code, [*(error.message for error in session.found_damage), *session.remarks]


def odd_log(directory: Path) -> Path:
    """Offsets 0 (LeaderChange), 1 (a key), 2 (no value), 3 (cut short), 4 (sound)."""
    pairs: list[builders.Pair] = [(b"k", topic(1)), (None, None), (None, topic(3)[:-1]), (None, topic(4))]
    odd = write_batch(pairs, base_offset=1, epoch=1, timestamp=builders.TIME)
    return builders.write_log(directory, builders.control_batch([builders.leader_change()]), odd)


def test_malformed_records_end_the_command_after_everything_was_printed(tmp_path: Path) -> None:
    path = odd_log(tmp_path)
    found, code, remarks = told(opened(tmp_path))
    assert [row["offset"] for row in found] == [0, 1, 2, 3, 4]
    assert code == 4
    assert remarks == [f"{path}: offset 1: TOPIC_RECORD v0: a metadata record has a key (and 2 more malformed)"]
    # What is not asked for is not complained of.
    assert told(opened(tmp_path), "dump --from 4")[1:] == (0, [])


def test_malformed_records_through_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = odd_log(tmp_path)
    for fmt in ("json", "text", "wide"):
        assert main(["-d", str(tmp_path), "dump", "-o", fmt]) == 4
        captured = capsys.readouterr()
        assert "a metadata record has a key" in captured.out
        assert f"{path}: offset 1: TOPIC_RECORD v0" in captured.err


def test_malformed_records_are_shown_with_the_words_that_the_log_has_for_them(tmp_path: Path) -> None:
    odd_log(tmp_path)
    reasons = {row["offset"]: row["data"].get("reason") for row in rows(opened(tmp_path), "dump")}
    assert (reasons[1], reasons[2], reasons[4]) == ("a metadata record has a key", "the record has no value", None)
    session = opened(tmp_path)
    for offset in (1, 2, 3):
        assert value(session, f"cat /log/undecoded/{offset}")["reason"] == reasons[offset]
    assert session.exit_code() == 4
    assert sum("TOPIC_RECORD skipped: a metadata record has a key" in problem for problem in session.problems()) == 1


def test_the_same_in_a_snapshot(tmp_path: Path) -> None:
    pairs: list[builders.Pair] = [(b"k", topic(1)), (None, topic(2))]
    odd = write_batch(pairs, base_offset=1, epoch=1, timestamp=builders.TIME)
    header = builders.control_batch([builders.control(3, lastContainedLogTimestamp=builders.TIME)])
    path = builders.write_snapshot(tmp_path, header + odd + builders.control_batch([builders.control(4)], 3), 9)
    found, code, remarks = told(opened(path))
    assert [row["offset"] for row in found] == [0, 1, 2, 3]
    assert code == 4
    assert remarks == [f"{path}: offset 1: TOPIC_RECORD v0: a metadata record has a key"]
    session = opened(path)
    assert [row["name"] for row in rows(session, "ls /image/topics/byName")] == ["t2"]
    assert session.exit_code() == 4


def test_a_malformed_control_record_is_damage_and_a_newer_one_is_not(tmp_path: Path) -> None:
    builders.write_log(tmp_path, builders.control_batch([builders.leader_change(), (b"\0\0\0\x63", b"\0\0")]))
    assert [row["type"] for row in rows(opened(tmp_path), "dump")] == ["LEADER_CHANGE", "UNKNOWN_CONTROL_99"]
    session = opened(tmp_path)
    assert value(session, "cat /log/undecoded/1")["record"] == "UNKNOWN_CONTROL_99"
    assert session.exit_code() == 0
    builders.write_log(tmp_path, builders.control_batch([builders.leader_change(), (b"\0\0\0\x05", b"\0\0")]))
    found, code, remarks = told(opened(tmp_path))
    assert ([row["type"] for row in found], code) == (["LEADER_CHANGE", "KRAFT_VERSION"], 4)
    assert "KRAFT_VERSION v0" in remarks[0]
    session = opened(tmp_path)
    assert value(session, "cat /log/undecoded/1")["version"] == 0
    assert session.exit_code() == 4


def test_damage_is_named_by_its_full_path(tmp_path: Path) -> None:
    odd = write_batch([(None, b"a")], base_offset=1, epoch=1, timestamp=builders.TIME, compressed=b"\x7f\x00")
    path = builders.write_log(tmp_path, builders.control_batch([builders.leader_change()]), odd)
    _, (error,) = collected(opened(tmp_path))
    assert error.message.startswith(f"{path}: byte ")


def test_damage_after_the_last_offset_asked_for(tmp_path: Path) -> None:
    path = small_log(tmp_path)
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)
    for line in ("dump --to 4", "dump --as-of 4"):
        assert [row["offset"] for row in rows(opened(tmp_path), line)] == [0, 1, 2, 3, 4]
    assert collected(opened(tmp_path), "dump --to 5")[0] == [0, 1, 2, 3, 4]


def test_a_malformed_partition_of_a_snapshot_ends_in_4_once_it_is_looked_at(tmp_path: Path) -> None:
    partitions = [
        builders.value("PARTITION", partitionId=at, topicId=builders.uuid(1), replicas=[1], isr=[1]) for at in range(2)
    ]
    raw = builders.snapshot([topic(1), partitions[0], partitions[1][:-1]])
    builders.write_snapshot(tmp_path, raw, end_offset=9)
    session = opened(tmp_path)
    value(session, "cat /image/topics/byName/t1/0")
    assert session.exit_code() == 0
    assert "undecoded" in value(session, "cat /image/topics/byName/t1/1")
    assert session.exit_code() == 4
    assert len(session.problems()) == 1
    run(session, "cat /image/topics/byName/t1/1")
    assert len(session.problems()) == 1
