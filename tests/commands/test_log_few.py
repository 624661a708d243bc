"""``log`` finds the paths and changes of some records without replaying all that lies between them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kshell.sources.directory.files import METADATA_DIRECTORY
from tests.builders import (
    batch,
    control_batch,
    leader_change,
    node_name,
    recorded,
    snapshot,
    uuid,
    value,
    write_log,
    write_snapshot,
)
from tests.commands.shell import lines, opened
from tests.metadata.test_every_offset import nonsense

LOGS = 8


@pytest.fixture(params=[0, 5, 64], ids=["nothing is replayed", "a little is", "as it is"])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.history.few_paths._FEW", request.param)
    monkeypatch.setattr("kshell.history.few_paths._REPLAY_SECONDS", float("inf"))


def check(directory: Path) -> None:
    every = lines(opened(directory), "log --noop")
    by_type: dict[str, list[str]] = {}
    for line in every:
        by_type.setdefault(line.split()[2], []).append(line)
    for name, shown in by_type.items():
        assert lines(opened(directory), f"log --type {name}") == shown
    for step in (2, 29):
        some = every[::step][-100:]
        where = " or ".join(f"offset == {line.split()[0]}" for line in some)
        assert lines(opened(directory), f"log --noop --where '{where}'") == some
    assert lines(opened(directory), "log --noop --newest-first --count 7") == every[:-8:-1]


@pytest.mark.parametrize("node", recorded(), ids=node_name)
def test_recorded_logs(node: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.history.few_paths._FEW", 0)
    monkeypatch.setattr("kshell.history.few_paths._REPLAY_SECONDS", float("inf"))
    check(node / METADATA_DIRECTORY)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("seed", range(LOGS))
def test_nonsensical_logs(tmp_path: Path, seed: int) -> None:
    write_log(tmp_path, nonsense(seed))
    check(tmp_path)


_TOPIC = value("TOPIC", name="t", topicId=uuid(1))
_CHANGE = value("PARTITION_CHANGE", 2, topicId=uuid(1), partitionId=0, leader=2)


def _partition(leader_epoch: int) -> bytes:
    return value(
        "PARTITION", 2, topicId=uuid(1), partitionId=0, replicas=[1, 2], isr=[1, 2], removingReplicas=[],
        addingReplicas=[], leader=1, leaderEpoch=leader_epoch, partitionEpoch=leader_epoch, directories=[uuid(7)] * 2,
    )  # fmt: skip


@pytest.mark.usefixtures("few")
def test_a_leader_change_where_a_snapshot_inside_a_late_log_ends(tmp_path: Path) -> None:
    leader = control_batch([leader_change()], 102, 2)
    write_log(tmp_path, batch([_CHANGE] * 2, 100), leader, batch([_CHANGE], 103, 2), base_offset=100)
    write_snapshot(tmp_path, snapshot([_TOPIC, _partition(9)]), 102)
    check(tmp_path)
    (last,) = lines(opened(tmp_path), "log -r --count 1")
    assert last.endswith("/image/topics/byName/t/0: leader 1 -> 2, leaderEpoch 9 -> 10, partitionEpoch 9 -> 10")


@pytest.mark.usefixtures("few")
def test_leaders_do_not_come_back_where_a_transaction_is_aborted(tmp_path: Path) -> None:
    begin, abort = value("BEGIN_TRANSACTION"), value("ABORT_TRANSACTION")
    write_log(
        tmp_path,
        control_batch([leader_change(1)]),
        batch([begin, _TOPIC], 1),
        control_batch([leader_change(2)], 3, 2),
        batch([abort], 4, 2),
        control_batch([leader_change(3)], 5, 3),
        batch([_TOPIC], 6, 3),
    )
    check(tmp_path)
    assert [line.partition(": ")[2] for line in lines(opened(tmp_path), "log --type LEADER_CHANGE")][1:] == [
        "leaderId 1 -> 2",
        "leaderId 2 -> 3",
    ]


@pytest.mark.usefixtures("few")
def test_a_snapshot_inside_a_log_that_says_something_else(tmp_path: Path) -> None:
    """The old values that are shown are those of the records before, whichever records are asked for."""
    old, new = (value("CONFIG", resourceType=2, resourceName="t", name="retention.ms", value=at) for at in "12")
    between = batch([value("NO_OP")] * 70, 3)
    write_log(tmp_path, control_batch([leader_change()]), batch([_TOPIC, old], 1), between, batch([new], 73))
    write_snapshot(tmp_path, snapshot([_TOPIC]), 3)
    check(tmp_path)
    assert lines(opened(tmp_path), "log --type CONFIG_RECORD")[1].endswith("retention.ms: 1 -> 2")
