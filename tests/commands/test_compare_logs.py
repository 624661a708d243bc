"""compare-logs: the rows, the words below them, the exit codes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from kshell.cli import main
from kshell.engine import plain
from kshell.engine.result import Rows
from kshell.engine.session import Session
from kshell.errors import SourceError, SourceNotFoundError, UsageError
from kshell.sources.choose import NoSource
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.directory.source import DirectorySource
from tests import builders
from tests.builders import FIXTURES, batch, control_batch, leader_change, snapshot, value, write_log, write_snapshot
from tests.commands.shell import lines, rows, run

ROLLED = FIXTURES / "4.2.1-rolled"
SECRET = "swordfish"


def compare(*paths: Path | str, more: str = "") -> list[dict[str, Any]]:
    return rows(Session(NoSource()), " ".join(["compare-logs", *map(str, paths), more]))


def code(*paths: Path | str, more: str = "") -> int:
    return run(Session(NoSource()), " ".join(["compare-logs", *map(str, paths), more])).exit_code


def snapshots(folder: Path, *files: bytes, end: int = 5, epoch: int = 1) -> list[Path]:
    return [write_snapshot(folder / str(number), raw, end, epoch) for number, raw in enumerate(files, 1)]


def topics(*names: str) -> list[bytes]:
    return [value("TOPIC", name=name, topicId=builders.uuid(number)) for number, name in enumerate(names, 1)]


def test_rows_of_a_real_cluster() -> None:
    told = compare(*sorted(ROLLED.iterdir()))
    assert [(row["nodeId"], row["state"], row["startOffset"], row["endOffset"]) for row in told] == [
        (0, "same", 699, 956),
        (3000, "reference", 453, 956),
        (3001, "behind", 293, 947),
        (3002, "behind", 0, 711),
    ]
    assert {row["clusterId"] for row in told} == {"e14E4oOTRNuKhRy8SBGOaQ"}
    assert [row["snapshot"] for row in told] == ["947-4", "947-4", "947-4", "687-4"]
    assert [row["uncommittedFrom"] for row in told] == [947, 947, None, None]
    assert all(row["damage"] == [] and row["reason"] is None for row in told)


def test_exit_codes(tmp_path: Path) -> None:
    real = FIXTURES / "4.3.1/controller-3001"
    assert code(real, real) == 0
    assert code(real, FIXTURES / "4.3.1/controller-3000") == 0
    assert code(real, FIXTURES / "4.3.1-more/broker-0") == 1
    damaged = builders.copy_of(real, tmp_path)
    file = damaged / builders.LOG
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.write_bytes(raw)
    assert code(real, damaged) == 4
    (row,) = [row for row in compare(real, damaged) if row["damage"]]
    assert row["damage"][0].startswith(f"{file}: byte ")
    assert row["reason"] == "what is damaged was not compared"
    assert "Damage" in lines(Session(NoSource()), f"compare-logs {real} {damaged}")


def test_from_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    nodes = [str(FIXTURES / "4.3.1" / name) for name in ("controller-3000", "broker-0")]
    assert main(["compare-logs", *nodes, "-o", "json"]) == 0
    assert [row["state"] for row in json.loads(capsys.readouterr().out)] == ["behind", "reference"]
    assert main(["compare-logs", nodes[0]]) == 2
    assert main(["compare-logs", *nodes, "/nothing/here"]) == 3


def test_needs_two() -> None:
    with pytest.raises(UsageError, match="one copy alone"):
        compare(ROLLED / "broker-0")
    with pytest.raises(UsageError, match="from end to end"):
        compare(ROLLED / "broker-0", ROLLED / "broker-0", "--as-of", "3")
    with pytest.raises(UsageError, match="COPY is missing"):
        compare()
    with pytest.raises(SourceError, match="no such file"):
        compare(ROLLED / "broker-0", "/nothing/here")


def test_a_copy_that_cannot_be_read_is_a_row(tmp_path: Path) -> None:
    good = builders.FIXTURES / "4.3.1"
    (tmp_path / "meta.properties").write_text("cluster.id=x\n")
    found = compare(tmp_path, good / "controller-3001", good / "controller-3002")
    assert [row["state"] for row in found] == ["reference", "same", "not-compared"]
    assert found[2]["copy"] == str(tmp_path)
    assert code(tmp_path, good / "controller-3001", good / "controller-3002") == 3
    with pytest.raises(SourceNotFoundError):
        compare(tmp_path, good / "controller-3001")


def test_row_options() -> None:
    nodes = sorted(ROLLED.iterdir())
    told = compare(*nodes, more="--where 'state == behind' --sort -endOffset --columns nodeId,endOffset")
    assert [(row["nodeId"], row["endOffset"]) for row in told] == [(3001, 947), (3002, 711)]
    result = run(Session(NoSource()), f"compare-logs {nodes[0]} {nodes[1]} --columns copy,state")
    assert isinstance(result, Rows) and [column.name for column in result.columns] == ["copy", "state"]


def test_the_same_files_twice_are_told() -> None:
    session = Session(NoSource())
    path = ROLLED / "broker-0"
    run(session, f"compare-logs {path} {path / METADATA_DIRECTORY}")
    assert session.remarks == [f"{path} and {path / METADATA_DIRECTORY} are the same files"]


# --- where logs part -------------------------------------------------------------------------------------------------


def parted(folder: Path, mine: list[bytes], theirs: list[bytes], epoch: int) -> list[dict[str, Any]]:
    shared = [control_batch([leader_change()]), batch(topics("shared"), 1)]
    opening = [] if epoch == 1 else [control_batch([leader_change()], 2, epoch)]
    write_log(folder / "one", *shared, *opening, batch(theirs, 2 + len(opening), epoch))
    write_log(folder / "two", *shared, batch(mine, 2))
    return compare(folder / "one", folder / "two")


def test_the_records_that_differ(tmp_path: Path) -> None:
    one, two = parted(tmp_path, topics("a", "b"), topics("c"), 2)
    assert (one["state"], two["state"], two["divergesAt"]) == ("reference", "diverged", 2)
    assert [(record["offset"], record["epoch"], record["data"]["name"]) for record in two["records"]] == [
        (2, 1, "a"),
        (3, 1, "b"),
    ]
    assert [record["type"] for record in two["otherRecords"]] == ["LEADER_CHANGE"]
    assert two["comparedWith"] == one["copy"]
    assert "truncates them" in two["reason"]


def test_in_one_epoch_only_the_records_that_differ(tmp_path: Path) -> None:
    _, two = parted(tmp_path, topics("a", "b"), topics("a", "c"), 1)
    assert [record["data"]["name"] for record in two["records"]] == ["b"]
    assert [record["data"]["name"] for record in two["otherRecords"]] == ["c"]
    assert (two["divergesAt"], two["records"][0]["offset"]) == (2, 3)
    assert "no election explains it" in two["reason"]


def test_secrets_stay_redacted(tmp_path: Path) -> None:
    def config(text: str) -> bytes:
        return value("CONFIG", resourceType=4, resourceName="1", name="ssl.key.password", value=text)

    told = parted(tmp_path, [config(SECRET)], [config(SECRET + "2")], 1)
    assert told[1]["records"][0]["data"]["name"] == "ssl.key.password"
    assert SECRET not in json.dumps(told)
    session = Session(NoSource())
    line = f"compare-logs {tmp_path}/one {tmp_path}/two"
    assert SECRET not in "\n".join(lines(session, line))
    assert SECRET in json.dumps(rows(session, f"{line} --show-secrets"))


def test_many_records_are_cut(tmp_path: Path) -> None:
    _, two = parted(tmp_path, topics(*map(str, range(50))), topics("x"), 2)
    assert len(two["records"]) == 20
    shown = lines(Session(NoSource()), f"compare-logs {tmp_path}/one {tmp_path}/two")
    assert sum("TOPIC_RECORD" in line for line in shown) == 4


# --- snapshots ----------------------------------------------------------------------------------------------------


def test_snapshots_of_one_id_may_differ_in_bytes(tmp_path: Path) -> None:
    names = topics("a", "b", "c")
    files = snapshots(tmp_path, snapshot(names), snapshot(names[::-1], per_batch=1, timestamp=7))
    assert [row["state"] for row in compare(*files)] == ["reference", "same"]
    assert code(*files) == 0


def test_snapshots_of_one_id_with_other_metadata(tmp_path: Path) -> None:
    files = snapshots(tmp_path, snapshot(topics("a", "b")), snapshot(topics("a", "c")))
    _, other = compare(*files)
    assert other["state"] == "diverged"
    assert "snapshot 5-1 holds other metadata (/image/topics/" in other["reason"]
    assert code(*files) == 1


def test_snapshots_of_one_offset_and_two_epochs(tmp_path: Path) -> None:
    one = write_snapshot(tmp_path, snapshot([]), 5, 1)
    two = write_snapshot(tmp_path, snapshot([], 2), 5, 2)
    told = compare(one, two)
    assert [row["state"] for row in told] == ["diverged", "reference"]
    assert told[0]["reason"] == f"snapshot 5-1 is 5-2 in {two}"


def test_a_snapshot_against_a_log(tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "log", control_batch([leader_change()]), batch(topics("a", "b"), 1), batch(topics("c"), 3)
    )
    good = write_snapshot(tmp_path / "good", snapshot(topics("a", "b")), 3)
    bad = write_snapshot(tmp_path / "bad", snapshot(topics("a", "x")), 3)
    assert [row["state"] for row in compare(log, good, bad)] == ["reference", "behind", "diverged"]
    assert "than the log of" in compare(log, bad)[1]["reason"]


def test_a_log_that_ends_where_another_begins(tmp_path: Path) -> None:
    early = tmp_path / "early"
    write_log(early, control_batch([leader_change()]), batch(topics("a", "b"), 1))
    for name, second, state in (("late", "b", "behind"), ("other", "x", "diverged")):
        write_snapshot(tmp_path / name, snapshot(topics("a", second)), 3)
        write_log(tmp_path / name, batch([value("NO_OP")], 3), base_offset=3)
        one, two = compare(early, tmp_path / name)
        assert (one["state"], two["state"]) == (state, "reference")
        assert ("than the log of" in (one["reason"] or "")) == (state == "diverged")


def test_what_has_nothing_in_common(tmp_path: Path) -> None:
    one = write_snapshot(tmp_path / "one", snapshot([]), 5)
    two = write_snapshot(tmp_path / "two", snapshot([]), 9)
    assert [row["state"] for row in compare(one, two)] == ["not-compared", "reference"]
    assert code(one, two) == 1


def test_a_damaged_copy_is_not_called_the_same(tmp_path: Path) -> None:
    whole, damaged = (
        write_log(tmp_path / name, control_batch([leader_change()]), batch(topics("a"), 1), batch(topics("b"), 2))
        for name in ("whole", "damaged")
    )
    raw = bytearray(damaged.read_bytes())
    raw[-3] ^= 0xFF
    damaged.write_bytes(bytes(raw))
    told = {Path(row["copy"]).name: row for row in compare(whole.parent, damaged.parent)}
    assert told["whole"]["state"] == "reference"
    assert told["damaged"]["state"] in ("damaged", "behind") and told["damaged"]["damage"]
    assert compare(whole.parent, damaged.parent, more="--where 'state == same'") == []
    assert code(whole.parent, damaged.parent) == 4


def test_copies_of_one_history_have_one_hash_at_the_last_offset_that_all_reach() -> None:
    for release in ("3.3.2", "3.9.2", "4.3.1"):
        nodes = sorted(path.parent for path in (FIXTURES / release).glob("*/meta.properties"))
        told = compare(*nodes)
        offset = min(row["endOffset"] for row in told) - 1
        assert {row["hashOffset"] for row in told} == {offset}
        assert len({row["hash"] for row in told}) == 1, release
        expected = run(Session(DirectorySource(str(nodes[0]))), f"hash --as-of {offset}")
        assert plain.value(expected)["hash"] == told[0]["hash"]


def test_copies_that_parted_before_that_offset_have_other_hashes(tmp_path: Path) -> None:
    folders = []
    for number, names in enumerate((("a", "b"), ("a", "c")), 1):
        folder = tmp_path / str(number)
        opening = control_batch([leader_change()])
        later = control_batch([leader_change(number)], 2, 1 + number)
        write_log(folder, opening, batch(topics(names[0]), 1), later, batch(topics(*names)[1:], 3, 1 + number))
        folders.append(folder)
    told = compare(*folders)
    assert [row["hashOffset"] for row in told] == [3, 3]
    assert len({row["hash"] for row in told}) == 2


def test_a_copy_that_does_not_reach_back_has_no_hash() -> None:
    told = compare(*sorted(ROLLED.iterdir()))
    assert {row["hashOffset"] for row in told} == {710}
    assert {row["nodeId"]: row["hash"] is None for row in told}[3002] is False
    assert len({row["hash"] for row in told if row["hash"]}) == 1


def kept(*paths: Path | str) -> str:
    said = " ".join(lines(Session(NoSource()), " ".join(["compare-logs", *map(str, paths)]), width=1000))
    return said[said.index("keep ") :]


def test_the_report_says_which_copy_to_keep_and_why(tmp_path: Path) -> None:
    real = FIXTURES / "4.3.1/controller-3001"
    behind = FIXTURES / "4.3.1/controller-3000"
    twin = FIXTURES / "4.3.1/controller-3002"
    said = kept(behind, real, twin)
    assert f"keep {real}: its last record has epoch 1, and no copy of that epoch is longer" in said
    assert f"{twin} has the same records" in said
    other = FIXTURES / "4.3.1-more/broker-0"
    damaged = builders.copy_of(real, tmp_path)
    builders.flip(damaged / builders.LOG, 300)
    assert "it is damaged: keep the others, too" in kept(behind, damaged)
    assert "there is nothing to keep" not in kept(real, other)


def cut_copy(folder: Path, *, size: int) -> Path:
    """A node of the real cluster whose log is cut below its newest snapshot, as a full disk or a bad copy leaves it."""
    directory = builders.copy_of(ROLLED / "controller-3001", folder)
    os.truncate(max(directory.glob("*.log")), size)
    return directory


@pytest.mark.parametrize("size", [0, 864, 5000], ids=["empty", "after a batch", "in a batch"])
def test_a_log_that_ends_before_its_snapshot_is_never_called_whole(tmp_path: Path, size: int) -> None:
    whole, cut = builders.copy_of(ROLLED / "controller-3001", tmp_path / "whole"), cut_copy(tmp_path / "cut", size=size)
    (row,) = [row for row in compare(whole, cut) if row["copy"] == str(cut)]
    assert row["state"] == "damaged" and row["endOffset"] == 947
    assert f"before the end of snapshot {max(cut.glob('*.checkpoint')).name}: " in row["damage"][0]
    assert code(whole, cut) == 4
    # Next to a damaged copy, too, it is none to keep.
    builders.flip(max(whole.glob("*.log")), 500)
    told = "\n".join(lines(Session(NoSource()), f"compare-logs {whole} {cut}"))
    assert "it is damaged: keep the others, too" in told and "keep that one" not in told


def test_snapshots_alone_are_not_advised_instead_of_a_log(tmp_path: Path) -> None:
    damaged, alone = (builders.copy_of(ROLLED / "controller-3001", tmp_path / name) for name in ("damaged", "alone"))
    for log in alone.glob("*.log"):
        log.unlink()
    builders.flip(min(damaged.glob("*.log")), 100)
    told = "\n".join(lines(Session(NoSource()), f"compare-logs {damaged} {alone}"))
    assert "it is damaged: keep the others, too" in told and "keep that one" not in told
