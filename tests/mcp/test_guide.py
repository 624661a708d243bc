"""docs/mcp.md: its calls are made, and its abridged answers are parts of the real ones."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.mcp.asking import ROOT, asked, demo

PAGE = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
SESSION = re.findall(r"\*\*(\d+)\. (.*)\*\*\n\n```json\n(.*)\n```\n\n```json\n((?:.|\n)*?)\n```\n", PAGE)
MORE = "…"


def is_part(abridged: Any, real: Any) -> bool:
    """Whether it is the real value but for what ``…`` stands for, and keys that are not shown."""
    if isinstance(abridged, dict):
        return isinstance(real, dict) and all(
            key in real and is_part(item, real[key]) for key, item in abridged.items()
        )
    if isinstance(abridged, list):
        whole = not abridged or abridged[-1] != MORE
        shown = abridged if whole else abridged[:-1]
        same = isinstance(real, list) and (len(shown) == len(real) if whole else len(shown) < len(real))
        return same and all(map(is_part, shown, real))
    if isinstance(abridged, str) and abridged.endswith(MORE):
        return isinstance(real, str) and real.startswith(abridged[:-1])
    return bool(abridged == real)


def test_there_are_twelve_questions_to_twelve_tools() -> None:
    assert [int(number) for number, *_ in SESSION] == list(range(1, 13))
    assert len({json.loads(call)["tool"] for _, _, call, _ in SESSION}) == 12


@pytest.mark.parametrize(
    ("question", "call", "answer"), [(q, c, a) for _, q, c, a in SESSION], ids=lambda text: text[:40]
)
def test_the_page_says_what_the_tools_answer(question: str, call: str, answer: str) -> None:
    called = json.loads(call)
    assert is_part(json.loads(answer), asked(demo(), called["tool"], **called["arguments"]))


def test_an_abridged_answer_may_not_differ() -> None:
    assert is_part({"a": [1, MORE]}, {"a": [1, 2], "b": 3})
    for wrong in ({"a": [1]}, {"a": [2, MORE]}, {"a": [1, 2, MORE]}, {"c": 1}, {"b": 4}):
        assert not is_part(wrong, {"a": [1, 2], "b": 3})
