"""``text`` and ``wide``: golden outputs, widths, colours."""

from __future__ import annotations

import pytest

from kshell.engine.result import Branch, Column, Nothing, Row, Rows, Text, Tree, Value
from kshell.render.cells import cells
from tests.render import samples
from tests.render.samples import printed


def test_text() -> None:
    assert printed(samples.text(), "text") == "/image\ntwo\n"
    assert printed(Text(""), "text") == ""


def test_markdown_on_a_terminal() -> None:
    source = (
        "# ls\n\nLists **what** `ls -l`\nfinds.\n\n"
        "- one [two](https://a.example) three four five\n- two\n\n```\na  *b*\n```\n"
    )
    assert printed(Text(source, markdown=True), "text", width=24) == (
        "ls\n\nLists what `ls -l`\nfinds.\n\n- one two\n  (https://a.example)\n  three four five\n- two\n\n    a  *b*\n"
    )
    colored = printed(Text(source, markdown=True), "text", width=24, color=True)
    assert "\x1b[36mls -l\x1b[0m" in colored
    assert "`" not in colored


def test_markdown_table_on_a_terminal() -> None:
    source = "| flag | help |\n| --- | --- |\n| `-1` | one \\| two |\n"
    assert printed(Text(source, markdown=True), "text") == "flag  help\n`-1`  one | two\n"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a b", "a b\n"),
        ("", "\n"),
        (None, "-\n"),
        (True, "true\n"),
        (50.0, "50.0\n"),
        (2**63 - 1, "9223372036854775807\n"),
        ([1, 2], "1, 2\n"),
        ([], "[]\n"),
        ({}, "{}\n"),
    ],
)
def test_scalar_values(value: object, expected: str) -> None:
    assert printed(Value("/x", "config", value), "text") == expected


def test_object() -> None:
    assert printed(samples.value(), "text") == (
        "replicas             1, 2, 3\n"
        "isr                  []\n"
        "leader               1\n"
        "leaderRecoveryState  RECOVERED\n"
        "fenced               false\n"
        "rack                 -\n"
    )


def test_nested_object() -> None:
    broker = {
        "id": 1,
        "listeners": [{"name": "PLAINTEXT", "port": 9092}, {"name": "SSL", "port": 19093}],
        "supportedFeatures": {"metadata.version": {"min": 7, "max": 29}, "kraft.version": {"min": 0, "max": 1}},
        "odd": [[1], "two"],
    }
    assert printed(Value("/x", "broker", broker), "text") == (
        "id  1\n"
        "listeners\n"
        "  name        port\n"
        "  PLAINTEXT   9092\n"
        "  SSL        19093\n"
        "supportedFeatures\n"
        "  metadata.version  min=7, max=29\n"
        "  kraft.version     min=0, max=1\n"
        "odd\n"
        "  1\n"
        "  two\n"
    )


def test_table() -> None:
    assert printed(samples.rows(), "text") == (
        "name    partitions  replicas\norders          12  1,2\na,b              3  []\n"
    )
    assert printed(samples.rows(), "text", header=False).splitlines()[0] == "orders          12  1,2"
    assert printed(samples.rows(), "wide", width=10) == (
        "name    partitions  replicas  topicId\norders          12  1,2       a\na,b              3  []        -\n"
    )


def test_empty_table_is_its_header() -> None:
    assert printed(Rows((Column("a"), Column("b")), []), "text") == "a  b\n"


def test_table_in_groups() -> None:
    rows: list[Row] = [{"a": 1, "g": ""}, {"a": 2, "g": "/x"}, {"a": "z", "g": "/x"}, {"a": 3, "g": "/y"}]
    result = Rows((Column("a"),), rows, group="g")
    assert printed(result, "text") == "a\n1\n\n/x:\na\n2\nz\n\n/y:\na\n3\n"


def names(*found: str, **options: object) -> Rows:
    rows: list[Row] = [{"name": n.rstrip("/"), "type": "directory" if n.endswith("/") else ""} for n in found]
    return Rows((Column("name"), Column("type", wide=True)), rows, style="names", **options)  # type: ignore[arg-type]


