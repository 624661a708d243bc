"""Trees on pages."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kshell.engine.result import Branch, Tree
from tests.render import samples
from tests.render.page import Element, page_of
from tests.render.test_html_table import names, values


def names_of(page: Element) -> list[str]:
    """Summaries, those that are open with a ``v``."""
    return [("v " if "open" in one.attrs else "> ") + one.find("summary")[0].text for one in page.find("details")]


def test_a_small_tree_is_open_but_for_its_objects() -> None:
    page = page_of(samples.tree())
    assert names_of(page) == ["v /image (4)", "v topics (1)", "v orders (1)", "> 0 leader 1 · isr 1, 2"]
    assert page.rows() == [["leader", "1"], ["isr", "1, 2"]]
    assert "n: 7" in [div.text for div in page.find("div")]
    assert page.find("code")[0].text == "7"
    assert page.text.endswith("… 2 more")


def test_names_alone() -> None:
    page = page_of(samples.tree(values=False))
    assert names_of(page) == ["v /image (4)", "v topics (1)", "v orders (1)"]
    assert page.find("code") == []


def many(topics: int, partitions: int) -> Tree:
    below = [Branch(f"t{n}", children=[Branch(str(p)) for p in range(partitions)]) for n in range(topics)]
    return Tree(Branch("/image", children=[Branch("topics", children=below)]))


def test_the_deeper_levels_of_a_large_tree_are_closed() -> None:
    states = [name[0] for name in names_of(page_of(many(20, 3)))]
    assert states == ["v", "v", *(">" * 20)]
    assert [name[0] for name in names_of(page_of(many(50, 1)))][:3] == ["v", ">", ">"]


def test_a_limit_leaves_nodes_out_and_says_so() -> None:
    page = page_of(many(4000, 12), limit=100)
    assert page.text.endswith("100 of 52,002 nodes; .df has the value of every leaf")
    assert names_of(page)[:3] == ["v /image (1)", "v topics (4,000)", "> t0 (12)"]
    assert "more" in page.find("details")[2].text


def test_an_empty_directory_is_closed() -> None:
    assert names_of(page_of(Tree(Branch("a", children=[])))) == ["> a (0)"]
    assert names_of(page_of(Tree(Branch("a", children=[], left_out=3)))) == ["> a (3)"]


def test_several_trees() -> None:
    page = page_of(Tree(Branch("", children=[Branch("/a", 1), Branch("/b", 2), Branch("/c", 3)]), values=True), limit=2)
    assert [div.text for div in page.find("div")][:3] == ["/a: 1", "/b: 2", "… 1 more"]


branches = st.recursive(
    st.builds(Branch, names, values, st.none(), st.just(0)),
    lambda below: st.builds(Branch, names, st.none(), st.lists(below, max_size=4), st.integers(0, 3)),
    max_leaves=12,
)


@given(branches, st.booleans(), st.none() | st.integers(1, 6))
def test_any_tree_is_whole(root: Any, shows: bool, limit: int | None) -> None:
    page_of(Tree(root, values=shows), limit=limit)
