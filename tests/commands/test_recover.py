"""``recover``: which copy is kept, what it lacks, and the directory that a new quorum starts from.

Real clusters come back from such directories in ``tests/live/test_recover.py``.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from kshell.engine import plain
from kshell.engine.session import Session
from kshell.errors import CommandError, DataError, SourceNotFoundError, UsageError
from kshell.sources.choose import NoSource
from kshell.sources.copies.recovery import new_directory_id, parse_voter
from kshell.sources.directory.files import METADATA_DIRECTORY
from tests import builders
from tests.commands.shell import lines, opened, rows, run
from tests.leaves import values
from tests.test_fixtures import FIXTURES

DYNAMIC, STATIC = FIXTURES / "4.3.1", FIXTURES / "3.9.2"
BROKER, BEHIND = DYNAMIC / "broker-0", DYNAMIC / "controller-3000"


def meta_properties(directory: Path) -> dict[str, str]:
    return dict(line.split("=") for line in (directory / "meta.properties").read_text().splitlines() if "=" in line)


def recover(*words: str) -> dict[str, Any]:
    result = run(Session(NoSource()), " ".join(["recover", *words]))
    answer: dict[str, Any] = plain.value(result)
    return answer | {"exitCode": result.exit_code}


def test_the_copy_that_would_win_an_election_is_kept() -> None:
    plan = recover(str(BEHIND), str(BROKER))
    assert plan["keep"]["copy"] == str(BROKER)
    assert [row["state"] for row in plan["copies"]] == ["behind", "reference"]
    assert plan["keep"]["endOffset"] == plan["copies"][1]["endOffset"] > plan["copies"][0]["endOffset"]
    assert (plan["lost"], plan["exitCode"]) == ([], 0)


def majority(*copies: Path) -> str | None:
    """The voters that are said to be able to go on."""
    plan = recover(*map(str, copies))
    assert ("advice" in plan.get("majority", {})) is ("majority" in plan)
    return ", ".join(map(str, plan["majority"]["voters"])) if "majority" in plan else None


@pytest.mark.parametrize(
    ("names", "voters"),
    [
        (("controller-3001",), None),
        (("controller-3001", "broker-0"), None),
        (("controller-3000", "controller-3001"), "3000, 3001"),  # 3000 lags, and elects 3001, which lacks nothing
        (("controller-3001", "controller-3002"), "3001, 3002"),
        (("controller-3000", "broker-0"), None),
        (("controller-3000", "broker-0", "controller-3001", "controller-3002"), "3000, 3001, 3002"),
    ],
)
@pytest.mark.parametrize("cluster", [DYNAMIC, STATIC], ids=["dynamic", "static"])
def test_a_majority_that_can_go_on_is_told_not_to_be_recovered(
    cluster: Path, names: tuple[str, ...], voters: str | None
) -> None:
    assert majority(*(cluster / name for name in names)) == voters


def test_the_steps_are_for_servers_that_do_not_start() -> None:
    voters = [str(DYNAMIC / name) for name in ("controller-3000", "controller-3001")]
    shown = "\n".join(lines(Session(NoSource()), f"recover {' '.join(voters)}"))
    assert "Recovery may not be needed" in shown
    assert "Steps, only if these voters do not start" in shown


def test_a_damaged_voter_counts_towards_no_majority(tmp_path: Path) -> None:
    damaged = builders.copy_of(DYNAMIC / "controller-3001", tmp_path)
    builders.flip(damaged / builders.LOG, 300)
    assert majority(DYNAMIC / "controller-3002", damaged) is None


def test_a_voter_with_a_new_disk_is_another_voter(tmp_path: Path) -> None:
    place = builders.copy_of(DYNAMIC / "controller-3001", tmp_path).parent
    properties = place / "meta.properties"
    old = meta_properties(place)["directory.id"]
    properties.write_text(properties.read_text().replace(old, str(new_directory_id())))
    assert majority(DYNAMIC / "controller-3002", place) is None
    session = Session(NoSource())
    run(session, f"recover {DYNAMIC / 'controller-3002'} {place}")
    assert any("does not count as that voter" in remark and str(place) in remark for remark in session.remarks)


class TestTwoHistories:
    """Another cluster's files among the copies: by Raft's order alone they might win."""

    WHOLE = (DYNAMIC / "controller-3001", DYNAMIC / "controller-3002", BROKER)

    @staticmethod
    def with_snapshot(folder: Path, name: str, snapshot: str, named: str | None = None) -> Path:
        """A copy of a node of 4.3.1 that also has a snapshot of another cluster, perhaps by another name."""
        copy = builders.copy_of(DYNAMIC / name, folder)
        source = FIXTURES / snapshot
        shutil.copyfile(source, copy / (named or source.name))
        return copy.parent

    @staticmethod
    def refused(folder: Path, *copies: Path) -> list[str]:
        """What shows the two histories; checks that no plan is made and nothing written."""
        plan = recover(*map(str, copies))
        assert plan["exitCode"] == 4
        assert "majority" not in plan
        assert list(plan["steps"]) == ["1"]
        assert "Decide which history" in plan["steps"]["1"]
        assert plan["keep"]["why"].startswith("not decided")
        with pytest.raises(DataError, match="two histories"):
            recover(*map(str, copies), "--to", str(folder / "new"), "--voters", "3000@controller-1:9093")
        assert not (folder / "new").exists()
        return list(plan["histories"].values())

    def test_a_snapshot_that_its_own_log_contradicts_is_damage(self, tmp_path: Path) -> None:
        bad = self.with_snapshot(tmp_path, "controller-3001", EPOCH_1, NEWEST_OF_3001)
        for copies in ((bad, *self.WHOLE[1:]), (*self.WHOLE[1:], bad)):
            plan = recover(*map(str, copies))
            state = {row["copy"]: row for row in plan["copies"]}[str(bad)]
            assert state["state"] == "damaged"
            assert "or they are not of one cluster" in state["damage"][0]
            assert plan["keep"]["copy"] != str(bad)
            assert (plan["keep"]["clusterId"], plan["exitCode"]) == (recover(str(BROKER))["keep"]["clusterId"], 0)
        alone = recover(str(bad))
        assert (alone["keep"]["endOffset"], alone["exitCode"]) == (recover(str(self.WHOLE[0]))["keep"]["endOffset"], 4)

    def test_a_snapshot_of_a_later_epoch_does_not_outvote_most_voters(self, tmp_path: Path) -> None:
        bad = self.with_snapshot(tmp_path, "controller-3000", EPOCH_4)
        texts = self.refused(tmp_path, bad, *self.WHOLE)
        assert any(text.endswith("quorum-state knows epochs up to 1") for text in texts)
        assert any("most voters (3001, 3002) are whole" in text and "older copies" in text for text in texts)
        assert len(self.refused(tmp_path, bad)) == 1

    def test_a_snapshot_of_the_same_epoch_does_not_either(self, tmp_path: Path) -> None:
        """Static voters have no directory ids: the topics are another cluster's."""
        bad = self.with_snapshot(tmp_path, "controller-3001", EPOCH_1, "00000000000000000600-0000000001.checkpoint")
        assert any(
            "has no id of a topic, a node or a directory that the log has" in text
            for text in self.refused(tmp_path, bad)
        )

    def test_a_log_of_another_cluster_without_meta_properties(self, tmp_path: Path) -> None:
        foreign = builders.copy_of(FIXTURES / "4.2.1-rolled/controller-3000", tmp_path)
        (foreign.parent / "meta.properties").unlink()
        (foreign / "quorum-state").unlink()
        texts = self.refused(tmp_path, foreign, *self.WHOLE)
        for node in self.WHOLE:
            assert any("no election explains it" in text and str(node) in text for text in texts)

    def test_a_snapshot_that_is_ahead_of_its_log_in_one_history_is_no_reason(self, tmp_path: Path) -> None:
        """As after a node has fetched a snapshot, and before it has dropped its log."""
        newest = f"4.3.1/controller-3001/{METADATA_DIRECTORY}/{NEWEST_OF_3001}"
        ahead = self.with_snapshot(tmp_path, "controller-3000", newest)
        plan = recover(str(ahead), str(BROKER))
        assert "histories" not in plan
        assert plan["exitCode"] == 0


