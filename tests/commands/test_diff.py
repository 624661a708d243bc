"""diff: what it gives for one image turns it into the other."""

from __future__ import annotations

import copy
import json
import os
import random
from functools import cache
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

import kshell
from kshell.engine.session import Session
from kshell.errors import KshellError, NoSuchPathError, OutOfReachError, UsageError
from kshell.history.diff import Change, TreeComparison
from kshell.history.records import changed_parts
from kshell.metadata.families.topics import TOPICS
from kshell.sources.choose import demo_directory
from kshell.sources.directory.source import DirectorySource
from kshell.sources.past import Past
from kshell.sources.points import HINT
from kshell.tree.node import Directory, Leaf, Node
from tests.builders import (
    batch,
    control_batch,
    damaged_log,
    leader_change,
    node_name,
    recorded,
    snapshot,
    uuid,
    value,
    write_log,
)
from tests.commands.shell import lines, opened, rows, run
from tests.commands.shell import value as value_of
from tests.leaves import image_of, session_at, values

PAIRS = int(os.environ.get("KSHELL_DIFF_PAIRS", "60"))
IMAGE = ("image",)


class At:
    """A recorded directory at every offset."""

    def __init__(self, node: Path) -> None:
        self.source = DirectorySource(str(node))
        self.past = Past(self.source)
        found = self.past.history()
        assert found is not None
        self.first, self.last = found[0].log.start, found[0].log.end - 1

    def session(self, offset: int) -> Session:
        return session_at(self.source, self.past, offset)


@cache
def at(node: Path) -> At:
    return At(node)


def nested(node: Node) -> Any:
    """As ``cat /image -o json`` has it."""
    if isinstance(node, Leaf):
        return node.value()
    assert isinstance(node, Directory)
    return {name: nested(child) for name in node.segments() if (child := node.child(name)) is not None}


def applied(before: dict[str, Any], changes: list[Change]) -> dict[str, Any]:
    """A flat image after the changes, each of which must fit it."""
    after = dict(before)
    for change in changes:
        row = change.row()
        path = row["path"]
        if row["change"] == "added":
            assert path not in after
            after[path] = row["new"]
        elif row["change"] == "removed":
            assert after.pop(path) == row["old"]
        else:
            assert after[path] == row["old"] != row["new"]
            if row["fields"]:
                differing = {n for n in row["old"].keys() | row["new"].keys() if row["old"].get(n) != row["new"].get(n)}
                assert set(row["fields"]) == differing
            after[path] = row["new"]
    return after


def check(old: Session, new: Session) -> int:
    """Holds the rows and the patch of two sessions against their images; gives how many rows there are."""
    comparison = TreeComparison(old, new, IMAGE)
    changes = list(comparison.changes())
    assert applied(values(old), changes) == values(new)
    patch = json.loads(json.dumps(comparison.patch()))
    document = json.loads(json.dumps(nested(image_of(old))))
    assert jsonpatch.JsonPatch(patch).apply(document) == json.loads(json.dumps(nested(image_of(new))))
    assert bool(changes) == (values(old) != values(new))
    return len(changes)


def pairs(count: int, seed: int) -> list[tuple[Path, int, Path, int]]:
    """Random points; three in four times both of one directory."""
    rng = random.Random(seed)
    nodes = recorded()
    found = []
    for _ in range(count):
        one = rng.choice(nodes)
        other = one if rng.random() < 0.75 else rng.choice(nodes)
        ends = [rng.randint(at(node).first, at(node).last) for node in (one, other)]
        found.append((one, ends[0], other, ends[1]))
    return found


def test_applied_to_one_image_it_gives_the_other() -> None:
    changed = 0
    for one, first, other, last in pairs(PAIRS, seed=1):
        try:
            changed += check(at(one).session(first), at(other).session(last)) > 0
        except AssertionError:
            print(node_name(one), first, node_name(other), last)
            raise
    assert changed > PAIRS * 0.9


