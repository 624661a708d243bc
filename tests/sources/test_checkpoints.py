"""A snapshot that holds what the log before it does not: every front end gives the same answer, and says so."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kshell
from kshell.metadata.checkpoint import ONLY_LOG, ONLY_SNAPSHOT, OTHER_VALUE
from kshell.metadata.values import Provenance
from kshell.sources.directory import checkpoints
from kshell.sources.directory.files import METADATA_DIRECTORY, SnapshotFile
from kshell.sources.directory.snapshot import SnapshotFacts, load_snapshot
from kshell.sources.directory.source import DirectorySource
from kshell.sources.past import Past
from kshell.tree.paths import paths
from tests.builders import (
    batch,
    control_batch,
    leader_change,
    metadata,
    node_name,
    recorded,
    snapshot,
    uuid,
    value,
    write_log,
    write_snapshot,
)
from tests.commands.shell import lines, opened, rows, run, sections
from tests.kafka import jars, text
from tests.kafka.catchup import snapshot_after_catching_up
from tests.kafka.oracle import expected_image
from tests.leaves import printed, values

BRIEF = "/image/configs/TOPIC:brief/retention.ms"
END = 12
"""Where the snapshot ends; one more record follows, and one that changes the config."""


def topic(name: str, number: int) -> bytes:
    return value("TOPIC", name=name, topicId=uuid(number))


def config(name: str, text: str | None) -> bytes:
    return value("CONFIG", resourceType=2, resourceName=name, name="retention.ms", value=text)


def partition(number: int, leader: int = 1) -> bytes:
    return value(
        "PARTITION", partitionId=number, topicId=uuid(1), replicas=[1, 2], isr=[1, 2], leader=leader, leaderEpoch=0,
        partitionEpoch=0,
    )  # fmt: skip


def user(name: str) -> bytes:
    return value(
        "USER_SCRAM_CREDENTIAL", name=name, mechanism=1, salt=b"s", storedKey=b"k", serverKey=b"v", iterations=4096
    )


VERSION = value("FEATURE_LEVEL", name="metadata.version", featureLevel=26)
BEFORE = [
    [VERSION, topic("stays", 1), partition(0), partition(1), config("stays", "1")],  # 1 to 5
    [topic("brief", 2), config("brief", "7")],  # 6, 7
    [value("REMOVE_TOPIC", topicId=uuid(2))],  # 8
    [user("alice")],  # 9
    [config("stays", "2")],  # 10
    [value("NO_OP")],  # 11
]
AFTER = [[value("NO_OP")], [config("brief", "8")], [config("brief", None)], [topic("later", 3)]]  # 12 to 15


def write(directory: Path, kept: bytes | Callable[[Path], bytes]) -> Path:
    """The log, and the snapshot that a node wrote of its part below :data:`END`."""
    target, offset, parts = directory / METADATA_DIRECTORY, 1, [control_batch([leader_change()])]
    for records in [*BEFORE, *AFTER]:
        parts.append(batch(records, offset))
        offset += len(records)
    log = write_log(target, *parts)
    write_snapshot(target, kept if isinstance(kept, bytes) else kept(log), END)
    return directory


@pytest.fixture
def leaked(tmp_path: Path) -> Path:
    """A node that kept the configs of a topic which came and went while it was away."""
    state = [VERSION, topic("stays", 1), partition(0), partition(1), config("stays", "2"), config("brief", "7")]
    return write(tmp_path, snapshot([*state, user("alice")]))


@pytest.fixture(params=["a leaked config", "a lost user", "another value", "other topics", "all of it"])
def slipped(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Snapshots that differ from the log in each way there is."""
    config_of_stays = config("stays", "3" if request.param in ("another value", "all of it") else "2")
    state = [VERSION, config_of_stays]
    if request.param in ("other topics", "all of it"):
        state += [topic("stays", 1), partition(0, leader=2), topic("other", 9)]
    else:
        state += [topic("stays", 1), partition(0), partition(1)]
    if request.param in ("a leaked config", "all of it"):
        state.append(config("brief", "7"))
    if request.param not in ("a lost user", "all of it"):
        state.append(user("alice"))
    return write(tmp_path, snapshot(state))


