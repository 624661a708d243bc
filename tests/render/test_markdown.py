"""``markdown``: golden outputs, and a real Markdown parser that finds nothing in hostile names."""

from __future__ import annotations

from kshell.engine.result import Branch, Column, Nothing, Rows, Text, Tree, Value
from tests.render import samples
from tests.render.samples import printed


def test_text() -> None:
    assert printed(samples.text(), "markdown") == "```\n/image\ntwo\n```\n"
    assert printed(Text("a ```` b"), "markdown") == "`````\na ```` b\n`````\n"
    assert printed(Text("# ls\n\n`x`\n", markdown=True), "markdown") == "# ls\n\n`x`\n"


def test_value() -> None:
    assert printed(samples.scalar(), "markdown") == (
        "| path | value |\n| --- | --- |\n| /image/features/metadataVersion | 4.3-IV0 |\n"
    )
    assert printed(Value("/p", "partition", {"isr": [1, 2], "leader": None}), "markdown") == (
        "| key | value |\n| --- | --- |\n| isr | 1, 2 |\n| leader | - |\n"
    )


def test_rows() -> None:
    assert printed(samples.rows(), "markdown") == (
        "| name | partitions | replicas | topicId |\n| --- | --- | --- | --- |\n"
        "| orders | 12 | 1, 2 | a |\n| a,b | 3 | \\[\\] | - |\n"
    )
    assert printed(samples.rows(), "markdown", header=False).startswith("|  |  |  |  |\n| --- |")


def test_tree() -> None:
    assert printed(samples.tree(), "markdown") == (
        "- /image\n  - topics\n    - orders\n      - 0\n"
        "        - leader: 1\n        - isr: 1, 2\n  - n: 7\n  - … 2 more\n"
    )


def test_report() -> None:
    assert printed(samples.report(), "markdown") == (
        "| key | value |\n| --- | --- |\n| clusterId | abc |\n| nodeId | 1 |\n"
        "\n## Log\n\n| key | value |\n| --- | --- |\n| startOffset | 0 |\n| epochs | 1, 2 |\n"
        "\n## Voters\n\n| id | lag |\n| --- | --- |\n| 1 | 0 |\n| 20 | - |\n"
    )


def test_a_limit_is_told() -> None:
    assert printed(samples.rows(), "markdown", limit=1).endswith(
        "| orders | 12 | 1, 2 | a |\n\n1 of 2 rows; .df has them all\n"
    )
    shown = printed(samples.tree(), "markdown", limit=3)
    assert shown == (
        "- /image\n  - topics\n    - … 1 more\n  - n: 7\n  - … 2 more\n"
        "\n3 of 5 nodes; .df has the value of every leaf\n"
    )
    many = Tree(Branch("", children=[Branch("a"), Branch("b"), Branch("c")]))
    assert printed(many, "markdown", limit=2).startswith("- a\n- b\n- … 1 more\n")


def test_without_a_limit_nothing_is_told() -> None:
    assert printed(Rows((Column("a"),), []), "markdown") == "| a |\n| --- |\n"


def test_nothing() -> None:
    assert printed(Nothing(), "markdown") == ""


def test_escapes() -> None:
    cell = printed(Value("/p", "config", "a|b `c` *d* _e_ <i> & [f](g) \\ ~h~\n"), "markdown").splitlines()[2]
    assert cell == "| /p | a\\|b \\`c\\` \\*d\\* \\_e\\_ &lt;i&gt; &amp; \\[f\\](g) \\\\ \\~h\\~\\\\n |"
