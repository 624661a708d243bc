"""One result of every kind, plain and hostile, for the tests of every format."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from kshell.engine.result import Branch, Column, Nothing, Report, Result, Row, Rows, Section, Text, Tree, Value
from kshell.render import render

ANSI = re.compile(r"\x1b\[[0-9;]*m")

PARTITION = {
    "replicas": [1, 2, 3],
    "isr": [],
    "leader": 1,
    "leaderRecoveryState": "RECOVERED",
    "fenced": False,
    "rack": None,
}

HOSTILE = (
    "e\x1b[31m\n\r\t\x07\x7f\x9b\u202e\u2028\u200b\ufeff<script>x</script>|\"'`*_[a](b)\\ \ud800 =cmd() \U000e0041 é 日"
)
"""A name that holds what a terminal, a page, a table or a spreadsheet could act on, and some that is harmless."""


def text() -> Text:
    return Text("/image\ntwo")


def scalar() -> Value:
    return Value("/image/features/metadataVersion", "feature", "4.3-IV0")


def value() -> Value:
    return Value("/image/topics/byName/orders/0", "partition", PARTITION)


def rows(**options: Any) -> Rows:
    columns = (Column("name"), Column("partitions"), Column("replicas"), Column("topicId", wide=True))
    found: list[Row] = [
        {"name": "orders", "partitions": 12, "replicas": [1, 2], "topicId": "a", "type": "directory", "more": 1},
        {"name": "a,b", "partitions": 3, "replicas": [], "topicId": None},
    ]
    return Rows(columns, found, **options)


def tree(*, values: bool = True) -> Tree:
    below = [Branch("orders", children=[Branch("0", {"leader": 1, "isr": [1, 2]} if values else None)])]
    root = Branch("/image", children=[Branch("topics", children=below), Branch("n", 7 if values else None)], left_out=2)
    return Tree(root, values=values)


def report() -> Report:
    listed = Rows((Column("id"), Column("lag")), [{"id": 1, "lag": 0}, {"id": 20, "lag": None}])
    return Report(
        [
            Section("", "", {"clusterId": "abc", "nodeId": 1}),
            Section("log", "Log", {"startOffset": 0, "epochs": [1, 2]}),
            Section("voters", "Voters", listed),
        ]
    )


def hostile() -> list[Result]:
    """Every kind, with :data:`HOSTILE` in every place where a cluster's names and values stand."""
    return list(_hostile(HOSTILE))


def _hostile(name: str) -> Iterator[Result]:
    row = {"name": name, "value": {name: [name, {name: name}]}, "group": name, "path": name, "type": "directory"}
    columns = (Column("name"), Column("value"))
    yield Text(name)
    yield Text(f"# {name}\n\n{name}\n\n- {name}\n\n```\n{name}\n```\n\n| a |\n| --- |\n| {name} |\n", markdown=True)
    yield Value(name, "config", name)
    yield Value(name, "config", {name: name, "list": [name], "objects": [{name: name}, {"a": name}], "o": {name: {}}})
    for style in ("table", "names", "lines", "values"):
        yield Rows(columns, [row, row], style=style, line_column="name", group="group" if style != "values" else None)
    # An alias in ``sql`` is any text, and PIVOT makes names of columns out of values.
    yield Rows((Column(name), Column("value")), [{name: name, "value": name}])
    yield Rows(columns, [row], style="lines", line=lambda row: str(row["name"]), bare="name")
    yield Tree(Branch(name, children=[Branch(name, name), Branch("o", {name: [name]})], left_out=1), values=True)
    yield Tree(Branch(name, children=[Branch(name)]))
    yield Report([Section(name, name, {name: name}), Section("rows", name, Rows(columns, [row]))])
    yield Nothing()


def printed(result: Result, fmt: str, **options: Any) -> str:
    """Everything a format prints, after checks that hold for every chunk."""
    chunks = list(render(result, fmt, **options))
    assert all(chunk.endswith("\n") for chunk in chunks)
    return "".join(chunks)


SIGNS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
"""What encloses numbers: format characters by their category, and visible (Unicode's Prepended_Concatenation_Mark)."""


def invisible(text: str) -> set[str]:
    """The characters of a text that act on a terminal or hide: none may be left but the newlines between lines."""
    return {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n"} - SIGNS
