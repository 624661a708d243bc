"""Commits of a warehouse: what counts, one writer at a time, and states that cannot be read. Without Spark."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kshell.errors import CommandError, DataError, LeaseLostError, UsageError
from kshell.spark.tables.warehouse import Warehouse
from kshell.spark.tables.steps import ClusterState, State
from tests.spark.here import ROOT

STATE = State(
    3,
    "parquet",
    {"Ä": ClusterState({"offset": 7, "places": {"a/b": ["c", 1, 2]}}, 4, 2)},
    {"records": {"all": {"Ä": [1, 3]}}},
    {"records": 5},
)


def commits(place: Path | str) -> Commits:
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


def test_a_commit_is_not_written_over(tmp_path: Path) -> None:
    commits(tmp_path).commit(STATE)
    with pytest.raises(CommandError, match="another process has committed step 3") as raised:
        commits(tmp_path).commit(STATE._replace(format="other"))
    assert raised.value.hint
    assert commits(tmp_path).latest() == STATE


@pytest.mark.parametrize("text", ["", "{", "[]", '{"layout": 5}', '{"layout": 5, "clusters": {}, "x": 1}'])
def test_what_is_no_state(tmp_path: Path, text: str) -> None:
    made = commits(tmp_path)
    made.storage.write(f"{tmp_path}/{FOLDER}/state/00000001.json", text.encode())
    with pytest.raises(DataError, match=r"00000001\.json: not the state of a warehouse"):
        made.latest()


@pytest.mark.parametrize("layout", [4, 6])
def test_a_state_of_another_kshell(tmp_path: Path, layout: int) -> None:
    made = commits(tmp_path)
    made.storage.write(f"{tmp_path}/{FOLDER}/state/00000001.json", b'{"layout": %d}' % layout)
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
        "
        "Commits(sys.argv[1]).lock.__enter__(); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert done.returncode == -9
    with commits(tmp_path).lock:
        pass


class Store:
    """A store's files, in memory: all that a warehouse asks for, and no lock of a kernel."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}

    def join(self, *parts: str) -> str:
        return "/".join(parts)

    def read(self, path: str) -> bytes | None:
        return self.content.get(path)

    def write(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        if exclusive and path in self.content:
            raise FileExistsError(path)
        self.content[path] = data

    def names(self, path: str) -> list[str]:
        below = (one.removeprefix(f"{path}/") for one in self.content if one.startswith(f"{path}/"))
        return sorted({one.partition("/")[0] for one in below})

    def exists(self, path: str) -> bool:
        return path in self.content or bool(self.names(path))

    def remove(self, path: str) -> None:
        for one in [one for one in self.content if one == path or one.startswith(f"{path}/")]:
            del self.content[one]


PLACE = "s3://b/t"
LEASE = f"{PLACE}/{FOLDER}/writer"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    """One, for places of all warehouses; nobody waits there."""
    made = Store()
    monkeypatch.setattr("kshell.spark.warehouse.commits.storage_of", lambda place: made)
    monkeypatch.setattr("kshell.spark.warehouse.writer_lock._SETTLED", 0.0)
    return made


def die(patch: pytest.MonkeyPatch) -> None:
    """Whoever writes now was not heard of for long."""
    later = time.time() + 301
    patch.setattr("kshell.spark.warehouse.writer_lock.time.time", lambda: later)


def test_a_store_has_a_lease(store: Store) -> None:
    one, other = commits(PLACE).lock, commits(PLACE).lock
    with one:
        assert list(store.content) == [LEASE]
        with pytest.raises(CommandError, match="s3://b/t: process") as raised, other:
            pass
        assert "counts as dead in" in (raised.value.hint or "")
        one.check()
    assert store.content == {}


def test_a_lease_that_is_being_replaced_is_there_in_a_moment(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.spark.warehouse.writer_lock._MOMENT", 0.01)
    one, other = (commits("hdfs://n/t").lock for _ in range(2))
    read, gone = store.read, list[bool]()

    def reading(path: str) -> bytes | None:
        return None if gone and gone.pop() else read(path)

    with one:
        monkeypatch.setattr(store, "read", reading)
        gone = [True]
        one.check()
        gone = [True]
        with pytest.raises(CommandError, match="is writing there"), other:
            pass


def test_one_that_was_taken_for_dead_neither_begins_nor_commits(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = commits(PLACE), commits(PLACE)
    with one.lock:
        one.begin()
        die(monkeypatch)
        with other.lock:
            for write in (one.begin, lambda: one.commit(STATE)):
                with pytest.raises(LeaseLostError, match=r"s3://b/t: process [0-9]+ on .* writes there now") as raised:
                    write()
                assert raised.value.hint
            other.commit(STATE)
            held = store.content[LEASE]
        assert LEASE not in store.content
        with pytest.raises(LeaseLostError, match="another process took this one for dead"):
            one.commit(STATE._replace(step=9))
        store.content[LEASE] = held
    assert store.content[LEASE] == held, "the lease of another one stays"
    assert other.latest() == STATE


def test_a_renewal_does_not_take_the_lease_back(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = commits(PLACE).lock, commits(PLACE).lock
    monkeypatch.setattr("kshell.spark.warehouse.writer_lock._RENEWED", 0.01)
    with one:
        first = store.content[LEASE]
        wait_for(lambda: store.content[LEASE] != first)
        store.content[LEASE] = b"{}"  # somebody else's
        wait_for(lambda: not any(thread.name == "kshell writer" for thread in threading.enumerate()))
        with other:
            time.sleep(0.05)
            other.check()


def wait_for(ended: Callable[[], bool]) -> None:
    """Until something is so, for seconds at most."""
    until = time.monotonic() + 5
    while not ended():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_of_two_at_the_same_moment_one_begins(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.spark.warehouse.writer_lock._SETTLED", 0.1)
    one, other = commits(PLACE), commits(PLACE)
    with one.lock:
        before = store.content.pop(LEASE)  # the other one looks before it is there, and writes after it
        with other.lock:
            assert store.content[LEASE] != before
            with pytest.raises(LeaseLostError):
                one.begin()
            other.begin()


def test_steps_of_two_writers_never_have_one_number(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = (Warehouse(None, PLACE) for _ in range(3))
    with contextlib.ExitStack() as stack:
        stack.enter_context(first.commits.lock)
        numbers = [first.begin()]
        for warehouse in (second, third):
            die(monkeypatch)
            with warehouse.commits.lock:
                numbers.append(warehouse.begin())
        assert numbers == [1, 9, 17], "a step may have numbers after its own, too"
    last = Warehouse(None, PLACE)
    with last.commits.lock:
        assert last.begin() == 25
        last.commit({})
        assert last.begin() == 26
    assert LEASE not in store.content


def test_what_goes_wrong_beside_another_writer_is_told_as_that(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Warehouse(None, PLACE), Warehouse(None, PLACE)
    batch = f"{PLACE}/bronze/records/batch=%d/x.parquet"
    with pytest.raises(LeaseLostError) as raised, one.writing():
        one.begin()
        one._parts = {"records": {"all": {"x": [one.step]}}}
        die(monkeypatch)
        with other.writing():
            other.begin()
            other._parts = {"records": {"all": {"x": [other.step]}}}
            other.commit({})
        store.content[batch % one.step] = store.content[batch % other.step] = b""
        raise DataError("a file is not there")
    assert isinstance(raised.value.__cause__, DataError)
    assert [path for path in store.content if "bronze" in path] == [batch % other.step], "what it wrote goes with it"


def test_parts_are_copied_to_the_bottom() -> None:
    parts = copied(STATE.parts)
    parts["records"]["all"]["Ä"].append(4)
    assert STATE.parts["records"]["all"]["Ä"] == [1, 3]
