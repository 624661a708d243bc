"""Commits of a warehouse: what counts, one writer at a time, and states that cannot be read. Without Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kshell.errors import CommandError, DataError, UsageError
from kshell.spark.warehouse.commits import FOLDER, ClusterState, Commits, State, copied, parsed
from kshell.spark.warehouse.storage import RemoteStorage
from kshell.spark.warehouse.writer_lock import WriterLock
from tests.spark.here import ROOT

STATE = State(
    3,
    "parquet",
    {"Ä": ClusterState({"offset": 7, "places": {"a/b": ["c", 1, 2]}}, 4, 2)},
    {"records": {"all": {"Ä": [1, 3]}}},
    {"records": 5},
)


def commits(place: Path) -> Commits:
    return Commits(str(place))


def test_an_empty_place_is_step_0(tmp_path: Path) -> None:
    assert commits(tmp_path / "out").latest() == State()
    assert not (tmp_path / "out").exists()


def test_what_was_committed_last_counts(tmp_path: Path) -> None:
    made = commits(tmp_path)
    for step in (1, 2, 3):
        made.begin()
        assert made.is_unclean()
        made.commit(STATE._replace(step=step))
        made.end()
    assert commits(tmp_path).latest() == STATE
    assert not made.is_unclean()
    assert len(list((tmp_path / FOLDER / "state").iterdir())) == 2


def test_a_path_that_is_no_utf8_comes_back_as_it_is(tmp_path: Path) -> None:
    odd = {"x": ClusterState({"places": {"/fleet/caf\udce9": ["/fleet/caf\udce9/0.log", 0]}})}
    commits(tmp_path).commit(STATE._replace(clusters=odd))
    assert commits(tmp_path).latest().clusters == odd


def test_a_commit_does_not_grow_with_every_step(tmp_path: Path) -> None:
    def of(steps: list[int]) -> State:
        return STATE._replace(parts={"records": {"all": {str(n): steps for n in range(100)}}})

    few, many = of([1, 2, 5]), of([*range(1, 50_001), 60_000, 60_002, 60_003, 7])
    assert len(many.text()) < 3 * len(few.text())
    for state in (few, many):
        assert parsed("x", state.text().encode()) == state


def test_commits_of_earlier_layouts_are_read() -> None:
    text = b'{"layout": 2, "clusters": {}, "parts": {"records": {"all": {"x": [1, 2, 5]}}}, "step": 5}'
    assert parsed("x", text) == State(5, parts={"records": {"all": {"x": [1, 2, 5]}}})


def test_a_commit_is_not_written_over(tmp_path: Path) -> None:
    commits(tmp_path).commit(STATE)
    with pytest.raises(CommandError, match="another process has committed step 3") as raised:
        commits(tmp_path).commit(STATE._replace(format="other"))
    assert raised.value.hint
    assert commits(tmp_path).latest() == STATE


@pytest.mark.parametrize("text", ["", "{", "[]", '{"layout": 3}', '{"layout": 3, "clusters": {}, "x": 1}'])
def test_what_is_no_state(tmp_path: Path, text: str) -> None:
    made = commits(tmp_path)
    made.storage.write(f"{tmp_path}/{FOLDER}/state/00000001.json", text.encode())
    with pytest.raises(DataError, match=r"00000001\.json: not the state of a warehouse"):
        made.latest()


def test_a_state_of_a_newer_kshell(tmp_path: Path) -> None:
    made = commits(tmp_path)
    made.storage.write(f"{tmp_path}/{FOLDER}/state/00000001.json", b'{"layout": 4}')
    with pytest.raises(UsageError, match="of another kshell"):
        made.latest()


def is_held(made: Commits) -> bool:
    return made.lock.is_held


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    one, other = commits(tmp_path), commits(tmp_path)
    with one.lock:
        with one.lock:  # once more by the same
            assert is_held(one)
        with pytest.raises(CommandError, match=f"{tmp_path}: process [0-9]+ on .* is writing there"), other.lock:
            pass
        assert not is_held(other)
    assert not is_held(one)
    with other.lock:
        assert is_held(other)


def test_a_killed_writer_holds_nothing(tmp_path: Path) -> None:
    program = (
        f"import os, sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from kshell.spark.warehouse.commits import Commits\n"
        "Commits(sys.argv[1]).lock.__enter__(); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert done.returncode == -9
    with commits(tmp_path).lock:
        pass


def test_a_store_has_a_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = RemoteStorage.__new__(RemoteStorage)
    files: dict[str, bytes] = {}
    monkeypatch.setattr(RemoteStorage, "read", lambda self, path: files.get(path))
    monkeypatch.setattr(RemoteStorage, "write", lambda self, path, data: files.update({path: data}))
    monkeypatch.setattr(RemoteStorage, "remove", lambda self, path: files.pop(path, None))
    one, other = WriterLock(storage, "s3://b/t/_kshell"), WriterLock(storage, "s3://b/t/_kshell")
    with one:
        assert list(files) == ["s3://b/t/_kshell/writer"]
        with pytest.raises(CommandError, match="s3://b/t: process") as raised, other:
            pass
        assert "counts as dead in" in (raised.value.hint or "")
    assert files == {}
    one.__enter__()
    monkeypatch.setattr("kshell.spark.warehouse.writer_lock.time.time", lambda: 9e9)  # it was not heard of for long
    with other:
        pass
    one.__exit__()


def test_parts_are_copied_to_the_bottom() -> None:
    parts = copied(STATE.parts)
    parts["records"]["all"]["Ä"].append(4)
    assert STATE.parts["records"]["all"]["Ä"] == [1, 3]