@pytest.mark.soak
def test_applied_to_one_image_it_gives_the_other_a_thousand_times() -> None:
    """A thousand unless a count is asked for (CI does)."""
    for one, first, other, last in pairs(40 * int(os.environ.get("KSHELL_SOAK_COUNT", "25")), seed=2):
        check(at(one).session(first), at(other).session(last))


@pytest.mark.parametrize("node", recorded()[::5], ids=node_name)
def test_of_one_image_with_itself_is_empty(node: Path) -> None:
    assert check(at(node).session(at(node).last), at(node).session(at(node).last)) == 0


def test_loaded_by_itself_or_out_of_the_past_is_the_same() -> None:
    node = recorded(log_from_zero=True)[-1]
    last = at(node).last
    assert check(Session(at(node).source, show_secrets=True, until=last), at(node).session(last)) == 0


def test_a_source_is_closed_if_the_other_cannot_be_opened(
    sample: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    monkeypatch.setattr(DirectorySource, "close", lambda self: closed.append(self.name))
    with pytest.raises(KshellError):
        run(sample, f"diff {demo_directory()} {tmp_path}/nothing")
    assert closed == [str(demo_directory())]


def test_exit_codes(sample: Session) -> None:
    assert run(sample, "diff now now").exit_code == 0
    assert run(sample, "diff 160 now").exit_code == 1
    assert run(sample, "diff 160 160 --json-patch").exit_code == 0
    assert run(sample, "diff 160 161 /image/features").exit_code == 0


def test_rows(sample: Session) -> None:
    (row,) = rows(sample, "diff 160 now /image/topics/byName/legacy-import/0")
    assert (row["path"], row["change"], row["type"]) == ("/image/topics/byName/legacy-import/0", "changed", "partition")
    assert row["fields"] == ["isr", "elr", "lastKnownElr", "leader", "leaderEpoch", "partitionEpoch"]
    assert (row["old"]["leader"], row["new"]["leader"]) == (3, -1)


def test_backwards(sample: Session) -> None:
    (row,) = rows(sample, "diff now 160 /image/topics/byName/legacy-import/0")
    assert (row["old"]["leader"], row["new"]["leader"]) == (-1, 3)


def test_epochs_and_provenance_can_be_left_out(sample: Session) -> None:
    told = rows(sample, "diff 160 now --ignore-epochs")
    assert all(not {"leaderEpoch", "partitionEpoch", "epoch"} & set(row["fields"]) for row in told)
    assert not any(row["path"] == "/image/provenance" for row in told)
    assert rows(sample, "diff 205 206 --ignore-epochs") == []


def test_text_names_a_topic_once(sample: Session) -> None:
    text = lines(sample, "diff 160 now")
    assert not any("/byId/" in line and "/topics/" in line for line in text)
    assert any("/topics/byId/" in row["path"] for row in rows(sample, "diff 160 now"))
    topic_id = value_of(sample, "cat /image/topics/byName/orders/id")
    assert lines(sample, f"diff 160 now /image/topics/byId/{topic_id}/0")


def test_stat(sample: Session) -> None:
    told = {row["type"]: row for row in rows(sample, "diff 160 now --stat")}
    assert (told["topicName"]["removed"], told["partition"]["removed"]) == (2, 5)
    assert told["broker"] == {"type": "broker", "added": 0, "removed": 0, "changed": 1}


@pytest.mark.parametrize("where", ["", " --where 'type == partition'", " --ignore-epochs", " --by content"])
def test_stat_counts_the_rows(sample: Session, where: str) -> None:
    counted: dict[str, dict[str, int]] = {}
    for row in rows(sample, f"diff 160 now{where}"):
        if "/topics/byId/" not in row["path"] and (row["type"], row["change"]) != ("topicId", "removed"):
            of_type = counted.setdefault(row["type"], {"added": 0, "removed": 0, "changed": 0})
            of_type[row["change"]] += 1
    told = rows(sample, f"diff 160 now --stat{where}")
    assert told == [{"type": name} | numbers for name, numbers in sorted(counted.items())]


def test_what_has_no_name_counts_for_the_exit_code_of_stat(tmp_path: Path) -> None:
    """Two topics with one name, which no controller writes: the first one can be reached by its id alone."""
    topics = [value("TOPIC", name="t", topicId=uuid(number)) for number in (1, 2)]
    known = {"partitionId": 0, "topicId": uuid(1)}
    placed = value("PARTITION", replicas=[1], isr=[1], leader=1, leaderEpoch=0, partitionEpoch=0, **known)
    changed = value("PARTITION_CHANGE", leader=-1, **known)
    session = opened(write_log(tmp_path, batch([topics[0], placed, topics[1], changed])))
    result = run(session, "diff 2 3 --stat --ignore-epochs")
    assert (rows(session, "diff 2 3 --stat --ignore-epochs"), result.exit_code) == ([], 1)


def test_a_patch_below_a_path(sample: Session) -> None:
    for path in ("/image/topics", "/image/topics/byName/orders", "/image/topics/byName/orders/0", "/image/configs"):
        patch = value_of(sample, f"diff 160 now {path} --json-patch")
        before = nested(sample.reshape(point="160").node(path)[1])
        after = nested(sample.node(path)[1])
        assert patch
        assert jsonpatch.apply_patch(json.loads(json.dumps(before)), patch) == after


def test_a_patch_where_the_path_itself_comes_and_goes(sample: Session) -> None:
    before = nested(sample.reshape(point="160").node("/image/topics/byName/tmp-backfill")[1])
    patch = value_of(sample, "diff now 160 /image/topics/byName/tmp-backfill --json-patch")
    assert jsonpatch.apply_patch(None, patch) == before


SECRET = "swordfish"


def scram(iterations: int, key: bytes) -> bytes:
    return value(
        "USER_SCRAM_CREDENTIAL", name="alice", mechanism=1, salt=b"salt", storedKey=key, serverKey=b"k",
        iterations=iterations,
    )  # fmt: skip


def config(name: str, text: str) -> bytes:
    return value("CONFIG", resourceType=4, resourceName="1", name=name, value=text)


def test_a_secret_that_changed_is_told_without_its_value(tmp_path: Path) -> None:
    old = [scram(4096, b"one"), config("ssl.key.password", SECRET)]
    new = [scram(4096, b"two"), config("ssl.key.password", SECRET + "2")]
    for name, records in (("a", old), ("b", new)):
        write_log(tmp_path / name, control_batch([leader_change()]), batch(records, 1))
    session = opened(tmp_path / "a")
    line = f"diff {tmp_path}/a {tmp_path}/b"
    told = {row["path"]: row for row in rows(session, line)}
    assert set(told) == {"/image/scram/SCRAM-SHA-256/alice", "/image/configs/BROKER:1/ssl.key.password"}
    assert all(row["change"] == "changed" for row in told.values())
    assert SECRET not in json.dumps(told)
    assert value_of(session, f"{line} --json-patch") == []
    assert len(value_of(session, f"{line} --json-patch --show-secrets")) == 2


def test_directories_and_snapshots(tmp_path: Path) -> None:
    snapshots = {
        node: max((node / "__cluster_metadata-0").glob("*.checkpoint")) for node in recorded(log_from_zero=True)
    }
    target, file = max(snapshots.items(), key=lambda item: item[1].name)
    session = opened(target)
    assert rows(session, f"diff {target} now") == []
    then = int(file.name[:20]) - 1
    assert rows(session, f"diff {file} {then} --ignore-epochs") == []


def test_two_snapshots_share_what_is_the_same_bytes(tmp_path: Path) -> None:
    def partition(number: int, leader: int) -> bytes:
        return value(
            "PARTITION", 2, partitionId=number, topicId=uuid(1 + number // 100), replicas=[1, 2], isr=[1, 2],
            leader=leader, leaderEpoch=0, partitionEpoch=0, directories=[uuid(8), uuid(9)],
        )  # fmt: skip

    def held(leader: int) -> list[bytes]:
        return [
            value("TOPIC", name="a", topicId=uuid(1)), partition(0, 1), partition(1, leader),
            value("TOPIC", name="b", topicId=uuid(2)), partition(100, 1),
        ]  # fmt: skip

    files = [tmp_path / f"{n:020d}-{1:010d}.checkpoint" for n in (10, 20)]
    for file, leader in zip(files, (1, 2), strict=True):
        file.write_bytes(snapshot(held(leader)))
    old, new = (opened(file) for file in files)
    assert old.image[TOPICS][uuid(2)].is_same(new.image[TOPICS][uuid(2)])
    assert old.image[TOPICS][uuid(1)].differing(new.image[TOPICS][uuid(1)]) == [1]
    paths = [change.row()["path"] for change in TreeComparison(old, new, IMAGE).changes()]
    assert [path for path in paths if "byName" in path] == ["/image/topics/byName/a/1"]


def test_a_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: Session) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    run(sample, f"context add there -d {demo_directory()}")
    assert rows(sample, "diff context:there now") == []
    with pytest.raises(UsageError, match="no such context"):
        run(sample, "diff context:nowhere now")
    with pytest.raises(UsageError) as raised:
        run(sample, "diff there now")
    assert raised.value.hint == "a context of that name is context:there"


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("diff 160 now /quorum", UsageError),
        ("diff 160 now /image/*", UsageError),
        ("diff 160 now /image/topics/byName/nosuch", NoSuchPathError),
        ("diff someday now", UsageError),
        ("diff @nosuch now", UsageError),
        ("diff no/such now", UsageError),
        ("diff 160", UsageError),
    ],
)
def test_what_cannot_be_compared(
    sample: Session, line: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(error):
        run(sample, line)


def test_for_python() -> None:
    with kshell.open(demo_directory()) as session:
        told = session.diff(160, "now", "/image/topics/byName/legacy-import/0")
        assert told.exit_code == 1
        assert told.rows[0]["fields"][0] == "isr"
        assert session.at(160).image.provenance.offset == 160
        assert copy.copy(session.diff("now", "now").rows) == []


def test_a_condition_chooses_rows_and_not_the_exit_code(sample: Session) -> None:
    place = "/image/topics/byName"
    every = rows(sample, f"diff 160 now {place}")
    led = [row for row in every if "leader" in row["fields"]]
    assert 0 < len(led) < len(every)
    assert rows(sample, f"diff 160 now {place} --where 'leader in fields'") == led
    assert len(lines(sample, f"diff 160 now {place} --where 'leader in fields'")) == len(led)
    (counted,) = rows(sample, f"diff 160 now {place} --stat --where 'leader in fields'")
    assert (counted["type"], counted["changed"]) == ("partition", len(led))
    none = run(sample, f"diff 160 now {place} --where 'type == acl'")
    assert none.exit_code == 1
    assert list(none) == []  # type: ignore[call-overload]
    with pytest.raises(UsageError):
        run(sample, "diff 160 now --json-patch --where 'leader in fields'")


@pytest.mark.parametrize("line", ["diff -10m now", "diff yesterday now --stat", "diff 12:00 now"])
def test_a_time_after_the_last_record_says_that_nothing_is_newer(sample: Session, line: str) -> None:
    """Empty and exit code 0 alone would say that all is calm, of a copy that may be days old."""
    assert run(sample, line).exit_code == 0
    point = line.split()[1]
    assert sample.remarks[0].startswith(
        f"no record is newer than {point}: the last one was written at 2026-11-21T15:11:24.494Z"
    )
    assert run(sample, "diff now now").exit_code == 0 and sample.remarks == []


def test_a_time_before_the_log_names_the_line_that_works(sample: Session) -> None:
    with pytest.raises(OutOfReachError) as raised:
        run(sample, "diff 2020-01-01 now")
    assert raised.value.hint is not None and raised.value.hint.endswith("; `diff 0 now` shows all that changed")
    assert run(sample, "diff 0 now").exit_code == 1


@pytest.mark.parametrize("ago", ["end-10m", "-4000w"])
def test_so_long_ago_that_there_was_no_log_is_its_beginning(sample: Session, ago: str) -> None:
    """As `log --since` has it: who asks for the last ten minutes of a log of one wants that one."""
    whole = rows(sample, "diff 0 now")
    assert rows(sample, f"diff {ago} now") == whole != []
    assert any(remark.startswith(f"{ago}: ") and "compared from offset 0 on" in remark for remark in sample.remarks)


@pytest.mark.parametrize("word", ["staging", "node-1", "prod.copy"])
def test_a_directory_that_is_not_there_is_said_to_be_missing(sample: Session, word: str) -> None:
    with pytest.raises(UsageError, match=f"{word}: no such file or directory, and not a point in the log"):
        run(sample, f"diff {word} now")


def test_two_moments_before_the_log_are_not_equal(sample: Session) -> None:
    with pytest.raises(OutOfReachError):
        run(sample, "diff end-10m end-5m")


def test_an_offset_that_is_not_written_yet_is_said(sample: Session) -> None:
    run(sample, "diff 160 300")
    assert "offset 300 is not written yet: answers are the state at offset 206" in sample.remarks


def test_an_offset_that_cannot_be_read_is_not_called_unwritten(tmp_path: Path) -> None:
    damaged_log(tmp_path)
    session = opened(tmp_path)
    run(session, "diff 2 12")
    assert "offset 12 cannot be read: answers are the state at offset 4" in session.remarks
    session.remarks.clear()
    rows(session, "diff 2 now")
    assert any(remark.startswith("`now` is the state at offset 4 (") for remark in session.remarks)


@pytest.mark.parametrize("command", ["diff 160 now", "blame"])
def test_a_path_outside_the_image_or_nowhere(sample: Session, command: str) -> None:
    with pytest.raises(NoSuchPathError) as raised:
        run(sample, f"{command} orders")
    assert raised.value.hint == "did you mean /image/topics/byName/orders or /image/configs/TOPIC:orders?"
    with pytest.raises(UsageError) as refused:
        run(sample, f"{command} /quorum")
    assert refused.value.hint == "`log /quorum` has the records that changed it"
    assert rows(sample, "log /quorum")


def test_of_an_object_in_a_field_only_the_keys_that_differ_are_shown() -> None:
    old = {"supportedFeatures": {"metadata.version": {"min": 7, "max": 30}, "group.version": {"min": 0, "max": 1}}}
    new = {"supportedFeatures": {"metadata.version": {"min": 7, "max": 29}, "group.version": {"min": 0, "max": 1}}}
    assert list(changed_parts(old, new)) == ["supportedFeatures.metadata.version.max 30 -> 29"]
    assert list(changed_parts({"a": {}}, {"a": {"b": 1}})) == ["a {} -> {b=1}"]


def test_a_time_is_shown_once() -> None:
    """Not again in milliseconds; a time that is only there in milliseconds is shown."""
    assert list(changed_parts({"time": "a", "timeMs": 1}, {"time": "b", "timeMs": 2})) == ["time a -> b"]
    assert list(changed_parts({"timeMs": 1}, {"timeMs": 2})) == ["timeMs 1 -> 2"]


def test_text_has_values_without_json(sample: Session) -> None:
    added, *_ = lines(sample, "diff 150 200 /image/topics/byName/orders/6")
    assert added.startswith("+ /image/topics/byName/orders/6 replicas=[2,3,1], directories=[")
    assert lines(sample, "diff 160 161 /image/configs/TOPIC:payments.v1")[0].endswith("/min.insync.replicas 2")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("diff prod staging", f"{HINT}; another source is a directory, or context:NAME"),
        ("diff 10m now", "did you mean -10m (ago) or end-10m (before the last record)?"),
        ("diff end-10m", "such as `diff end-10m now`; `help diff` shows how it is used"),
        ("diff 'a b'", "such as `diff 'a b' now`; `help diff` shows how it is used"),
        ("diff", "such as `diff 160 now /image/topics/byName/orders`; `help diff` shows how it is used"),
    ],
)
def test_half_a_line_is_answered_with_a_whole_one(sample: Session, line: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        run(sample, line)
    assert raised.value.hint == hint
