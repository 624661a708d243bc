"""``csv`` and ``tsv``: golden outputs, round trips, formulas."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.engine.result import Branch, Column, Nothing, Row, Rows, Text, Tree, Value
from tests.render import samples
from tests.render.samples import printed


def test_text() -> None:
    assert printed(samples.text(), "csv") == 'text\n"/image\ntwo"\n'
    assert printed(samples.text(), "tsv") == "text\n/image\\ntwo\n"


def test_value() -> None:
    assert printed(samples.scalar(), "csv") == "path,type,value\n/image/features/metadataVersion,feature,4.3-IV0\n"
    isr = Value("/p", "partition", {"isr": [1]})
    assert printed(isr, "csv") == 'path,type,value\n/p,partition,"{""isr"":[1]}"\n'
    assert printed(isr, "tsv") == 'path\ttype\tvalue\n/p\tpartition\t{"isr":[1]}\n'


def test_rows() -> None:
    assert printed(samples.rows(), "csv") == ('name,partitions,replicas,topicId\norders,12,"[1,2]",a\n"a,b",3,[],\n')
    assert printed(samples.rows(), "tsv", header=False) == "orders\t12\t[1,2]\ta\na,b\t3\t[]\t\n"


def test_scalars() -> None:
    row: Row = {"a": None, "b": "", "c": True, "d": 50.0, "e": 2**63, "f": "x\ty"}
    result = Rows(tuple(Column(name) for name in row), [row])
    assert printed(result, "csv", header=False) == ',"",true,50.0,9223372036854775808,"x\ty"\n'
    assert printed(result, "tsv", header=False) == "\t\ttrue\t50.0\t9223372036854775808\tx\\ty\n"
    assert printed(Rows((Column("a"),), [{"a": None}]), "csv") == 'a\n""\n'


def test_groups_are_a_column() -> None:
    grouped = Rows((Column("name"),), [{"name": "a", "directory": "/x"}], group="directory")
    assert printed(grouped, "csv") == "directory,name\n/x,a\n"


def test_tree() -> None:
    assert printed(samples.tree(), "csv") == (
        'path,value\n/image/topics/orders/0,"{""leader"":1,""isr"":[1,2]}"\n/image/n,7\n/image/…,2\n'
    )
    assert printed(samples.tree(values=False), "tsv") == "path\n/image/topics/orders/0\n/image/n\n/image/…\n"
    several = Tree(Branch("", children=[Branch("/", children=[Branch("a", 1)]), Branch("/b", 2)]), values=True)
    assert printed(several, "csv") == "path,value\n/a,1\n/b,2\n"


def test_report() -> None:
    assert printed(samples.report(), "csv") == (
        'section,key,value\n"",clusterId,abc\n"",nodeId,1\nlog,startOffset,0\nlog,epochs,"[1,2]"\n'
        "voters,0.id,1\nvoters,0.lag,0\nvoters,1.id,20\nvoters,1.lag,\n"
    )
    assert printed(samples.report(), "tsv").splitlines()[3] == "log\tstartOffset\t0"


def test_nothing() -> None:
    assert printed(Nothing(), "csv") == printed(Nothing(), "tsv") == ""


@pytest.mark.parametrize(
    "formula", ["=1+1", "+cmd()", "-x", "@SUM(A1)", "\t=1", "=HYPERLINK(1)", "\uff1dcmd()", "\r=1"]
)
def test_formulas_get_a_quote_in_csv(formula: str) -> None:
    [[shown]] = csv.reader([printed(Value("", "", formula), "csv", header=False).split(",", 2)[2]])
    assert shown.startswith("'")


@pytest.mark.parametrize("number", ["-1", "+1.5", "-.5e-7", "-1."])
def test_numbers_are_no_formulas(number: str) -> None:
    assert printed(Value("/p", "config", number), "csv", header=False) == f"/p,config,{number}\n"


def test_tsv_has_no_guard() -> None:
    assert printed(Value("/p", "config", "=1"), "tsv", header=False) == "/p\tconfig\t=1\n"


HARMLESS = st.text(
    st.characters(blacklist_categories=("Cc", "Cf", "Cs", "Zl", "Zp")) | st.sampled_from('\n\t",;|\\')
).filter(lambda text: not text.startswith(tuple("=+-@\t\n\uff1d\uff0b\uff0d\uff20")))
CELLS = st.none() | st.booleans() | st.integers() | HARMLESS | st.lists(st.integers() | HARMLESS, max_size=3)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=5))
def test_csv_comes_back(rows: list[tuple[Any, Any]]) -> None:
    result = Rows((Column("a"), Column("b")), [{"a": a, "b": b} for a, b in rows])
    found = list(csv.reader(io.StringIO(printed(result, "csv"), newline="")))
    assert found == [["a", "b"], *([_field(a), _field(b)] for a, b in rows)]


def _field(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_tsv_is_one_line_a_row(rows: list[tuple[str, str]]) -> None:
    result = Rows((Column("a"), Column("b")), [{"a": a, "b": b} for a, b in rows])
    lines = printed(result, "tsv", header=False).split("\n")[:-1]
    assert len(lines) == len(rows)
    assert all(line.count("\t") == 1 for line in lines)


def test_tsv_is_unambiguous() -> None:
    assert printed(Text("\\n"), "tsv", header=False) == "\\\\n\n"
    assert printed(Text("\n"), "tsv", header=False) == "\\n\n"