def test_every_front_end_answers_alike_at_every_offset(slipped: Path) -> None:
    source = DirectorySource(str(slipped))
    past = Past(source)
    shell = opened(slipped)
    shell.travels()
    with kshell.open(directory=str(slipped)) as python:
        for offset in range(18):
            loaded, recorded_state = source.load(until=offset), past.at(offset)
            assert recorded_state is not None
            assert metadata(recorded_state.image) == metadata(loaded.image), offset
            assert recorded_state.image.provenance == loaded.image.provenance
            expected = lines(opened(slipped), f"find /image --values --as-of {offset}")
            assert lines(shell, f"find /image --values --as-of {offset}") == expected
            run(shell, f"as-of {offset}")
            assert lines(shell, "find /image --values") == expected
            run(shell, "as-of now")
            with kshell.open(directory=str(slipped), as_of=str(offset)) as then:
                for result in (python.at(offset).run("find /image --values"), then.run("find /image --values")):
                    assert [row["path"] for row in result.rows] == [line.partition(": ")[0] for line in expected]
    assert metadata(source.load().image) == metadata(past.at(17).image)  # type: ignore[union-attr]


def test_blame_finds_every_value_that_is_shown(slipped: Path) -> None:
    for offset in (10, 11, 12, 13, 14, 15):
        shell = opened(slipped)
        shown = {path for path in values(shell.reshape(point=str(offset))) if "provenance" not in path}
        blamed = [row for row in rows(shell, f"blame /image --as-of {offset}") if row["change"] != "removed"]
        assert {row["path"] for row in blamed} - {"/image/provenance"} == shown


def test_blame_names_the_snapshot_where_no_record_says_it(leaked: Path) -> None:
    (row,) = rows(opened(leaked), f"blame {BRIEF} --as-of 12")
    assert (row["value"], row["snapshot"], row["notLaterThan"], row["offset"]) == ("7", "12-1", 11, None)
    (row,) = rows(opened(leaked), f"blame {BRIEF} --as-of 13")
    assert (row["value"], row["snapshot"], row["offset"]) == ("8", None, 13)
    (row,) = rows(opened(leaked), "blame /image/configs/TOPIC:stays/retention.ms --as-of 12")
    assert (row["value"], row["snapshot"], row["offset"]) == ("2", None, 10)


def test_blame_names_the_snapshot_that_lost_a_user(tmp_path: Path) -> None:
    directory = write(
        tmp_path, snapshot([VERSION, topic("stays", 1), partition(0), partition(1), config("stays", "2")])
    )
    (row,) = rows(opened(directory), "blame /image/scram")
    assert (row["change"], row["snapshot"], row["notLaterThan"], row["offset"]) == ("removed", "12-1", 11, None)
    assert row["path"] == "/image/scram/SCRAM-SHA-256/alice" and row["old"]["iterations"] == 4096
    assert row["old"]["storedKey"] == "[redacted]"


def test_the_newest_state_and_as_of_have_the_leaked_config_from_the_snapshot_on(leaked: Path) -> None:
    shell = opened(leaked)
    for offset, there in ((7, True), (8, False), (10, False), (11, True), (12, True), (13, True), (14, False)):
        assert (BRIEF in values(shell.reshape(point=str(offset)))) == there, offset


@pytest.mark.parametrize("travels", [False, True])
def test_it_is_said(leaked: Path, travels: bool) -> None:
    shell = opened(leaked)
    if travels:
        shell.travels()
        assert shell.past is not None and shell.past.at(3) is not None
    found = [row for row in sections(shell, "info --as-of 12")["problems"] if row["kind"] == "disagreement"]
    assert [(row["place"], row["reason"]) for row in found] == [("snapshot 12-1", f"{BRIEF}: {ONLY_SNAPSHOT}")]
    health = [row for row in rows(shell, "health --as-of 12") if row["finding"] == "snapshotDisagrees"]
    assert [(row["path"], row["evidence"]) for row in health] == [(BRIEF, f"snapshot 12-1: {ONLY_SNAPSHOT}")]
    assert not [row for row in rows(shell, "health --as-of 10") if row["finding"] == "snapshotDisagrees"]
    gone = [row for row in rows(shell, "health") if row["finding"] == "snapshotDisagrees"]
    assert gone == []  # a record removed it since


def notes_of_diff(directory: Path, line: str) -> list[str]:
    shell = opened(directory)
    run(shell, line)
    return shell.remarks


def test_diff_across_the_snapshot_says_where_a_change_comes_from(leaked: Path) -> None:
    assert notes_of_diff(leaked, "diff 9 10") == notes_of_diff(leaked, "diff 12 now") == []
    (note,) = notes_of_diff(leaked, "diff 10 11")
    assert note.startswith(f"snapshot 12-1 and the log before it disagree: {BRIEF} ({ONLY_SNAPSHOT});")
    assert notes_of_diff(leaked, "diff 5 now") == notes_of_diff(leaked, "diff now 5") == [note]
    assert notes_of_diff(leaked, "diff 5 12 /image/configs/TOPIC:brief") == [note]
    assert notes_of_diff(leaked, "diff 5 now /image/topics") == []


