"""``json`` and ``jsonl``: golden outputs; every value comes back as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.engine.result import Branch, Column, Nothing, Rows, Text, Tree, Value
from tests.render import samples
from tests.render.samples import invisible, printed

# JSON cannot tell a pair of lone surrogates from the character that they encode: only one half is drawn.
TEXTS = st.text(
    st.characters(max_codepoint=0x10FFFF, blacklist_categories=()).filter(lambda c: not "\udc00" <= c <= "\udfff")
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(TEXTS, below, max_size=4),
    max_leaves=12,
)


def test_text() -> None:
    assert printed(samples.text(), "json") == '"/image\\ntwo"\n'
    assert printed(samples.text(), "jsonl") == '"/image\\ntwo"\n'


def test_value() -> None:
    assert printed(samples.scalar(), "json") == '"4.3-IV0"\n'
    assert printed(Value("/x", "quota", 50.0), "json") == "50.0\n"
    assert printed(Value("/x", "partition", {"isr": [], "leader": None}), "json") == (
        '{\n  "isr": [],\n  "leader": null\n}\n'
    )
    assert printed(samples.value(), "jsonl") == (
        '{"replicas":[1,2,3],"isr":[],"leader":1,"leaderRecoveryState":"RECOVERED","fenced":false,"rack":null}\n'
    )


def test_rows() -> None:
    one = {"name": "orders", "partitions": 12, "replicas": [1, 2], "topicId": "a"}
    two = {"name": "a,b", "partitions": 3, "replicas": [], "topicId": None}
    assert printed(samples.rows(), "json") == json.dumps([one, two], indent=2) + "\n"
    assert printed(samples.rows(), "jsonl") == "".join(
        json.dumps(row, separators=(",", ":")) + "\n" for row in (one, two)
    )


def test_no_rows() -> None:
    assert printed(Rows((Column("a"),), []), "json") == "[]\n"
    assert printed(Rows((Column("a"),), []), "jsonl") == ""


def test_bare_rows() -> None:
    assert printed(samples.rows(bare="name"), "json") == '[\n  "orders",\n  "a,b"\n]\n'
    assert printed(samples.rows(bare="name"), "jsonl") == '"orders"\n"a,b"\n'


def test_groups_are_a_column() -> None:
    grouped = Rows((Column("name"),), [{"name": "a", "directory": "/x"}], group="directory")
    assert printed(grouped, "jsonl") == '{"directory":"/x","name":"a"}\n'


def test_tree() -> None:
    expected = {"topics": {"orders": {"0": {"leader": 1, "isr": [1, 2]}}}, "n": 7, "…": 2}
    assert printed(samples.tree(), "json") == json.dumps(expected, indent=2, ensure_ascii=False) + "\n"
    assert json.loads(printed(samples.tree(), "jsonl")) == expected
    assert printed(Tree(Branch("/x", 7), values=True), "json") == "7\n"


def test_report() -> None:
    expected = {
        "clusterId": "abc",
        "nodeId": 1,
        "log": {"startOffset": 0, "epochs": [1, 2]},
        "voters": [{"id": 1, "lag": 0}, {"id": 20, "lag": None}],
    }
    assert printed(samples.report(), "json") == json.dumps(expected, indent=2) + "\n"
    assert printed(samples.report(), "jsonl") == json.dumps(expected, separators=(",", ":")) + "\n"


def test_nothing() -> None:
    assert printed(Nothing(), "json") == printed(Nothing(), "jsonl") == ""


def test_numbers_that_json_does_not_know() -> None:
    value = {"a": float("nan"), "b": [float("inf")], "c": -float("inf")}
    assert printed(Value("/x", "quota", value), "jsonl") == '{"a":"NaN","b":["Infinity"],"c":"-Infinity"}\n'


def test_colours() -> None:
    colored = printed(samples.rows(), "json", color=True)
    assert "\x1b[" in colored
    assert samples.ANSI.sub("", colored) == printed(samples.rows(), "json")


@given(PLAIN)
@pytest.mark.parametrize("fmt", ["json", "jsonl"])
def test_exact(fmt: str, value: Any) -> None:
    text = printed(Value("/x", "config", value), fmt)
    assert json.loads(text) == value
    assert not invisible(text)
    if fmt == "jsonl":
        assert text.count("\n") == 1


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b"]), PLAIN, min_size=2), max_size=4))
def test_rows_exact(rows: list[dict[str, Any]]) -> None:
    result = Rows((Column("a"), Column("b")), rows)
    assert json.loads(printed(result, "json")) == rows
    assert [json.loads(line) for line in printed(result, "jsonl").splitlines()] == rows


def test_text_is_one_string() -> None:
    assert json.loads(printed(Text(samples.HOSTILE), "json")) == samples.HOSTILE