EPOCH_1 = f"3.3.2/controller-3000/{METADATA_DIRECTORY}/00000000000000000429-0000000001.checkpoint"
EPOCH_4 = f"4.2.1-rolled/controller-3000/{METADATA_DIRECTORY}/00000000000000000947-0000000004.checkpoint"
"""Snapshots of other clusters; the voters of the first have no directory ids."""
NEWEST_OF_3001 = max(path.name for path in (DYNAMIC / "controller-3001" / METADATA_DIRECTORY).glob("*.checkpoint"))


def test_old_backups_of_a_majority_are_no_reason_to_lose_what_is_committed(tmp_path: Path) -> None:
    backups = [builders.copy_of(DYNAMIC / name, tmp_path) for name in ("controller-3001", "controller-3002")]
    for backup in backups:
        _, oldest, *newer = sorted(backup.glob("*.checkpoint"))  # the first one is of what the cluster was begun with
        for checkpoint in newer:
            checkpoint.unlink()
        log = backup / builders.LOG
        os.truncate(log, cut_at(log, int(oldest.name[:20])))
    assert majority(*backups) is not None, "alone they are all there is"
    assert majority(*backups, BROKER) is None


def cut_at(log: Path, offset: int) -> int:
    """Where the first batch from an offset on begins in a log that starts at 0."""
    raw, at = log.read_bytes(), 0
    while int.from_bytes(raw[at : at + 8], "big") < offset:
        at += 12 + int.from_bytes(raw[at + 8 : at + 12], "big")
    return at


