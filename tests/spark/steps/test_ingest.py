"""Slices are spread evenly over tasks, in their order; nothing of them is lost."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.sources.directory.files import scan
from kshell.spark.files.pack import Slice
from kshell.spark.files.plan import FileFinding, FilePlan, Run
from kshell.spark.files.scan import CopyOrigin, LogCopy
from kshell.spark.steps import ingest, planning

MB = 1 << 20
Place = tuple[str, Run]


def slices(
    sizes: list[int], per_file: int = 5, *, found: bool = False, records: list[int] | None = None
) -> list[Slice]:
    """Slices of so many bytes and records one after the other, some in each file."""
    made, at, offset = [], 0, 0
    for number, (size, count) in enumerate(zip(sizes, records or [1] * len(sizes), strict=True)):
        at = 0 if number % per_file == 0 else at
        findings = (FileFinding(at, "gap", "a reason"),) if found else ()
        path, run = f"file{number // per_file}", Run(at, at + size, offset, offset + count)
        offset += count
        made.append(Slice(CopyOrigin("a", 1), FilePlan(path, 99, False, (run,), findings)))
        at += size
    return made


def tasks(some: list[Slice], parallelism: int) -> list[tuple[Slice, ...]]:
    return [pickle.loads(task) for task in ingest.packed(some, parallelism)]


def places(some: list[Slice]) -> list[Place]:
    return [(piece.file.path, run) for piece in some for run in piece.file.runs]


@given(st.lists(st.integers(1, 16 * MB), min_size=1, max_size=80), st.integers(1, 8))
def test_evenly_and_in_order(sizes: list[int], parallelism: int) -> None:
    some = slices(sizes)
    made = tasks(some, parallelism)
    assert places([piece for task in made for piece in task]) == places(some)
    total = sum(piece.cost() for piece in some)
    share = total / len(made)
    assert len(made) <= max(parallelism, total // (64 * MB) + parallelism)
    for task in made:
        # What joining saves on opening files is not counted here.
        assert sum(run.end - run.start for _, run in places(list(task))) <= share + max(sizes) + MB


@given(st.lists(st.tuples(st.integers(1, 2 * MB), st.integers(1, 40_000)), min_size=30, max_size=80))
def test_records_weigh_as_well_as_bytes(some: list[tuple[int, int]]) -> None:
    sizes, records = [size for size, _ in some], [count for _, count in some]
    made = tasks(slices(sizes, len(some), records=records), 2)
    works = [sum(run.end - run.start + 32 * (run.after - run.first) for _, run in places(list(one))) for one in made]
    assert sum(works) == sum(sizes) + 32 * sum(records)
    most = max(size + 32 * count for size, count in some)
    assert max(works) - min(works) <= 2 * most + MB


def test_small_records_make_a_smaller_task() -> None:
    """As many bytes each, but twice as many records: what comes first has more of the bytes, and fewer records."""
    some = slices([MB] * 40, 40, records=[9_000] * 20 + [20_000] * 20)
    one, two = ([run for _, run in places(list(task))] for task in tasks(some, 2))
    assert (len(one), len(two)) == (22, 18)


def test_what_was_there_before_is_not_decoded_again() -> None:
    [piece] = slices([MB], records=[7])
    again = piece.file.runs[0]._replace(repeats=True)
    assert piece.records() == 7
    assert piece._replace(file=piece.file._replace(runs=(again, *piece.file.runs))).records() == 7


@pytest.mark.parametrize(
    ("count", "parallelism", "expected"),
    [(1, 2, 1), (2, 2, 2), (14, 2, 2), (14, 8, 8), (31, 2, 2), (33, 2, 4), (250, 2, 16)],
)
def test_a_task_for_each_core_or_several_times_as_many(count: int, parallelism: int, expected: int) -> None:
    made = tasks(slices([4 * MB] * count, per_file=count), parallelism)
    assert len(made) == expected
    assert max(len(places(list(task))) for task in made) <= -(-count // expected) + 1


def test_little_is_one_task() -> None:
    assert len(tasks(slices([1000] * 50), 8)) == 1


def test_each_file_is_opened_once() -> None:
    [task] = tasks(slices([1000] * 10), 1)
    assert [(piece.file.path, len(piece.file.runs)) for piece in task] == [("file0", 5), ("file1", 5)]


def test_what_was_found_stays_with_its_slice() -> None:
    some = slices([1000] * 4, found=True)
    [task] = tasks(some, 1)
    assert list(task) == some


def test_nothing_is_no_task() -> None:
    assert ingest.packed([], 4) == []


@pytest.mark.parametrize(("size", "expected"), [(100, MB), (40 << 30, 10 * MB), (1 << 40, 64 * MB)])
def test_a_log_is_cut_finely_and_a_huge_one_into_some_thousand_slices(size: int, expected: int, tmp_path: Path) -> None:
    with open(tmp_path / f"{0:020}.log", "wb") as file:
        file.truncate(size)  # no room is taken
    listing = scan(str(tmp_path))
    assert planning.piece_bytes_of([LogCopy(str(tmp_path), listing, CopyOrigin("a", 1))]) == expected