def test_names_in_columns() -> None:
    listed = names("a/", "bbbbbb", "c", "dd/", "e")
    assert printed(listed, "text", width=14) == "a/      c    e\nbbbbbb  dd/\n"
    assert printed(listed, "text", width=80) == "a/  bbbbbb  c  dd/  e\n"
    assert printed(listed, "text", width=3) == "a/\nbbbbbb\nc\ndd/\ne\n"
    assert printed(names(), "text") == ""


def test_names_one_a_line() -> None:
    assert printed(names("a/", "b", one_per_line=True), "text", width=80) == "a/\nb\n"
    assert printed(names("a/", "b"), "text", width=None) == "a\nb\n"
    assert printed(names("a/", "b"), "text", width=80, color=True) == "\x1b[1;34ma\x1b[0m/  b\n"


def test_names_wide() -> None:
    assert printed(names("a/", "b"), "wide") == 'name  type\na     directory\nb     ""\n'


def test_names_in_groups() -> None:
    rows: list[Row] = [{"name": "/leaf", "d": ""}, {"name": "a", "d": "/x"}, {"name": "b", "d": "/y"}]
    result = Rows((Column("name"),), rows, style="names", group="d")
    assert printed(result, "text") == "/leaf\n\n/x:\na\n\n/y:\nb\n"


def test_lines() -> None:
    rows: list[Row] = [{"path": "/a", "value": 1}, {"path": "/b\n", "value": 2}]
    columns = (Column("path"), Column("value"))
    assert printed(Rows(columns, rows, style="lines", line_column="path"), "text") == "/a\n/b\\n\n"
    made = Rows(columns, rows, style="lines", line=lambda row: f"{row['path']}: {row['value']}")
    assert printed(made, "text") == "/a: 1\n/b\\n: 2\n"
    assert printed(made, "wide") == "path  value\n/a        1\n/b\\n      2\n"


def test_values() -> None:
    rows: list[Row] = [{"path": "/a", "value": "x"}, {"path": "/b", "value": {"k": 1, "long": None}}]
    columns = (Column("path"), Column("value"))
    assert printed(Rows(columns, rows, style="values"), "text") == "/a:\nx\n\n/b:\nk     1\nlong  -\n"


def test_tree() -> None:
    assert printed(samples.tree(), "text") == (
        "/image\n"
        "├── topics\n"
        "│   └── orders\n"
        "│       └── 0\n"
        "│           leader  1\n"
        "│           isr     1, 2\n"
        "├── n  7\n"
        "└── … 2 more\n"
    )
    assert printed(samples.tree(values=False), "text") == (
        "/image\n├── topics\n│   └── orders\n│       └── 0\n├── n\n└── … 2 more\n"
    )


def test_several_trees() -> None:
    several = Tree(Branch("", children=[Branch("/a", children=[Branch("x")]), Branch("/b")]))
    assert printed(several, "text") == "/a\n└── x\n/b\n"


def test_report() -> None:
    assert printed(samples.report(), "text") == (
        "clusterId  abc\nnodeId     1\n"
        "\nLog\n  startOffset  0\n  epochs       1, 2\n"
        "\nVoters\n  id  lag\n   1    0\n  20    -\n"
    )


def test_nothing() -> None:
    assert printed(Nothing(), "text") == ""


# --- width -----------------------------------------------------------------------------------------------------------


def wide_rows() -> Rows:
    columns = tuple(Column(name) for name in ("topicId", "name", "replicas", "size", "time", "text"))
    row = {
        "topicId": "p4pgdZ5kB_p9_4GR0vKAlw",
        "name": "a-name-of-some-length-and-more",
        "replicas": list(range(10)),
        "size": 123456789,
        "time": "2026-11-21T15:11:22.506Z",
        "text": "words " * 20,
    }
    return Rows(columns, [row])


def test_only_the_widest_words_are_cut() -> None:
    lines = printed(wide_rows(), "text", width=120).splitlines()
    assert max(map(len, lines)) <= 120
    assert all(whole in lines[1] for whole in ("p4pgdZ5kB_p9_4GR0vKAlw", "0,1,2,3,4,5,6,7,8,9", "123456789", "506Z"))
    # The two columns of words share what is left, to the same width.
    assert [len(word) for word in lines[1].split("  ") if word.endswith("…")] == [18, 18]


