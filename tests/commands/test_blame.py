"""blame: the record that last changed each field, and how far that is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kshell.engine.execution import prepare_words
from kshell.engine.result import Rows
from kshell.engine.session import Session
from kshell.errors import EXIT_DATA, DataError, NoSuchPathError, UsageError
from kshell.history.blame import Blame
from kshell.render import render
from kshell.sources.directory.source import DirectorySource
from kshell.sources.past import Past
from tests.builders import batch, control_batch, copy_of, leader_change, node_name, recorded, uuid, value, write_log
from tests.commands.shell import lines, opened, rows, run
from tests.leaves import session_at, values

NODES = [
    node for node in recorded(log_from_zero=True) if node_name(node) in ("3.3.2/broker-0", "4.3.1/controller-3001")
]
Fields = dict[tuple[str, str | None], str]


def fields(past: Past, source: DirectorySource, offset: int) -> Fields:
    """Every field of every leaf as of an offset, as text."""
    told: Fields = {}
    for path, held in values(session_at(source, past, offset)).items():
        for name, one in held.items() if isinstance(held, dict) else [(None, held)]:
            told[path, name] = json.dumps(one)
    return told


@pytest.mark.slow
@pytest.mark.parametrize("node", NODES, ids=node_name)
def test_agrees_with_a_search_over_every_offset(node: Path) -> None:
    source = DirectorySource(str(node))
    past = Past(source)
    end = source.load().log_end_offset
    assert end is not None
    since: dict[tuple[str, str | None], int] = {}
    before: Fields = {}
    for offset in range(end):
        now = fields(past, source, offset)
        for key, text in now.items():
            if before.get(key) != text:
                since[key] = offset
        before = now
    session = Session(source, show_secrets=True)
    found = past.history()
    assert found is not None
    blame = Blame(found[0], end - 1, session.redaction)
    told = [row for path, leaf in blame.leaves(("image",)) for row in blame.fields(path, leaf)]
    assert {(row["path"], row["field"]) for row in told} == before.keys()
    assert len(told) > 1000
    for row in told:
        key = row["path"], row["field"]
        if row["offset"] is None:
            assert (since[key], row["type"]) == (0, None), row  # a default: no record ever set it
        else:
            assert row["effectiveOffset"] == since[key], row
    by_offset = {row["offset"]: row for row in rows(opened(node), "dump")}
    for row in told:
        if row["offset"] is not None and row["type"] is not None:
            record = by_offset[row["offset"]]
            assert (record["type"], record["timestampMs"], record["epoch"], record["version"]) == (
                row["type"], row["timestampMs"], row["epoch"], row["version"],
            )  # fmt: skip


def test_a_leaf(sample: Session) -> None:
    told = {row["field"]: row for row in rows(sample, "blame /image/topics/byName/legacy-import/0")}
    assert (told["leader"]["offset"], told["replicas"]["offset"]) == (182, 96)
    assert told["leader"]["type"] == "PARTITION_CHANGE_RECORD"
    assert told["leader"]["value"] == -1


def test_a_directory_has_a_row_a_leaf(sample: Session) -> None:
    told = rows(sample, "blame /image/topics/byName/legacy-import")
    assert [(row["path"].rpartition("/")[2], row["field"], row["offset"]) for row in told] == [
        ("0", None, 182), ("id", None, 94), ("name", None, 94),
    ]  # fmt: skip


def test_as_of_an_earlier_offset(sample: Session) -> None:
    told = {row["field"]: row for row in rows(sample, "blame /image/topics/byName/legacy-import/0 --as-of 160")}
    assert (told["leader"]["offset"], told["leader"]["value"]) == (96, 3)


def test_what_a_snapshot_hides(cut_sample: Session) -> None:
    told = {row["field"]: row for row in rows(cut_sample, "blame /image/topics/byName/legacy-import/0")}
    assert told["leader"]["offset"] == 182
    assert (told["replicas"]["offset"], told["replicas"]["notLaterThan"], told["replicas"]["snapshot"]) == (
        None, 158, "159-1",
    )  # fmt: skip
    text = "".join(render(run(cut_sample, "blame /image/topics/byName/orders/name"), "text", width=100))
    assert "not later than offset 158" in text and "in snapshot 159-1" in text


def test_setting_the_same_again_is_no_change(tmp_path: Path) -> None:
    def config(text: str) -> bytes:
        return value("CONFIG", resourceType=2, resourceName="t", name="retention.ms", value=text)

    records = [value("TOPIC", name="t", topicId=uuid(1)), config("5"), config("6"), config("6")]
    write_log(tmp_path, control_batch([leader_change()]), *(batch([one], 1 + at) for at, one in enumerate(records)))
    told = rows(opened(tmp_path), "blame /image/configs/TOPIC:t/retention.ms")
    assert [(row["offset"], row["value"]) for row in told] == [(3, "6")]


def test_in_a_transaction_both_offsets_are_told(tmp_path: Path) -> None:
    records = [value("BEGIN_TRANSACTION"), value("TOPIC", name="t", topicId=uuid(1)), value("END_TRANSACTION")]
    write_log(tmp_path, control_batch([leader_change()]), batch(records, 1))
    told = rows(opened(tmp_path), "blame /image/topics/byName/t/name")[0]
    assert (told["offset"], told["effectiveOffset"]) == (2, 3)


@pytest.mark.parametrize(
    ("isrs", "setter"),
    [
        ([[1, 2], [1]], 2),  # set and set back: it never changed
        ([[1, 2]], 4),
        ([[1, 2], [1], [1, 2], [1, 2]], 6),
        ([[1, 2], [1], [1, 2], [1]], 2),
    ],
)
def test_a_transaction_counts_by_what_it_comes_to(tmp_path: Path, isrs: list[list[int]], setter: int) -> None:
    made = value("PARTITION", partitionId=0, topicId=uuid(1), replicas=[1, 2], isr=[1], leader=1, leaderEpoch=0)
    changes = [value("PARTITION_CHANGE", partitionId=0, topicId=uuid(1), isr=isr) for isr in isrs]
    records = [value("TOPIC", name="t", topicId=uuid(1)), made, value("BEGIN_TRANSACTION"), *changes]
    write_log(tmp_path, control_batch([leader_change()]), batch([*records, value("END_TRANSACTION")], 1))
    told = {row["field"]: row for row in rows(opened(tmp_path), "blame /image/topics/byName/t/0")}
    assert told["isr"]["offset"] == setter
    assert told["isr"]["effectiveOffset"] == (2 if setter == 2 else 4 + len(isrs))
    assert told["partitionEpoch"]["offset"] == 3 + len(isrs)


def test_past_damage_the_newest_state_is_blamed_and_the_damage_told(tmp_path: Path) -> None:
    node = next(node for node in recorded(log_from_zero=True) if node_name(node) == "4.3.1/broker-0")
    file = copy_of(node, tmp_path) / f"{0:020d}.log"
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 4] ^= 0xFF
    file.write_bytes(raw)
    session = opened(file.parent)
    result = run(session, "blame /image/provenance")
    assert isinstance(result, Rows) and next(iter(result))["value"] == 573
    assert result.exit_code == EXIT_DATA
    assert any("CRC" in problem for problem in session.problems())


def test_defaults_have_no_record(sample: Session) -> None:
    then = sample.reshape(point="0")
    assert rows(then, "blame /image/producerIds/nextProducerId")[0]["type"] is None
    assert "by no record" in lines(then, "blame /image/producerIds/nextProducerId")[1]


def test_a_limit_is_told(sample: Session) -> None:
    assert len(rows(sample, "blame /image --limit 3")) == 3
    assert any("--limit" in note for note in sample.notes())


def test_secrets_stay_hidden(sample: Session) -> None:
    text = "".join(render(run(sample, "blame /image/scram"), "json"))
    assert "[redacted]" in text


@pytest.mark.parametrize(
    ("path", "error"), [("/quorum", UsageError), ("/image/*", UsageError), ("/image/x", NoSuchPathError)]
)
def test_what_cannot_be_blamed(sample: Session, path: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        run(sample, f"blame {path}")


def test_before_the_log(cut_sample: Session) -> None:
    call = prepare_words(cut_sample, ["blame", "/image/topics", "--as-of", "157"])
    with pytest.raises(DataError, match="before everything"):
        call.run()


def test_a_condition_chooses_rows_before_the_limit(sample: Session) -> None:
    every = rows(sample, "blame /image/topics/byName")
    late = [row for row in every if row["offset"] > 190]
    assert 1 < len(late) < len(every)
    assert rows(sample, "blame /image/topics/byName --where 'offset > 190'") == late
    assert rows(sample, "blame /image/topics/byName --where 'offset > 190' --limit 1") == late[:1]
    assert sample.remarks == ["only the first 1 leaves of /image/topics/byName: --limit N shows more"]
    found = rows(sample, "blame /image/topics/byName/orders/0 --where 'field in [isr, leader]'")
    assert [row["field"] for row in found] == ["isr", "leader"]
    assert len(lines(sample, "blame /image/topics/byName/orders/0 --where 'field in [isr, leader]'")) == 3


def history_of(tmp_path: Path, *records: bytes) -> Session:
    """A log with a record in each batch, from offset 1 on."""
    parts = [batch([one], offset) for offset, one in enumerate(records, 1)]
    write_log(tmp_path, control_batch([leader_change()]), *parts)
    return opened(tmp_path)


def config(text: str | None, name: str = "retention.ms", topic: str = "t") -> bytes:
    return value("CONFIG", resourceType=2, resourceName=topic, name=name, value=text)


class TestRemoved:
    PATH = "/image/configs/TOPIC:t/retention.ms"

    def test_a_config_that_was_deleted_is_a_row(self, tmp_path: Path) -> None:
        session = history_of(tmp_path, config("1000"), config("2000"), config("1", "segment.ms"), config(None))
        for line in ("blame /image/configs/TOPIC:t", "blame /image/configs", "blame /image"):
            (row,) = [row for row in rows(session, line) if row["path"] == self.PATH]
            assert (row["change"], row["value"], row["old"]) == ("removed", None, "2000")
            assert (row["offset"], row["type"], row["effectiveOffset"]) == (4, "CONFIG_RECORD", 4)
        (row,) = rows(session, f"blame {self.PATH}")
        assert (row["offset"], row["old"]) == (4, "2000")

    def test_what_went_with_its_topic_names_that_record(self, tmp_path: Path) -> None:
        made, gone = value("TOPIC", name="t", topicId=uuid(1)), value("REMOVE_TOPIC", topicId=uuid(1))
        session = history_of(tmp_path, made, config("1000"), gone)
        (row,) = rows(session, "blame /image/configs/TOPIC:t")
        assert (row["path"], row["type"], row["offset"], row["old"]) == (self.PATH, "REMOVE_TOPIC_RECORD", 3, "1000")

    def test_as_of_before_it_was_deleted_it_is_there(self, tmp_path: Path) -> None:
        session = history_of(tmp_path, config("1000"), config(None), config("3000"))
        assert [row["change"] for row in rows(session, f"blame {self.PATH} --as-of 1")] == ["added"]
        assert [row["change"] for row in rows(session, f"blame {self.PATH} --as-of 2")] == ["removed"]
        (row,) = rows(session, f"blame {self.PATH}")
        assert (row["change"], row["value"], row["old"], row["offset"]) == ("added", "3000", None, 3)

    def test_a_secret_stays_one(self, tmp_path: Path) -> None:
        session = history_of(tmp_path, config("canary", "no.such.key"), config(None, "no.such.key"))
        (row,) = rows(session, "blame /image/configs")
        assert row["old"] == "[redacted]"
        assert "canary" not in "".join(lines(session, "blame /image/configs"))

    def test_what_never_was_there_is_no_path(self, tmp_path: Path) -> None:
        session = history_of(tmp_path, config("1000"))
        with pytest.raises(NoSuchPathError):
            rows(session, "blame /image/configs/TOPIC:other")

    def test_of_every_family(self, tmp_path: Path) -> None:
        acl = value(
            "ACCESS_CONTROL_ENTRY", id=uuid(1), resourceType=2, resourceName="t", patternType=3, principal="User:a",
            host="*", operation=3, permissionType=3,
        )  # fmt: skip
        quota = {"entity": [{"entityType": "user", "entityName": "a"}], "key": "producer_byte_rate", "value": 1.0}
        session = history_of(
            tmp_path, acl, value("REMOVE_ACCESS_CONTROL_ENTRY", id=uuid(1)),
            value("CLIENT_QUOTA", remove=False, **quota), value("CLIENT_QUOTA", remove=True, **quota),
        )  # fmt: skip
        gone = [row for row in rows(session, "blame /image") if row["change"] == "removed"]
        assert [(row["offset"], row["path"]) for row in gone] == [
            (2, f"/image/acls/byId/{uuid(1)}"), (4, "/image/clientQuotas/user(a)/producer_byte_rate"),
        ]  # fmt: skip
        assert gone[0]["old"]["principal"] == "User:a" and gone[1]["old"] == 1.0

    def test_text_shows_values_and_what_was_removed(self, tmp_path: Path) -> None:
        session = history_of(tmp_path, config("1000"), config("2000"), config("5", "segment.ms"), config(None))
        kept, removed = lines(session, "blame /image/configs/TOPIC:t")
        time = "2023-11-14T22:13:20.000Z"
        assert kept == f"     3 {time} CONFIG_RECORD /image/configs/TOPIC:t/segment.ms 5"
        assert removed == f"     4 {time} CONFIG_RECORD (removed) {self.PATH} was 2000"
        assert lines(session, "blame /image/configs --as-of 2")[0].endswith(f"{self.PATH}: 1000 -> 2000")


def test_the_value_before_is_told(tmp_path: Path) -> None:
    session = history_of(tmp_path, config("1000"), config("2000"), config("2000"))
    (row,) = rows(session, "blame /image/configs/TOPIC:t/retention.ms")
    assert (row["offset"], row["change"], row["old"], row["value"]) == (2, "changed", "1000", "2000")
