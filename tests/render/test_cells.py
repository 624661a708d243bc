"""How wide texts are on a terminal, and texts cut to a width."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kshell.render.cells import ELLIPSIS, cells, clip


def test_marks_take_no_column_and_wide_characters_two() -> None:
    assert [cells(text) for text in ("", "abc", "e\u0301" * 3, "机器", "a机")] == [0, 3, 3, 4, 3]


def test_a_text_is_cut_where_its_columns_end() -> None:
    assert clip("abcdef", 6) == "abcdef"
    assert clip("abcdefg", 6) == "abcde…"
    assert clip("e\u0301" * 30, 20) == "e\u0301" * 19 + ELLIPSIS
    assert clip("机" * 20, 10) == "机" * 4 + ELLIPSIS
    assert clip("abc", 1) == clip("abc", 0) == ELLIPSIS


@given(st.text("ab机器\u0301é", max_size=40), st.integers(1, 30))
def test_what_was_cut_fits_and_one_character_more_would_not(text: str, width: int) -> None:
    cut = clip(text, width)
    if cut == text:
        assert cells(text) <= width
        return
    kept = cut.removesuffix(ELLIPSIS)
    assert text.startswith(kept) and cells(kept) <= width - 1 < cells(text[: len(kept) + 1])