def test_the_epoch_of_another_cluster_does_not_count(tmp_path: Path) -> None:
    new = tmp_path / "new"
    foreign, kept = FIXTURES / "4.4.0/broker-0", FIXTURES / "4.1.1/controller-3000"
    other = FIXTURES / "4.1.1/broker-0"
    recover(str(kept), str(other), str(foreign), "--to", str(new), "--voters", "3000@controller-1:9093")
    epoch = json.loads((new / METADATA_DIRECTORY / "quorum-state").read_text())["leaderEpoch"]
    assert epoch == recover(str(kept))["keep"]["epoch"] < recover(str(foreign))["keep"]["epoch"]


def test_a_copy_of_another_cluster_is_left_out_and_that_is_said() -> None:
    foreign, kept, other = (FIXTURES / name for name in ("4.4.0/broker-0", "4.1.1/controller-3000", "4.1.1/broker-0"))
    plan = recover(str(kept), str(other), str(foreign))
    assert [row["state"] for row in plan["copies"]] == ["reference", "behind", "other-cluster"]
    assert plan["copies"][2]["lastEpoch"] > plan["copies"][0]["lastEpoch"]
    assert f"{foreign} is of another cluster, and left out" in plan["keep"]["why"]
    assert f"kshell recover {kept} {other} --to NEWDIR" in plan["steps"]["2"]


