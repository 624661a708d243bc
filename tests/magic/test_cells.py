"""``%%kafka``: a cell of commands."""

from __future__ import annotations

import json
from pathlib import Path

import IPython
import pytest

from kshell.errors import CommandError, NoSuchPathError, UsageError
from kshell.result import Result
from tests.magic.shell import Cells


def test_each_line_is_shown_in_turn(cells: Cells) -> None:
    cells.run("%%kafka\n# a comment\ncd /image\npwd\n\n   \nls topics   # another\n")
    assert [forms["text/plain"].split() for forms in cells.shown] == [["/image"], ["byId/", "byName/"]]
    cells.run("%kafka pwd")
    assert cells.text() == "/image"


def test_an_empty_cell_does_nothing(cells: Cells) -> None:
    for body in ("\n", "\n# only words\n"):
        cells.run(f"%%kafka\n{body}")
    assert cells.shown == []
    with pytest.raises(IPython.core.error.UsageError, match="cell body is empty"):
        cells.run("%%kafka")


def test_as_of_counts_for_every_line_that_says_none(cells: Cells) -> None:
    cells.run("%%kafka --as-of 160 --into past\ncat /image/topics/byName/legacy-import/0\n")
    assert cells.ip.user_ns["past"].to_dict()["leader"] == 3
    cells.run("%%kafka --as-of 160 --into both\npwd\ncat /image/topics/byName/legacy-import/0 --as-of now\n")
    assert cells.ip.user_ns["both"].parts[1].to_dict()["leader"] == -1
    assert cells.run("%kafka cat /image/topics/byName/legacy-import/0").to_dict()["leader"] == -1


def test_as_of_stands_beside_other_options_of_the_first_line(cells: Cells) -> None:
    for header in ("--as-of 160 -o json", "-o json --as-of=160"):
        cells.run(f"%%kafka {header}\ncat /image/topics/byName/legacy-import/0\n")
        assert cells.shown[-1].keys() == {"text/plain"}
        assert json.loads(cells.text())["leader"] == 3


def test_the_point_of_as_of_stays_between_cells(cells: Cells) -> None:
    cells.run("%kafka as-of 160")
    assert cells.run("%kafka cat /image/topics/byName/legacy-import/0").to_dict()["leader"] == 3
    cells.run("%kafka as-of now")
    assert cells.run("%kafka cat /image/topics/byName/legacy-import/0").to_dict()["leader"] == -1


def test_cd_in_a_cell_of_the_past_stays(cells: Cells) -> None:
    cells.run("%%kafka --as-of 160\ncd /image/topics")
    assert cells.run("%kafka pwd").to_dict() == "/image/topics"


def test_several_answers_are_one_result(cells: Cells) -> None:
    cells.run("%%kafka --into all\npwd\nls /image/topics\n")
    whole = cells.ip.user_ns["all"]
    assert isinstance(whole, Result)
    assert [part.to_dict() for part in whole.parts] == ["/", ["byId", "byName"]]
    assert whole.to_dict() == ["/", ["byId", "byName"]]
    assert cells.shown == []


def test_a_line_goes_on_where_a_quote_is_open(cells: Cells) -> None:
    cells.run('%%kafka --into all\nsql "\nSELECT count(*) AS n\nFROM brokers\n"\npwd\n')
    assert [part.to_dict() for part in cells.ip.user_ns["all"].parts] == [[{"n": 3}], "/"]
    cells.fails('%%kafka\nsql "\nSELECT 1 AS n\n"\nls /nope\n')
    assert "line 4" in cells.printed


def test_a_quote_that_is_never_closed_runs_no_line_after_it(cells: Cells) -> None:
    error = cells.fails("%%kafka --keep-going\npwd\npwd 'a\nb' 'open\nls {{nope}}\npwd\n")
    assert "1 line" in error.message
    assert [forms["text/plain"].split("\n")[0] for forms in cells.shown] == [
        "/",
        "UsageError: line 2: the quote ' is not closed",
    ]
    cells.fails("%%kafka\npwd 'a\nb' 'open\npwd\n")
    assert "line 2: the quote ' is not closed\n  b' 'open\n     ^\n" in cells.printed


def test_quotes_of_an_expression_are_pythons(cells: Cells) -> None:
    cells.ip.user_ns["d"] = {"it's": "/image"}
    cells.run("%%kafka --into all\ncd {{ d['it\\'s'] }}\npwd\nsql \"SELECT\n'{{ d['it\\'s'] }}' AS n\"\n")
    assert [part.to_dict() for part in cells.ip.user_ns["all"].parts][1:] == ["/image", [{"n": "/image"}]]


def test_the_lines_of_a_cell_end_as_those_of_a_file(cells: Cells) -> None:
    cells.run("%%kafka --into all\nsql 'SELECT $$a\x0cb\u2028c$$\nAS n'\npwd\n")
    assert [part.to_dict() for part in cells.ip.user_ns["all"].parts] == [[{"n": "a\x0cb\u2028c"}], "/"]
    cells.fails("%%kafka\npwd # \x0c\x0b\u2028\nls /nope\n")
    assert "line 2: " in cells.printed


def test_the_first_line_that_fails_ends_the_cell(cells: Cells) -> None:
    error = cells.fails("%%kafka\npwd\nls /nope\npwd\n")
    assert isinstance(error, NoSuchPathError)
    assert "line 2" in cells.printed
    assert len(cells.shown) == 1


def test_keep_going(cells: Cells) -> None:
    error = cells.fails("%%kafka --keep-going\nls /nope\npwd\nfrobnicate\n")
    assert isinstance(error, CommandError) and "2 lines" in error.message
    assert [forms["text/plain"].split("\n")[0] for forms in cells.shown] == [
        "NoSuchPathError: line 1: /nope: no such path",
        "/",
        "UsageError: line 3: frobnicate: no such command",
    ]


def test_the_first_line_takes_options_only(cells: Cells) -> None:
    for header in ("ls", "-l", "--close", "--nope", "--as-of"):
        assert isinstance(cells.fails(f"%%kafka {header}\npwd\n"), UsageError)
    assert cells.shown == []


def test_a_predicate_that_finds_something_is_no_error(cells: Cells) -> None:
    assert cells.run("%kafka health").exit_code == 1
    assert cells.run("%kafka diff 10 10").exit_code == 0


def test_several_answers_show_themselves_one_below_the_other(cells: Cells) -> None:
    cells.run("%%kafka --into z\npwd\nls /image/topics\n")
    z = cells.ip.user_ns["z"]
    assert str(z).split() == ["/", "byId/", "byName/"]
    assert "byName" in z.to_html() and "byName" in z._repr_html_()
    cells.run("z")
    assert "byName" in cells.text()


def test_what_ran_before_a_line_failed_is_kept(cells: Cells) -> None:
    cells.fails("%%kafka --keep-going --into z\npwd\nls /nope\npwd\n")
    assert [part.to_dict() for part in cells.ip.user_ns["z"].parts] == ["/", "/"]


def test_the_lines_of_a_file(cells: Cells, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_text("pwd\nls /nope\nls /image/topics\n")
    result = cells.run(f"%kafka source {file} --keep-going")
    assert result.exit_code == 2 and len(result.parts) == 3
    assert [forms["text/plain"].split(":")[0].split()[0] for forms in cells.shown] == ["/", "NoSuchPathError", "byId/"]
    cells.shown.clear()
    file.write_text("pwd\n")
    cells.run(f"%kafka source {file};")
    assert cells.shown == []
