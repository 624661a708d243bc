"""How much of an answer a page shows, and what it says of the rest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.engine.result import Branch, Column, Row, Rows
from kshell.render.limits import LimitedRows, count, cut, shares

COLUMNS = (Column("n"),)


def numbers(count: int) -> list[Row]:
    return [{"n": n} for n in range(count)]


@pytest.mark.parametrize(
    ("rows", "limit", "shown", "note"),
    [
        (Rows(COLUMNS, numbers(4000)), 100, 100, "100 of 4,000 rows; .df has them all"),
        (Rows(COLUMNS, numbers(3), order=()), 2, 2, "2 of 3 rows; .df has them all, --where and --limit choose"),
        (Rows(COLUMNS, numbers(3)), 3, 3, ""),
        (Rows(COLUMNS, numbers(3)), None, 3, ""),
        (Rows(COLUMNS, []), 3, 0, "no rows"),
        (Rows(COLUMNS, iter([])), None, 0, "no rows"),
        (Rows(COLUMNS, iter(numbers(3))), 3, 3, ""),
        (Rows(COLUMNS, iter(numbers(4))), 3, 3, "the first 3 rows; .df has them all"),
    ],
)
def test_rows(rows: Rows, limit: int | None, shown: int, note: str) -> None:
    found = LimitedRows(rows, limit)
    assert (len(list(found)), found.note) == (shown, note)


@pytest.mark.parametrize(("live", "read"), [(False, 3), (True, 2)])
def test_rows_are_not_read_beyond_need(live: bool, read: int) -> None:
    """A live row that is not there yet would be waited for."""
    made = 0

    def rows() -> Iterator[Row]:
        nonlocal made
        while True:
            made += 1
            yield {"n": made}

    shown = LimitedRows(Rows(COLUMNS, rows(), live=live), 2)
    assert len(list(shown)) == 2
    assert made == read
    assert shown.note.startswith("the first 2 rows")


def directory(name: str, *sizes: int) -> Branch:
    """A directory of directories with so many leaves."""
    children = [Branch(f"d{n}", children=[Branch(str(leaf)) for leaf in range(size)]) for n, size in enumerate(sizes)]
    return Branch(name, children=children)


def test_small_branches_stay_whole() -> None:
    (root,), note = cut([directory("/", 1, 500, 2)], 30)
    assert root.children is not None
    small, large, last = root.children
    assert (small.left_out, last.left_out) == (0, 0)
    assert large.children is not None
    assert large.left_out + len(large.children) == 500
    assert count(root) == 30
    assert note == "30 of 507 nodes; .df has the value of every leaf"


def test_without_a_limit_everything() -> None:
    roots = [directory("/", 50)]
    assert cut(roots, None) == (roots, "")
    assert cut(roots, 52) == (roots, "")


def test_roots_are_left_out_as_well() -> None:
    kept, _ = cut([Branch(str(n)) for n in range(9)], 4)
    assert [branch.name for branch in kept] == ["0", "1", "2", "3", ""]
    assert kept[-1].left_out == 5


trees = st.recursive(
    st.builds(Branch, st.text(max_size=3), st.none(), st.none(), st.just(0)),
    lambda below: st.builds(
        Branch, st.text(max_size=3), st.none(), st.lists(below, max_size=12), st.integers(min_value=0, max_value=3)
    ),
    max_leaves=60,
)


@given(trees, st.integers(min_value=1, max_value=40))
def test_a_cut_tree_counts_what_it_lacks(tree: Branch, limit: int) -> None:
    (kept, *_), note = cut([tree], limit)
    assert count(kept) <= max(limit, 1)
    assert bool(note) == (count(tree) > limit)

    def check(whole: Branch, part: Branch) -> None:
        assert (whole.name, whole.value) == (part.name, part.value)
        here, there = whole.children or [], part.children or []
        assert len(there) + part.left_out == len(here) + whole.left_out
        for one, other in zip(here, there, strict=False):
            check(one, other)

    check(tree, kept)


@given(st.lists(st.integers(min_value=1, max_value=1000), min_size=1, max_size=20), st.integers(20, 500))
def test_shares_fit_and_are_used_up(sizes: list[int], room: int) -> None:
    found = shares(sizes, room)
    assert all(1 <= share <= size for share, size in zip(found, sizes, strict=True))
    assert sum(found) == min(room, sum(sizes))
