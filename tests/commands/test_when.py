"""when: stretches of the log in which a row fulfilled a condition, against a table made at every offset."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.completion import complete
from kshell.engine.session import Session
from kshell.errors import CommandError, UsageError
from kshell.history.recorded import recorded_past
from kshell.metadata.partition_changes import Aspects
from kshell.metadata.partition_state import MinIsr
from kshell.metadata.partitions import Partition
from kshell.metadata.recorded_topics import RecordedTopic
from kshell.tables.declaration import tables
from kshell.tables.selection import Conditions
from kshell.tables.state.topics import partition_rows, topic_rows
from kshell.tables.topics_over_time import topic_names, topic_spans
from tests.builders import (
    FIXTURES,
    batch,
    damaged_log,
    leader_change,
    node_name,
    recorded,
    snapshot,
    uuid,
    value,
    write_log,
    write_snapshot,
)
from tests.builders import control_batch as controls
from tests.commands.shell import lines, opened, rows, run

LOST = FIXTURES / "4.3.1-lost" / "controller-3000"
CUT = FIXTURES / "4.1.1" / "controller-3000"
CONDITIONS = (
    ("partitions", "leader == -1"),
    ("partitions", "state != online and partition == 0"),
    ("partitions", "topic ~ '^o' and partitionEpoch > 2"),
    ("topics", "offline > 0 or underMinIsr > 0"),
    ("topics", "configs['retention.ms'] != null"),
    ("brokers", "fenced or inControlledShutdown"),
    ("controllers", "isLeader and id == 3000"),
    ("configs", "value ~ '^1'"),
    ("acls", "operation == READ"),
    ("features", "level < 20"),
)
EPOCHS = (
    ("partitions", "partitionEpoch > 2"),
    ("partitions", "leaderEpoch > 1"),
    ("partitions", "leaderEpoch > 0 and partitionEpoch > 3"),
    ("partitions", "leaderEpoch > 0 and leader == -1"),
    ("partitions", "partitionEpoch > 1 and partition == 0"),
)
"""Conditions differ in what of a partition they tell apart."""
MORE = (
    ("partitions", "at-min-isr in problems"),
    ("partitions", "leaderEpoch > 1 and minIsr == 2"),
    ("partitions", "len(isr) < len(replicas)"),
    ("partitions", "len(addingReplicas) > 0"),
    ("topics", "partitions > 3"),
    ("topics", "underReplicated > 1"),
    ("topics", "minIsr == 2 or replicationFactor == 1"),
    ("topics", "len(configs) > 1"),
    ("topics", "name ~ '^r'"),
    ("brokers", "epoch > 20"),
    ("controllers", "true"),
    ("users", "iterations > 4096"),
    ("tokens", "true"),
    ("quotas", "value > 1000"),
    ("provenance", "epoch == 1 and offset != 40"),
)
Found = list[tuple[int, int | None, int]]


def at_every_offset(session: Session, first: int, last: int, asked: list[tuple[str, str]], default: int) -> list[Found]:
    """The same by making each table as of each offset."""
    known = tables()
    tests = [(known[name], Conditions(known[name].fields)(text)) for name, text in asked]
    found: list[Found] = [[] for _ in asked]
    counts = [0] * len(asked)
    for offset in range(first, last + 1):
        then = session.reshape(point=str(offset))
        image = then.image
        made: dict[str, list[Any]] = {}
        for name in {table.name for table, _ in tests}:
            if name in ("topics", "partitions"):
                least = MinIsr(image, default)
                made[name] = list((topic_rows if name == "topics" else partition_rows)(then, image, None, least))
            else:
                made[name] = list(known[name].rows(then, image, None))
        for number, (table, where) in enumerate(tests):
            count = sum(map(where, made[table.name]))
            before, counts[number] = counts[number], count
            if count and not before:
                found[number].append((offset, None, count))
            elif count:
                start, _, most = found[number][-1]
                found[number][-1] = (start, None, max(most, count))
            elif before:
                start, _, most = found[number][-1]
                found[number][-1] = (start, offset, most)
    return found


def stretches(session: Session, table: str, where: str, more: str = "") -> Found:
    line = f'when {table} --where "{where}" {more}'
    return [(row["fromOffset"], row["toOffset"], row["rows"]) for row in rows(session, line)]


def hold(session: Session, conditions: tuple[tuple[str, str], ...], first: int) -> int:
    """Compare all of them; gives how many stretches there were."""
    last = (session.loaded.log_end_offset or 0) - 1
    session.travels()
    expected = at_every_offset(session, first, last, list(conditions), 2)
    for (table, where), found in zip(conditions, expected, strict=True):
        assert stretches(session, table, where, "--min-isr-default 2") == found, (table, where)
    return sum(map(len, expected))


@pytest.mark.parametrize(("node", "first"), [(LOST, 0), (CUT, 473)], ids=["from its start", "from a snapshot"])
def test_is_what_every_offset_has(node: Path, first: int) -> None:
    assert hold(opened(node), CONDITIONS + EPOCHS, first) >= 10


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("node", recorded(log_from_zero=True), ids=node_name)
def test_is_what_every_offset_has_in_every_recorded_directory(node: Path) -> None:
    assert hold(opened(node), CONDITIONS + EPOCHS + MORE, 0) > 10


def records(rng: random.Random, epoch: int, count: int) -> Iterator[bytes]:
    """Few keys, which come, change and go, in transactions and out of them, some of which are aborted."""
    open_transaction = False
    for _ in range(count):
        topic, broker = rng.randrange(3), rng.randrange(3)
        topic_id = uuid(1 + topic + 3 * rng.randrange(2))
        isr = rng.sample(range(3), rng.randrange(4))
        number = rng.random()
        if number < 0.1:
            name = rng.choice(["END_TRANSACTION", "ABORT_TRANSACTION"]) if open_transaction else "BEGIN_TRANSACTION"
            open_transaction = not open_transaction
            yield value(name)
        elif number < 0.2:
            yield value("TOPIC", name=f"t{topic}", topicId=topic_id)
        elif number < 0.22:
            yield value("REMOVE_TOPIC", topicId=topic_id)
        elif number < 0.5:
            yield value(
                "PARTITION", topicId=topic_id, partitionId=rng.randrange(2), replicas=[0, 1, 2], isr=isr,
                leader=isr[0] if isr else -1, leaderEpoch=0, partitionEpoch=0,
            )  # fmt: skip
        elif number < 0.75:
            yield value(
                "PARTITION_CHANGE", topicId=topic_id, partitionId=rng.randrange(2), isr=isr,
                leader=isr[0] if isr else -1,
            )  # fmt: skip
        elif number < 0.9:
            kind, name = rng.choice([(2, f"t{topic}"), (4, str(broker)), (4, "")])
            key = rng.choice(["min.insync.replicas", "retention.ms"])
            yield value(
                "CONFIG", resourceType=kind, resourceName=name, name=key, value=rng.choice([None, "1", "2", "3"])
            )
        elif number < 0.95:
            yield value("REGISTER_BROKER", brokerId=broker, brokerEpoch=broker, fenced=rng.random() < 0.5)
        else:
            yield value("UNREGISTER_BROKER", brokerId=broker)


MADE = (
    ("partitions", "state == under-min-isr"),
    ("partitions", "at-min-isr in problems and partition == 1"),
    ("partitions", "partitionEpoch == 1"),
    ("partitions", "topic == t1 and minIsr == 2 and leader == 0"),
    ("topics", "underMinIsr > 0"),
    ("topics", "partitions == 1 and minIsr > 1"),
    ("topics", "configs['retention.ms'] == '2'"),
    ("topics", "replicationFactor == null"),
    ("brokers", "fenced"),
    ("configs", "value == '2'"),
    ("controllers", "isLeader and id == 2"),
)


@pytest.mark.parametrize("seed", range(4))
def test_is_what_every_offset_has_in_a_log_of_everything(tmp_path: Path, seed: int) -> None:
    """With transactions, topics that are created again, and (in two of them) a snapshot that contradicts the log."""
    rng = random.Random(seed)
    parts, offset = [], 0
    for epoch in range(1, 4):
        parts.append(controls([leader_change(epoch)], offset, epoch))
        offset += 1
        values = list(records(rng, epoch, 80))
        while values:
            size = rng.randint(1, 9)
            some, values = values[:size], values[size:]
            parts.append(batch(some, offset, epoch))
            offset += len(some)
        if epoch == 2 and seed % 2:
            write_snapshot(tmp_path, snapshot([value("TOPIC", name="t1", topicId=uuid(2))], epoch), offset, epoch)
    write_log(tmp_path, *parts)
    assert hold(opened(tmp_path), MADE, 0) > 15


def test_points(sample: Session) -> None:
    fenced = stretches(sample, "brokers", "fenced")
    assert fenced == [(14, 19, 2), (21, 23, 1), (201, None, 1)]
    assert stretches(sample, "brokers", "fenced", "--since 19") == fenced[1:]
    assert stretches(sample, "brokers", "fenced", "--until 22") == [(14, 19, 2), (21, None, 1)]
    assert stretches(sample, "brokers", "fenced", "--since 2026-11-21T15:11:04Z") == fenced[2:]
    assert stretches(sample.reshape(point="20"), "brokers", "fenced") == fenced[:1]


def test_text_says_how_long_it_lasted(sample: Session) -> None:
    """Of one that goes on up to the last record, or to the point that is looked from."""
    shown = [line.split() for line in lines(sample, "when brokers --where fenced", width=200)]
    assert shown[0] == ["fromOffset", "fromTime", "toOffset", "toTime", "lasted", "rows"]
    assert shown[1] == ["14", "2026-11-21T15:11:02.253Z", "19", "2026-11-21T15:11:03.000Z", "747", "ms", "2"]
    assert shown[3] == ["201", "2026-11-21T15:11:22.506Z", "-", "still", "2", "s", "so", "far", "1"]
    assert "still" in lines(sample, "when brokers --where fenced --until 22", width=200)[-1]
    assert "lasted" not in rows(sample, "when brokers --where fenced")[0]


@pytest.mark.parametrize(
    ("width", "there"),
    [(60, "fromTime lasted rows"), (70, "fromTime toTime lasted rows"), (80, "fromOffset fromTime toTime lasted rows")],
)
def test_how_long_it_lasted_is_there_at_every_width(width: int, there: str, sample: Session) -> None:
    assert lines(sample, "when brokers --where fenced", width=width)[0].split() == there.split()


def test_none_since_a_point_is_not_none_at_any_offset(sample: Session) -> None:
    line = "when topics --where 'name == \"tmp-backfill\"'"
    assert rows(sample, line) != []
    assert rows(sample, f"{line} --since now") == []
    assert sample.remarks == ["no row of topics fulfilled that since now: the log is there from its first record"]


def test_none_up_to_a_point_is_not_none_at_any_offset(sample: Session) -> None:
    line = "when partitions --where 'leader == -1'"
    assert rows(sample, line) != []
    assert rows(sample, f"{line} --until 100") == []
    assert sample.remarks == [
        "no row of partitions fulfilled that up to offset 100: the log is there from its first record"
    ]


def test_a_log_that_cannot_be_read_to_its_end_is_no_log_without_matches(tmp_path: Path) -> None:
    damaged_log(tmp_path)
    session = opened(tmp_path)
    assert rows(session, "when configs --where 'value == never'") == []
    assert session.remarks == [
        "no row of configs fulfilled that up to offset 4, after which the log cannot be read: the log is there from its"
        " first record"
    ]


def test_a_snapshot_alone_has_no_past_to_search(tmp_path: Path) -> None:
    path = write_snapshot(tmp_path, snapshot([value("TOPIC", name="t", topicId=uuid(1))]), 10)
    with pytest.raises(CommandError, match="there is no past to search: there is no log here, only snapshot"):
        run(opened(path), "when topics --where 'name == \"u\"'")


def test_no_stretch_is_a_no(sample: Session) -> None:
    assert run(sample, "when partitions --where 'leader == 99'").exit_code == 1
    assert "the log is there from its first record" in sample.remarks[-1]
    assert run(sample, "when partitions --where 'leader == -1'").exit_code == 0


def test_what_held_when_the_log_starts_began_at_the_snapshots_last_offset(cut_sample: Session) -> None:
    (row,) = rows(cut_sample, "when configs --where 'name == retention.ms'")
    assert (row["fromOffset"], row["toOffset"], row["fromTimeMs"]) == (158, None, 1795273873400)
    assert "may have started earlier" in cut_sample.remarks[-1]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("when partitions", "condition is missing"),
        ("when partition --where true", "no table partition"),
        ("when partitions --where 'state == oflline'", "no value of state is oflline"),
        ("when brokers --where 'fence'", "no field fence"),
    ],
)
def test_mistakes(sample: Session, line: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(sample, line)


def test_conditions_are_completed_by_the_table(sample: Session) -> None:
    sample.image  # noqa: B018  # loads
    texts = [one.text for one in complete(sample, "when partitions --where 'state == off").candidates]
    assert texts == ["state == offline'"]
    assert [one.text for one in complete(sample, "when part").candidates] == ["partitions"]


def test_partitions_that_do_not_differ_in_what_is_wanted_are_one_object() -> None:
    history = recorded_past(opened(FIXTURES / "3.9.2" / "controller-3001"), "").history
    states: list[Partition] = []
    for name in topic_names(history, history.log.end):
        for span in topic_spans(history, name, history.log.end):
            assert isinstance(span.topic, RecordedTopic)
            assert span.topic.records.base is None  # the log begins at 0
            for filed in span.topic.records.addresses.values():
                states += history.changes.states(None, filed, Aspects(rest=False, partition_epoch=True))
    epochs = {state.partition_epoch for state in states}
    assert len({id(state) for state in states}) == len(epochs) > 2
    assert {(state.replicas, state.leader, state.leader_epoch) for state in states} == {((), -1, 0)}