def test_what_a_row_is_about_is_cut_last_and_keeps_its_end() -> None:
    rows: list[Row] = [{"name": "a-name-of-twenty-one", "words": "x" * 40}]
    shown = Rows((Column("name"), Column("words")), rows)
    assert printed(shown, "text", width=40).splitlines()[1] == "a-name-of-twenty-one  " + "x" * 17 + "…"
    assert printed(shown, "text", width=35).splitlines()[1] == "a-name-of-twenty-one  " + "x" * 12 + "…"
    left_out = "1 row, 1 of 2 columns: -o wide shows all"
    assert printed(shown, "text", width=29).splitlines() == ["name", "a-name-of-twenty-one", left_out]
    assert printed(shown, "text", width=19).splitlines()[1:] == [
        "a-name-of…wenty-one",
        "1 row, 1 of 2 columns, values cut: -o wide shows all",
    ]


def test_the_first_name_stays_whole_while_columns_that_can_be_spared_can_go() -> None:
    rows: list[Row] = [
        {"topic": "a-topic-whose-name-has-40-characters-123", "id": "x" * 22, "leader": 1, "state": "under-replicated"}
    ]
    columns = (Column("topic", spare=-1), Column("id", spare=1), Column("leader"), Column("state", spare=-1))
    lines = {width: printed(Rows(columns, rows), "text", width=width).splitlines() for width in (90, 66, 60, 50)}
    assert lines[90][0].split() == ["topic", "id", "leader", "state"]
    assert lines[66][1] == "a-topic-whose-name-has-40-characters-123       1  under-replicated"
    assert lines[66][-1] == "1 row, 3 of 4 columns: -o wide shows all"
    # Nothing else can be spared: a table of names alone would answer nothing.
    for width in (60, 50):
        assert lines[width][0].split() == ["topic", "leader", "state"]
    assert lines[50][1] == "a-topic-whos…racters-123       1  under-replicated"


def test_a_wider_terminal_never_shows_fewer_columns() -> None:
    rows: list[Row] = [{"name": "n" * length, "partitions": 3, "offline": 0, "a": 1} for length in (4, 30, 60)]
    columns = (Column("name", spare=-1), Column("partitions", spare=1), Column("offline"), Column("a", spare=2))
    shown = [len(printed(Rows(columns, rows), "text", width=width).splitlines()[0].split()) for width in range(20, 120)]
    assert shown == sorted(shown)


def test_nothing_is_cut_without_a_terminal() -> None:
    assert "…" not in printed(wide_rows(), "text", width=None)
    assert "…" not in printed(wide_rows(), "wide", width=40)


def test_what_cannot_be_cut_overflows() -> None:
    assert "p4pgdZ5kB_p9_4GR0vKAlw" in printed(wide_rows(), "text", width=20)


def test_rows_after_the_first_thousand_fit_as_well() -> None:
    rows: list[Row] = [*[{"name": "x" * 50, "n": 1}] * 1000, {"name": "y" * 500, "n": 2}]
    *_, last, footer = printed(Rows((Column("name"), Column("n")), rows), "text", width=40).splitlines()
    assert last == "y" * 18 + "…" + "y" * 18 + "  2"
    assert footer == "1,001 rows, values cut: -o wide shows all"


def test_wide_characters_count_twice() -> None:
    rows: list[Row] = [{"a": "日本", "b": "x"}, {"a": "e\u0301", "b": "y"}]
    assert printed(Rows((Column("a"), Column("b")), rows), "text") == "a     b\n日本  x\ne\u0301     y\n"
    assert cells("日本e\u0301") == 5


# --- colours ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "result", [samples.value(), samples.rows(), samples.tree(), samples.report()], ids=lambda r: type(r).__name__
)
def test_colours_change_nothing_else(result: object) -> None:
    plain = printed(result, "text")  # type: ignore[arg-type]
    colored = printed(result, "text", color=True)  # type: ignore[arg-type]
    assert "\x1b[" in colored
    assert samples.ANSI.sub("", colored) == plain


def test_what_one_object_holds_is_never_cut() -> None:
    broker = {"listeners": [{"host": "a-host-name-of-some-length", "name": "an-even-longer-name-of-a-listener"}]}
    assert "…" not in printed(Value("/x", "broker", broker), "text", width=20)