def test_every_kind_of_difference_is_found(tmp_path: Path) -> None:
    state = [VERSION, topic("stays", 1), partition(0, leader=2), topic("other", 9), config("stays", "3")]
    directory = write(tmp_path, snapshot([*state, config("brief", "7")]))
    (passed,) = checkpoints.compare(DirectorySource(str(directory)).listing())
    found = {"/".join(paths(one.touch)[0]): one.difference for one in passed.disagreements}
    assert found == {
        "image/configs/TOPIC:stays/retention.ms": OTHER_VALUE,
        "image/configs/TOPIC:brief/retention.ms": ONLY_SNAPSHOT,
        "image/scram/SCRAM-SHA-256/alice": ONLY_LOG,
        "image/topics/byName/stays/0": OTHER_VALUE,
        "image/topics/byName/stays/1": ONLY_LOG,
        "image/topics/byName/other": ONLY_SNAPSHOT,
    }
    assert passed.provenance == Provenance(11, 1, passed.provenance.timestamp)


class Held(NamedTuple):
    """A partition of the random logs, with two replicas."""

    leader: int = 1
    leader_epoch: int = 0
    partition_epoch: int = 0

    def record(self, topic_number: int, number: int) -> bytes:
        """The PartitionRecord that says so."""
        return value(
            "PARTITION", partitionId=number, topicId=uuid(topic_number), replicas=[1, 2], isr=[1, 2],
            leader=self.leader, leaderEpoch=self.leader_epoch, partitionEpoch=self.partition_epoch,
        )  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_of_many_snapshots_along_a_log_each_slip_is_found_once(seed: int, tmp_path: Path) -> None:
    """Most partitions are not recorded between two snapshots; some slips are of those, some of others."""
    rng = random.Random(seed)
    state = {(topic_number, number): Held() for topic_number in (1, 2, 3) for number in range(4)}

    def topics(held: dict[tuple[int, int], Held]) -> list[bytes]:
        named = [topic(f"t{number}", number) for number in (1, 2, 3)]
        return [VERSION, *named, *(one.record(*place) for place, one in held.items())]

    directory, first = tmp_path / METADATA_DIRECTORY, topics(state)
    parts, offset = [control_batch([leader_change()]), batch(first, 1)], 1 + len(first)
    expected: dict[int, dict[tuple[int, int], str]] = {}
    for _ in range(120):
        if rng.random() < 0.8:
            place = rng.choice(list(state))
            leader, leader_epoch, partition_epoch = state[place]
            leader = rng.choice((1, 2))
            state[place] = Held(leader, leader_epoch + 1, partition_epoch + 1)
            change = value("PARTITION_CHANGE", partitionId=place[1], topicId=uuid(place[0]), leader=leader)
            parts.append(batch([change], offset))
            offset += 1
            continue
        slips = {} if rng.random() < 0.7 else {(rng.choice((1, 2)), rng.randrange(4)): Held(2, 99, 1000 + len(parts))}
        state |= slips
        write_snapshot(directory, snapshot(topics(state), per_batch=rng.choice((5, 100))), offset)
        expected.setdefault(offset, {}).update(dict.fromkeys(slips, OTHER_VALUE))
    write_log(directory, *parts)
    passed = checkpoints.compare(DirectorySource(str(tmp_path)).listing())
    found = [
        {(int(one.touch.keys[1][1:]), one.touch.keys[2]): one.difference for one in one.disagreements} for one in passed
    ]
    assert found == list(expected.values())
    past = Past(DirectorySource(str(tmp_path)))
    last = past.at(offset - 1)
    assert last is not None
    for (topic_number, number), held in state.items():
        entry = last.image["topics"][uuid(topic_number)].partition(number)
        assert (entry.value.leader, entry.value.leader_epoch, entry.value.partition_epoch) == held
        if not any(topic_number == slipped for slips in expected.values() for slipped, _ in slips):
            assert not entry.origin.place.in_snapshot  # a topic that differs becomes the snapshot's own, no other


