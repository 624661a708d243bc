"""``yaml``: golden outputs; every value comes back as it was."""

from __future__ import annotations

from typing import Any

import yaml
from hypothesis import example, given

from kshell.engine.result import Column, Nothing, Rows, Text, Value
from tests.render import samples
from tests.render.samples import invisible, printed
from tests.render.test_json_format import PLAIN


def test_text() -> None:
    assert printed(Text("/image"), "yaml") == "/image\n"
    assert printed(samples.text(), "yaml") == '"/image\\ntwo"\n'


def test_value() -> None:
    assert printed(samples.scalar(), "yaml") == "4.3-IV0\n"
    assert printed(samples.value(), "yaml") == (
        "replicas:\n  - 1\n  - 2\n  - 3\nisr: []\nleader: 1\n"
        "leaderRecoveryState: RECOVERED\nfenced: false\nrack: null\n"
    )


def test_rows() -> None:
    assert printed(samples.rows(), "yaml") == (
        "- name: orders\n  partitions: 12\n  replicas:\n    - 1\n    - 2\n  topicId: a\n"
        "- name: a,b\n  partitions: 3\n  replicas: []\n  topicId: null\n"
    )
    assert printed(samples.rows(bare="name"), "yaml") == "- orders\n- a,b\n"
    assert printed(Rows((Column("a"),), []), "yaml") == "[]\n"
    many = Rows((Column("a"),), [{"a": n} for n in range(250)])
    assert yaml.safe_load(printed(many, "yaml")) == [{"a": n} for n in range(250)]


def test_tree() -> None:
    assert printed(samples.tree(), "yaml") == (
        "topics:\n  orders:\n    '0':\n      leader: 1\n      isr:\n        - 1\n        - 2\nn: 7\n…: 2\n"
    )


def test_report() -> None:
    assert printed(samples.report(), "yaml") == (
        "clusterId: abc\nnodeId: 1\nlog:\n  startOffset: 0\n  epochs:\n    - 1\n    - 2\n"
        "voters:\n  - id: 1\n    lag: 0\n  - id: 20\n    lag: null\n"
    )


def test_nothing() -> None:
    assert printed(Nothing(), "yaml") == ""


def test_words_that_yaml_takes_for_something_else() -> None:
    words = [
        "yes",
        "null",
        "~",
        "=",
        "<<",
        "1:30",
        "0o7",
        "1e3",
        "2026-11-21",
        "*a",
        "&a",
        "!a",
        "- a",
        "a: b",
        "# a",
        "...",
    ]
    for word in words:
        assert yaml.safe_load(printed(Value("/x", "config", word), "yaml")) == word


def test_shared_objects_are_written_twice() -> None:
    shared = [1]
    assert printed(Value("/x", "config", {"a": shared, "b": shared}), "yaml") == "a:\n  - 1\nb:\n  - 1\n"


def test_colours() -> None:
    colored = printed(samples.rows(), "yaml", color=True)
    assert "\x1b[" in colored
    assert samples.ANSI.sub("", colored) == printed(samples.rows(), "yaml")


@given(PLAIN)
@example({"a": samples.HOSTILE, samples.HOSTILE: [samples.HOSTILE]})
@example("...\n")
def test_exact(value: Any) -> None:
    text = printed(Value("/x", "config", value), "yaml")
    assert yaml.safe_load(text) == value
    assert not invisible(text)
