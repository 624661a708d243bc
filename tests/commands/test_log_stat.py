"""log --stat: what fills the log, against the files' sizes and the records that log shows."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.result import Drawing
from kshell.engine.session import Session
from kshell.errors import UsageError
from kshell.protocol.batches import pack, write_batch
from tests.builders import TIME, Pair, batch, node_name, recorded, uuid, value, write_log
from tests.commands.shell import lines, opened, rows, run

HOUR = 3_600_000


def by(session: Session, group: str, more: str = "") -> dict[Any, tuple[int, int]]:
    return {row["name"]: (row["records"], row["bytes"]) for row in stat(session, more) if row["by"] == group}


def stat(session: Session, more: str = "") -> list[dict[str, Any]]:
    return rows(session, f"log --stat {more}")


@pytest.mark.parametrize("node", recorded()[::3], ids=node_name)
def test_every_group_adds_up_to_the_files(node: Path) -> None:
    session = opened(node)
    size = sum(segment.size for segment in session.source.listing(full_log=True).segments)
    shown = stat(session)
    for group in ("type", "topic", "hour"):
        assert sum(row["bytes"] for row in shown if row["by"] == group) == size, group
        assert sum(row["share"] for row in shown if row["by"] == group) == pytest.approx(1, abs=0.001)
    types = Counter(row["type"] for row in rows(session, "log --noop"))
    assert {row["name"]: row["records"] for row in shown if row["by"] == "type"} == types


def test_topics_have_the_records_that_name_them(sample: Session) -> None:
    names = {row["topicId"]: row["name"] for row in rows(sample, "topics")}
    expected: Counter[str | None] = Counter()
    for row in rows(sample, "log --noop"):
        data = row["data"]
        if row["type"] == "TOPIC_RECORD":
            names[data["topicId"]] = data["name"]
        is_config = row["type"] == "CONFIG_RECORD" and data["resourceType"] == 2
        topic = names.get(data.get("topicId"), data["resourceName"] if is_config else data.get("topicName"))
        expected[topic or None] += 1
    assert {name: count for name, (count, _) in by(sample, "topic").items()} == expected


def test_hours_and_bounds(tmp_path: Path) -> None:
    offsets = [0, 2, 4, 6]
    parts = [
        write_batch([(None, value("NO_OP"))] * 2, base_offset=offset, epoch=1, timestamp=hour * HOUR + 7)
        for offset, hour in zip(offsets, (10, 11, 12, 60), strict=True)
    ]
    write_log(tmp_path, *parts)
    session = opened(tmp_path)
    hours = [row for row in stat(session) if row["by"] == "hour"]
    assert [(row["timeMs"], row["records"]) for row in hours] == [(h * HOUR, 2) for h in (10, 11, 12, 60)]
    assert hours[0]["name"] == "1970-01-01T10:00:00.000Z"
    assert sum(count for count, _ in by(session, "hour", "--since 3 --until 6").values()) == 4
    drawn = lines(session, "log --stat", width=80)
    assert drawn[0] == f"8 records, {sum(map(len, parts))} B, offsets 0 to 7"
    start = next(number for number, line in enumerate(drawn) if line.startswith("3 hours from"))
    assert [line.split()[2] for line in drawn[start + 1 :]] == ["4", "2"] + ["0"] * 15 + ["2"]
    elsewhere = lines(session, "log --stat --tz Asia/Kolkata", width=80)
    assert elsewhere[start].startswith("3 hours from (Asia/Kolkata)")
    assert [line[:16] for line in elsewhere[start + 1 : start + 3]] == ["1970-01-01 14:30", "1970-01-01 17:30"]
    assert drawn[start + 1][:16] == "1970-01-01 09:00"


def test_a_compressed_batch_is_shared_by_what_its_records_are(tmp_path: Path) -> None:
    large = value("CONFIG", resourceType=2, resourceName="t", name="x", value="y" * 5000)
    records: list[Pair] = [(None, one) for one in (large, value("NO_OP"), value("TOPIC", name="t", topicId=uuid(1)))]
    packed = gzip.compress(pack(records))
    raw = write_batch(records, base_offset=0, epoch=1, timestamp=TIME, codec=1, compressed=packed)
    write_log(tmp_path, raw)
    session = opened(tmp_path)
    types = by(session, "type")
    assert sum(size for _, size in types.values()) == len(raw) < 1000
    assert types["CONFIG_RECORD"][1] > 0.9 * len(raw)
    assert by(session, "topic")["t"][0] == 2


def test_topics_of_a_snapshot_before_the_log_have_names(cut_sample: Session) -> None:
    topics = by(cut_sample, "topic")
    assert topics["legacy-import"][0] == 1
    assert all(name is None or len(name) != 22 for name in topics)


def test_types_and_nothing(sample: Session) -> None:
    assert set(by(sample, "type", "--type CONFIG --type TOPIC")) == {"CONFIG_RECORD", "TOPIC_RECORD"}
    assert lines(sample, "log --stat --type UNREGISTER_CONTROLLER") == ["no records"]


@pytest.mark.parametrize("more", ["/image/topics", "--grep a", "--where 'offset > 3'", "-r", "--count 3"])
def test_what_chooses_single_records_is_refused(sample: Session, more: str) -> None:
    with pytest.raises(UsageError, match="--stat counts records"):
        run(sample, f"log --stat {more}")


@pytest.mark.parametrize("width", [40, 80, 133])
def test_is_drawn_to_the_width(sample: Session, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(run(sample, "log --stat").readable, Drawing)
    assert max(map(len, lines(sample, "log --stat", width=width))) <= max(width, 48)
    monkeypatch.setenv("TERM", "dumb")
    assert all(line.isascii() for line in lines(sample, "log --stat", width=80))


def test_damage_is_said_and_the_rest_counted(tmp_path: Path) -> None:
    good, bad = batch([value("NO_OP")], 0), bytearray(batch([value("NO_OP")], 1))
    bad[-1] ^= 1
    write_log(tmp_path, good, bytes(bad), batch([value("NO_OP")], 2))
    session = opened(tmp_path)
    result = run(session, "log --stat")
    assert result.exit_code == 4
    assert any("byte" in error.message for error in session.found_damage)