def test_health_reads_the_newest_snapshot_alone_where_that_agrees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slip that no longer holds is for `info`; one that does is said of the snapshot that it began with."""
    loaded: list[int | None] = []

    def spy(file: SnapshotFile, *more: Any) -> SnapshotFacts:
        loaded.append(file.end_offset)
        return load_snapshot(file, *more)

    monkeypatch.setattr("kshell.sources.directory.checkpoints.load_snapshot", spy)
    state = [VERSION, topic("stays", 1), partition(0), partition(1)]
    directory = write(tmp_path, snapshot([*state, config("stays", "2"), user("alice")]))
    write_snapshot(directory / METADATA_DIRECTORY, snapshot([*state, config("stays", "9")]), 6)

    def findings() -> list[str]:
        return [row["evidence"] for row in rows(opened(directory), "health") if row["finding"] == "snapshotDisagrees"]

    assert (findings(), loaded) == ([], [12])
    told = sections(opened(directory), "info")["problems"]
    assert [row["place"] for row in told if row["kind"] == "disagreement"] == ["snapshot 6-1"]
    loaded.clear()
    write_snapshot(directory / METADATA_DIRECTORY, snapshot([*state, config("stays", "1"), config("kept", "1")]), 6)
    kept = [*state, config("stays", "2"), config("kept", "1"), user("alice")]
    write_snapshot(directory / METADATA_DIRECTORY, snapshot(kept), 12)
    assert findings() == [f"snapshot 6-1: {ONLY_SNAPSHOT}"]
    assert loaded == [12, 6, 12]


@pytest.mark.parametrize("node", recorded(), ids=node_name)
def test_recorded_nodes_agree_with_their_logs(node: Path) -> None:
    source = DirectorySource(str(node))
    assert [one for one in checkpoints.compare(source.listing()) if one.disagreements] == []
    assert not [row for row in rows(opened(node), "health") if row["finding"] == "snapshotDisagrees"]


def test_a_snapshot_that_is_written_while_the_shell_looks_on(leaked: Path) -> None:
    (file,) = (leaked / METADATA_DIRECTORY).glob("*.checkpoint")
    raw = file.read_bytes()
    file.unlink()
    source = DirectorySource(str(leaked))
    past = Past(source)
    before = past.at(12)
    assert before is not None and ("TOPIC", "brief") not in before.image["configs"]
    file.write_bytes(raw)
    past.history()
    after = past.at(12)
    assert after is not None and ("TOPIC", "brief") in after.image["configs"]


def test_a_long_log_is_not_replayed_for_health(leaked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.cluster.health._REPLAYED", 10)
    shell = opened(leaked)
    assert not [row for row in rows(shell, "health --as-of 12") if row["finding"] == "snapshotDisagrees"]
    run(shell, "health")
    assert any("not checked: whether snapshots agree" in remark for remark in shell.remarks)


def test_looking_at_values_compares_nothing(leaked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any) -> None:
        raise AssertionError("a comparison")

    monkeypatch.setattr("kshell.metadata.replay.take_over", fails)
    for line in ("ls /image", f"cat {BRIEF} --as-of 12", "find /image --values", "configs", "topics", "dump"):
        lines(opened(leaked), line)


def test_stat_does_not_name_a_record_that_wrote_something_else(tmp_path: Path) -> None:
    directory = write(tmp_path, snapshot([VERSION, topic("stays", 1), config("stays", "3")]))
    shell = opened(directory)
    (row,) = rows(shell, "blame /image/configs/TOPIC:stays/retention.ms --as-of 11")
    assert (row["value"], row["snapshot"]) == ("3", "12-1")
    segments, node = shell.node("/image/configs/TOPIC:stays/retention.ms")
    origin = shell.origin(segments, node)  # type: ignore[arg-type]
    assert origin is not None and origin.place.in_snapshot


class TestKafkasOwnSlip:
    """The snapshot is made by Kafka's classes, on a node that was away from offset 6 to 11."""

    @pytest.fixture
    def directory(self, tmp_path: Path) -> Path:
        jars.require(jars.LATEST)
        return write(tmp_path, lambda log: snapshot_after_catching_up(log, 6, END))

    def test_kafka_keeps_the_configs_and_kshell_says_so(self, directory: Path) -> None:
        (passed,) = checkpoints.compare(DirectorySource(str(directory)).listing())
        assert [(paths(one.touch)[0], one.difference) for one in passed.disagreements] == [
            (tuple(BRIEF.split("/")[1:]), ONLY_SNAPSHOT)
        ]

    @pytest.mark.parametrize("offset", [8, 10, 11, 12, 13, 14, 15])
    def test_as_of_is_what_kafkas_classes_give(self, directory: Path, offset: int) -> None:
        expected = text.read(expected_image(directory / METADATA_DIRECTORY, offset))
        shell = opened(directory, show_secrets=True)
        shell.travels()
        for session in (opened(directory, show_secrets=True, until=offset), shell.reshape(point=str(offset))):
            assert text.compare(expected, printed(session)) == []