def test_a_copy_that_cannot_be_read_does_not_keep_the_others_from_a_plan(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("cluster.id=x\n")
    plan = recover(str(tmp_path), str(BEHIND), str(BROKER))
    assert plan["keep"]["copy"] == str(BROKER)
    assert [row["state"] for row in plan["copies"]] == ["behind", "reference", "not-compared"]
    reason = plan["copies"][2]["reason"]
    assert reason.startswith("cannot be read: holds no metadata log and no snapshot (this log directory was formatted")
    assert plan["exitCode"] == 3
    with pytest.raises(SourceNotFoundError):
        recover(str(tmp_path))


def test_what_is_lost_behind_an_unreadable_end_is_said(tmp_path: Path) -> None:
    directory = builders.copy_of(BEHIND, tmp_path)
    log = directory / builders.LOG
    os.truncate(log, 20_000)
    assert "is lost unless another copy has it" in recover(str(directory))["keep"]["why"]


def test_snapshots_of_other_copies_are_named(tmp_path: Path) -> None:
    directory = builders.copy_of(FIXTURES / "4.2.1-rolled/controller-3000", tmp_path)
    for snapshot in directory.glob("*.checkpoint"):
        builders.flip(snapshot, snapshot.stat().st_size // 2)
    plan = recover(str(directory), str(FIXTURES / "4.2.1-rolled/controller-3001"))
    assert {taken["copy"][-15:] for taken in plan["taken"]} == {"controller-3001"}
    assert any(taken["snapshot"] is not None for taken in plan["taken"])
    assert (plan["keep"]["endOffset"], plan["keep"]["copy"]) == (956, str(directory))


def test_records_that_no_copy_proves_to_be_committed_are_named() -> None:
    plan = recover(str(BEHIND))
    keep = plan["keep"]
    newest = max(int(name[:20]) for name in os.listdir(BEHIND / METADATA_DIRECTORY) if name.endswith(".checkpoint"))
    assert keep["committedBelow"] == newest
    assert [row["offset"] for row in plan["uncertain"]] == list(range(newest, keep["endOffset"]))


def test_records_of_other_copies_that_it_lacks_are_named(tmp_path: Path) -> None:
    def topic(number: int) -> bytes:
        return builders.value("TOPIC", name=f"t{number}", topicId=builders.uuid(number))

    head = builders.control_batch([builders.leader_change()], 0)
    ahead, stale = tmp_path / "ahead", tmp_path / "stale"
    second = builders.control_batch([builders.leader_change()], 1, epoch=2)
    builders.write_log(ahead, head, second, builders.batch([topic(1)], 2, epoch=2))
    builders.write_log(stale, head, builders.batch([topic(7), topic(8), topic(9)], 1))
    plan = recover(str(stale), str(ahead))
    assert plan["keep"]["copy"] == str(ahead)
    assert [(row["copy"], row["offset"], row["data"]["name"]) for row in plan["lost"]] == [
        (str(stale), offset, f"t{offset + 6}") for offset in (1, 2, 3)
    ]


@pytest.mark.parametrize("cluster", [DYNAMIC, STATIC], ids=["dynamic", "static"])
def test_the_new_directory_holds_the_same_image_and_one_voter(cluster: Path, tmp_path: Path) -> None:
    kept, new = cluster / "broker-0", tmp_path / "new"
    before = {path: path.read_bytes() for path in kept.rglob("*") if path.is_file()}
    plan = recover(str(kept), "--to", str(new), "--voters", "3000@controller-1:9093")
    assert {path: path.read_bytes() for path in kept.rglob("*") if path.is_file()} == before
    session = opened(new, show_secrets=True)
    assert values(session) == values(opened(kept, show_secrets=True))
    meta = meta_properties(new)
    written = plan["written"]
    assert meta == {"version": "1", "cluster.id": written["clusterId"], "node.id": "3000",
                    "directory.id": written["directoryId"]}  # fmt: skip
    state = json.loads((new / METADATA_DIRECTORY / "quorum-state").read_text())
    assert (state["leaderId"], state["votedId"]) == (-1, -1)
    last = session.loaded.log_end_offset
    if cluster == DYNAMIC:
        record = rows(session, f"dump --from {plan['keep']['endOffset']}")[0]
        assert (record["type"], last) == ("KRAFT_VOTERS", plan["keep"]["endOffset"] + 1)
        (voter,) = record["data"]["voters"]
        assert [row["id"] for row in plain.value(run(session, "quorum"))["voters"]] == [3000]
        assert voter["voterDirectoryId"] == written["directoryId"]
        assert voter["endpoints"] == [{"name": "CONTROLLER", "host": "controller-1", "port": 9093}]
    else:
        assert last == plan["keep"]["endOffset"]
        assert state["currentVoters"] == [{"voterId": 3000}]
    assert [row for row in rows(session, "verify") if row["verdict"] not in ("whole", "torn")] == []


@pytest.mark.parametrize("cluster", [DYNAMIC, STATIC], ids=["dynamic", "static"])
def test_the_other_voters_that_are_named_are_in_the_steps(cluster: Path, tmp_path: Path) -> None:
    voters = "3000@controller-1:9093,3001@controller-2:9094,3002@[::1]:9095"
    plan = recover(str(cluster / "broker-0"), "--to", str(tmp_path / "new"), "--voters", voters)
    assert plan["written"]["nodeId"] == 3000
    steps = "\n".join(plan["steps"].values())
    assert "the other controllers, 3001 (controller-2:9094), 3002 ([::1]:9095), one" in steps
    servers = "bootstrap.servers=controller-1:9093,controller-2:9094,[::1]:9095 on every node"
    assert (servers if cluster == DYNAMIC else f"(with the last one {voters})") in steps


def test_no_broker_that_joins_is_to_empty_its_directory(tmp_path: Path) -> None:
    """It has partitions of topics there, whether or not the first controller is a broker."""
    copy = str(DYNAMIC / "broker-0")
    for voters, is_broker in (("3000@a:1,0@c:1", True), ("3000@a:1,3001@c:1", False)):
        plan = recover(copy, "--to", str(tmp_path / voters.replace(":", "-")), "--voters", voters)
        [step] = [step for step in plan["steps"].values() if "kafka-storage.sh format" in step]
        assert ("of 0, which is a broker, too, if the disk is still there: only move __clus" in step) == is_broker


def test_the_first_may_be_a_broker_whose_copy_was_not_given(tmp_path: Path) -> None:
    plan = recover(str(DYNAMIC / "controller-3000"), "--to", str(tmp_path / "new"), "--voters", "0@a:1")
    assert "Controller 0 is a broker, too, and its copy was not given. If its disk" in plan["steps"]["2"]
    assert "Only if the disk is lost: Move the metadata directory of controller 0" in plan["steps"]["2"]


def test_the_epoch_is_the_highest_that_any_node_knows(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(BEHIND, other)
    state = other / METADATA_DIRECTORY / "quorum-state"
    state.write_text(json.dumps(json.loads(state.read_text()) | {"leaderEpoch": 17}))
    recover(str(BROKER), str(other), "--to", str(tmp_path / "new"), "--voters", "3000@localhost:9093")
    written = json.loads((tmp_path / "new" / METADATA_DIRECTORY / "quorum-state").read_text())
    assert written["leaderEpoch"] == 17


def test_a_damaged_copy_is_written_up_to_the_damage(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(BEHIND, copy)
    log = copy / METADATA_DIRECTORY / f"{0:020d}.log"
    content = bytearray(log.read_bytes())
    content[-40] ^= 0xFF
    log.write_bytes(content)
    plan = recover(str(copy), "--to", str(tmp_path / "new"), "--voters", "3000@localhost:9093")
    assert plan["exitCode"] == 4
    assert plan["copies"][0]["damage"]
    assert values(opened(tmp_path / "new")) == values(opened(copy))


def damaged(log: bytes, batches: Collection[int]) -> bytes:
    """The log with one byte of some of its batches flipped, by number."""
    raw = bytearray(log)
    for number, batch in enumerate(builders.batches(log)):
        if number in batches:
            raw[batch.position + 70] ^= 0x55  # a record's own bytes
    return bytes(raw)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_damaged_in_one_copy_comes_from_another(seed: int, tmp_path: Path) -> None:
    """Whole batches of all copies make one log, up to the first batch that no copy has whole."""
    rng = random.Random(seed)
    name = f"{METADATA_DIRECTORY}/{0:020d}.log"
    whole = (DYNAMIC / "controller-3001" / name).read_bytes()
    batches = builders.batches(whole)
    lost = [set(rng.sample(range(len(batches)), rng.choice((1, 3, 40)))) for _ in range(3)]
    ends = [rng.randrange(len(batches) // 2, len(batches)) for _ in lost]
    for number, (bad, end) in enumerate(zip(lost, ends, strict=True)):
        copy = tmp_path / str(number) / METADATA_DIRECTORY
        copy.mkdir(parents=True)
        (copy / os.path.basename(name)).write_bytes(damaged(whole, bad)[: batches[end].end])
        (copy.parent / "meta.properties").write_text("cluster.id=one\n")
    held = [any(at <= end and at not in bad for bad, end in zip(lost, ends, strict=True)) for at in range(len(batches))]
    usable = held.index(False)
    plan = recover(
        *(str(tmp_path / str(n)) for n in range(3)), "--to", str(tmp_path / "new"), "--voters", "3000@h:9093"
    )
    end = plan["keep"]["endOffset"]
    assert end == batches[usable - 1].last_offset + 1
    assert {row["offset"] for row in plan["lost"]} == {
        offset
        for at, batch in enumerate(batches)
        if at > usable and held[at]
        for offset in range(batch.base_offset, batch.last_offset + 1)
    }
    original = opened(DYNAMIC / "controller-3001", until=end - 1)
    assert values(opened(tmp_path / "new", until=end - 1)) == values(original)


def steps(plan: dict[str, Any]) -> str:
    return "\n".join(plan["steps"].values())


def test_a_broker_does_not_start_from_what_is_damaged(tmp_path: Path) -> None:
    """Kafka does not start from every log that is damaged: it fetches anew what is moved away."""
    broken = tmp_path / "broken"
    shutil.copytree(BROKER, broken)
    log = broken / METADATA_DIRECTORY / f"{0:020d}.log"
    log.write_bytes(damaged(log.read_bytes(), {3}))
    assert f"Of each broker whose copy is damaged ({broken}): stop it" in steps(recover(str(BEHIND), str(broken)))
    assert "whose copy is damaged" not in steps(recover(str(BEHIND), str(BROKER)))
    shutil.copytree(BEHIND, tmp_path / "controller")
    other = tmp_path / "controller" / METADATA_DIRECTORY / f"{0:020d}.log"
    other.write_bytes(damaged(other.read_bytes(), {3}))
    plan = recover(str(tmp_path / "controller"), str(BROKER))
    assert plan["damage"]
    assert "whose copy is damaged" not in steps(plan)


def test_a_controller_that_is_a_broker_too_keeps_its_partitions_and_the_id_of_its_directory(tmp_path: Path) -> None:
    """Its directory has more than metadata in it, and brokers say by its id where replicas are (KIP-858)."""
    meta = meta_properties(BROKER)
    node, directory_id = meta["node.id"], meta["directory.id"]
    new = ("--to", str(tmp_path / "new"), "--voters")
    plan = recover(str(BEHIND), str(BROKER), *new, f"{node}@localhost:9093")
    assert plan["written"]["directoryId"] == directory_id
    assert f"move only {METADATA_DIRECTORY} away, put {tmp_path / 'new'}/{METADATA_DIRECTORY}" in steps(plan)
    assert "do not format it" in steps(plan)
    shutil.rmtree(tmp_path / "new")
    lost = recover(str(BEHIND), *new, f"{node}@localhost:9093")  # its disk is gone: no partition is there
    assert lost["written"]["directoryId"] != directory_id
    assert "Move the metadata directory of controller" in steps(lost)


@pytest.mark.parametrize(
    ("words", "error", "match"),
    [
        (["--to", "new"], UsageError, "--to and --voters belong together"),
        (["--voters", "1@a:1"], UsageError, "--to and --voters belong together"),
        (["--as-of", "3"], UsageError, "begins with the newest records"),
        (["--to", "new", "--voters", "a:1"], UsageError, "before the @ must be the id of a node"),
        (["--to", "new", "--voters", "1@a"], UsageError, "the port is missing"),
        (["--to", "new", "--voters", "1@a:1,1@b:1"], UsageError, "names a node twice"),
        (["--to", "new", "--voters", "1@a:1,2@a:1"], UsageError, "names an address twice"),
        (
            ["--to", "new", "--voters", "1@a:1,2@b:1:pN3mHcFZSNKvbLXk1qjEVw"],
            UsageError,
            "only the first of --voters can have a directory id",
        ),
        (["--to", "new", "--voters", "1@a:1:xyz"], UsageError, "xyz is not the id of a directory"),
    ],
)
def test_what_cannot_be_meant(words: list[str], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        recover(str(BEHIND), *words)


def test_nothing_is_ever_written_over(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(BEHIND, copy)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    voters = ("--voters", "3000@localhost:9093")
    with pytest.raises(CommandError, match="exists, and is not an empty directory"):
        recover(str(copy), "--to", str(tmp_path / "full"), *voters)
    for inside in (copy, copy / "new", copy / METADATA_DIRECTORY / "new"):
        with pytest.raises(CommandError, match="is inside a copy"):
            recover(str(copy), "--to", str(inside), *voters)
    assert os.listdir(tmp_path / "full") == ["mine"]


def test_a_copy_without_a_record_is_no_beginning(tmp_path: Path) -> None:
    builders.write_log(tmp_path / "empty")
    with pytest.raises(DataError, match="none of the copies has a record"):
        recover(str(tmp_path / "empty"))


@pytest.mark.parametrize("directory", ["AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ"])
def test_ids_that_kafka_reserves_are_no_directory(directory: str) -> None:
    with pytest.raises(UsageError, match="reserves"):
        parse_voter(f"1@c:9093:{directory}")
    assert parse_voter("2147483647@c:9093").id == 2147483647


def test_a_voter_may_name_its_directory() -> None:
    directory = new_directory_id()
    voter = parse_voter(f"3000@[::1]:9093:{directory}")
    assert (voter.id, voter.address, voter.directory_id) == (3000, ("::1", 9093), directory)
    assert voter.endpoint == "3000@[::1]:9093"
    assert parse_voter("1@a:1").directory_id is None
    assert len({new_directory_id() for _ in range(20)}) == 20


def test_a_directory_id_that_is_named_is_used_although_the_node_is_a_broker_too(tmp_path: Path) -> None:
    combined, named = FIXTURES / "4.4.0/broker-0", new_directory_id()
    node_id = meta_properties(combined)["node.id"]
    for voters, expected in ((f"{node_id}@c:1:{named}", str(named)), (f"{node_id}@c:1", None)):
        new = tmp_path / f"new-{expected}"
        recover(str(combined), "--to", str(new), "--voters", voters)
        assert meta_properties(new)["directory.id"] == (expected or meta_properties(combined)["directory.id"])


def test_paths_in_steps_can_be_pasted(tmp_path: Path) -> None:
    copy = builders.copy_of(BROKER, tmp_path / "it's here").parent
    (line,) = re.findall(r"`(kshell recover .*) --to NEWDIR", steps(recover(f'"{copy}"')))
    assert shlex.split(line)[2:] == [str(copy)]


def test_a_copy_that_is_one_file_is_never_written_into(tmp_path: Path) -> None:
    copy = builders.copy_of(BROKER, tmp_path).parent
    log = copy / METADATA_DIRECTORY / builders.LOG
    with pytest.raises(CommandError, match="is inside a copy"):
        recover(str(log), "--to", str(copy / "new"), "--voters", "1@c:1")
    assert not (copy / "new").exists()


def test_no_directory_without_a_cluster_id_is_written(tmp_path: Path) -> None:
    copy = builders.copy_of(BROKER, tmp_path).parent
    (copy / "meta.properties").unlink()
    assert recover(str(copy))["keep"]["clusterId"] is None
    with pytest.raises(DataError, match="none of the copies has the id of its cluster"):
        recover(str(copy), "--to", str(tmp_path / "new"), "--voters", "1@c:1")
    assert not (tmp_path / "new").exists()
    other = recover(str(copy), str(BEHIND), "--to", str(tmp_path / "new"), "--voters", "1@c:1")
    assert other["written"]["clusterId"] == meta_properties(tmp_path / "new")["cluster.id"]
    assert f"--cluster-id {other['written']['clusterId']}" in steps(other)


def test_a_later_epoch_that_cannot_be_read_is_an_exit_code(tmp_path: Path) -> None:
    copy = builders.copy_of(BEHIND, tmp_path)
    os.truncate(copy / builders.LOG, 20_000)
    with open(copy / "leader-epoch-checkpoint", "w", encoding="ascii") as file:
        file.write("0\n2\n1 0\n9 500\n")
    plan = recover(str(copy), str(BROKER))
    assert plan["keep"]["copy"] == str(BROKER)
    assert "knows of epoch 9 from offset 500 on" in plan["keep"]["why"]
    assert plan["exitCode"] == 4


def test_a_source_that_is_not_among_the_copies_is_not_looked_at_and_that_is_said() -> None:
    for line in (f"recover {BEHIND}", f"compare-logs {BEHIND} {BEHIND}"):
        session = opened(BROKER)
        run(session, line)
        assert any("is not read: only the directories" in remark for remark in session.remarks), line
        session = opened(BEHIND)
        run(session, line)
        assert not any("is not read: only" in remark for remark in session.remarks), line
