"""Lines of awkward input: each does what docs/notebook.md says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kshell.errors import KshellError, NoSuchPathError, UsageError
from kshell.result import Result
from tests.magic.shell import Cells

ORDERS = "/image/topics/byName/orders"


@pytest.mark.parametrize(
    ("cell", "first"),
    [
        ("x = %kafka topics --where \"name == 'orders'\" --columns name", ["orders"]),
        ("x = %kafka topics --where 'name == \"orders\"' --columns name", ["orders"]),
        ("x = %kafka find /image/topics/byName/order\\s -type d", [ORDERS]),
        ("x = %kafka find /image/topics/byName/ord* -type d", [ORDERS]),
        ("x = %kafka find /image/topics/byName/{orders,clicks} -type d", [ORDERS, "/image/topics/byName/clicks"]),
        ("x = %kafka find '/image/topics/byName/[o]rders' -type d", NoSuchPathError),
        ("x = %kafka find /image/topics/byName/[o]rders -type d", [ORDERS]),
        ("x = %kafka find /image/topics/byName/order? -type d", [ORDERS]),
        ("a = 1\nx = %kafka find /image/topics/byName/{a} -type d", NoSuchPathError),
        ("HOME = 1\nx = %kafka grep $HOME /image/features", []),
        ("x = %kafka grep '$' /image/features -o json", None),
        ("t = 'orders'\nx = %kafka find /image/topics/byName/{{t}} -type d", [ORDERS]),
        ("t = 'orders'\nx = %kafka find \"/image/topics/byName/{{t}}\" -type d", [ORDERS]),
        ("t = 'orders'\nx = %kafka find '/image/topics/byName/{{t}}' -type d", NoSuchPathError),
        ("t = 'orders'\nx = %kafka --no-interp find /image/topics/byName/{{t}} -type d", NoSuchPathError),
        ("t = ['orders']\nx = %kafka find /image/topics/byName/{{t[0]}} -type d", [ORDERS]),
        ("d = {'a': 'orders'}\nx = %kafka find /image/topics/byName/{{d['a']}} -type d", [ORDERS]),
        ("t = '*'\nx = %kafka find /image/topics/byName/{{t}} -type d", NoSuchPathError),
        ("n = 3\nx = %kafka topics --limit {{n - 2}} --columns name", ["__transaction_state"]),
        ("x = %kafka find /image/topics/byName/{{orders,clicks}} -type d", NoSuchPathError),
        ("x = %kafka find /image/topics/byName/{{orders,clicks},x} -type d", [ORDERS, "/image/topics/byName/clicks"]),
        ("x = %kafka cat /image/topics/byName/{{missing}}/0", UsageError),
        ("t = None\nx = %kafka cat {{t}}", UsageError),
        ("x = %kafka cat {{1 +}}", UsageError),
        ("x = %kafka pwd # | not a pipe > nor a file {{nothing}}", ["/"]),
        ("x = %kafka topics --columns name --limit 1;", ["__transaction_state"]),
        ("x = %kafka topics --columns name --where 'name == \"größe-日本\"'", []),
        ("x = %kafka cat 'unclosed", UsageError),
        ("x = %kafka ls '' ", UsageError),
        ("x = %kafka | cat", UsageError),
        ("x = %kafka pwd >", UsageError),
        ("x = %kafka frobnicate", UsageError),
        ("x = %kafka pwd; pwd", UsageError),
        ("x = %kafka cd /image && pwd", UsageError),
        ("x = %kafka find 'a;b' ;", NoSuchPathError),
        ("x = %kafka -o json pwd", ["/"]),
        ("x = %kafka --wat pwd", UsageError),
        ("x = %kafka", None),
    ],
)  # fmt: skip
def test_awkward_input(cells: Cells, cell: str, first: Any) -> None:
    if isinstance(first, type) and issubclass(first, KshellError):
        error = cells.fails(cell)
        assert isinstance(error, first)
        assert "Traceback" not in cells.printed + cells.stderr
        return
    cells.run(cell)
    found = cells.ip.user_ns["x"]
    assert isinstance(found, Result)
    if first is not None:
        assert [next(iter(row.values())) for row in found] == first


def test_a_redirection_writes_a_file_and_shows_nothing(cells: Cells, tmp_path: Path) -> None:
    target = tmp_path / "a b.csv"
    cells.ip.user_ns["target"] = target
    result = cells.run("%kafka topics --columns name --limit 2 -o csv > {{target}}")
    assert target.read_text() == "name\n__transaction_state\naudit-log\n"
    assert cells.shown == []
    assert [row["name"] for row in result] == ["__transaction_state", "audit-log"]


def test_a_pipe_runs_a_program_and_shows_what_it_says(cells: Cells) -> None:
    result = cells.run("%kafka ls /image/topics/byName | grep -c e")
    assert cells.printed.strip() == str(sum("e" in row["value"] for row in result.rows))
    assert cells.shown == []


def test_a_program_that_fails_fails_its_line(cells: Cells) -> None:
    error = cells.fails("%kafka ls /image | sed p | (grep nothing; exit 1)")
    assert "the program failed: sed p | (grep nothing; exit 1)" in error.message
    cells.fails("%%kafka --keep-going\nls /image | false\npwd | cat")
    assert cells.printed.startswith("/\n"), "the next line ran"


def test_a_program_that_fails_ends_a_file_of_lines_unless_told_to_go_on(cells: Cells, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("ls /image | false\npwd | cat\n")
    assert "the program failed: false" in cells.fails(f"%kafka source {script}").message
    result = cells.run(f"%kafka source --keep-going {script}")
    assert [part.exit_code for part in result.parts] == [2, 0]


def test_a_value_is_one_word_for_the_program_of_a_pipe_too(cells: Cells) -> None:
    cells.ip.user_ns["pattern"] = "x; echo pwned"
    cells.run("%kafka ls /image | grep -c {{pattern}} || true")
    assert cells.printed.strip() == "0"


def test_nothing_of_the_line_is_run(cells: Cells, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text in ("$(touch pwned)", "`touch pwned`", "; touch pwned", "&& touch pwned"):
        cells.ip.user_ns["text"] = text
        cells.fails("%kafka ls {{text}}")
        cells.fails(f"%kafka ls /image/x {text}")
    assert list(tmp_path.glob("pwned")) == []


def test_the_line_magic_shows_its_last_answer(cells: Cells) -> None:
    cells.run("%kafka pwd")
    assert cells.text() == "/"
    cells.shown.clear()
    cells.run("%kafka pwd;")
    cells.run("x = %kafka pwd")
    cells.run("%kafka pwd --into y")
    cells.run("%kafka cd /image")
    assert cells.shown == []
    assert cells.ip.user_ns["y"].to_dict() == "/"


def test_into_wants_a_name(cells: Cells) -> None:
    for name in ("1x", "a.b", "for", "'a b'"):
        assert isinstance(cells.fails(f"%kafka pwd --into {name}"), UsageError)


def test_formats_show_themselves(cells: Cells) -> None:
    cells.run("%kafka features --columns feature --limit 1 -o json")
    assert cells.shown[-1].keys() == {"text/plain"}
    assert cells.text().startswith("[")
    cells.run("%kafka topics --limit 1 -o html")
    assert "<table" in cells.shown[-1]["text/html"]
    cells.run("%kafka topics --limit 1")
    assert cells.shown[-1].keys() == {"text/plain", "text/html", "text/markdown"}


def test_inside_a_function_its_own_names_count(cells: Cells) -> None:
    cells.run(
        "def look(topic):\n    return get_ipython().run_line_magic('kafka', 'cat " + "{{path}}')\npath = '/image'"
    )
    cells.run("x = look('orders')")
    assert isinstance(cells.ip.user_ns["x"], Result)


def test_timeit_and_capture(cells: Cells) -> None:
    cells.run("%timeit -n 1 -r 1 -q get_ipython().run_line_magic('kafka', 'pwd')")
    cells.run("%%capture caught\n%kafka pwd")
    assert cells.shown == []
    caught = cells.ip.user_ns["caught"]
    assert _seen(caught) == ["/"]
    cells.run("%%capture more\nget_ipython().run_cell_magic('kafka', '', 'pwd\\nls /image')")
    assert len(_seen(cells.ip.user_ns["more"])) == 2


def _seen(captured: Any) -> list[str]:
    """What was captured and can be seen: for a value that shows itself, IPython keeps an empty form as well."""
    return [one.data["text/plain"] for one in captured.outputs if one.data]


def test_an_error_of_a_result_is_short_too(cells: Cells) -> None:
    error = cells.fails("x = %kafka ls /image\nx.plot()")
    assert isinstance(error, UsageError)
    assert cells.printed.startswith("UsageError: ")
    assert "Traceback" not in cells.printed and len(cells.printed.splitlines()) < 5


def test_an_error_is_text(cells: Cells) -> None:
    error = cells.fails("%kafka ls '/image/\x1b[31m'")
    assert str(error).startswith(r"/image/\x1b[31m: ") and "\x1b" not in cells.printed


def test_without_the_extension_errors_are_as_they_were(cells: Cells) -> None:
    cells.run("x = %kafka ls /image\n%unload_ext kshell")
    cells.fails("x.plot()")
    assert "Traceback" in cells.printed
    cells.run("%load_ext kshell")


@pytest.mark.parametrize("program", ['echo "`echo {{f}}`"', 'cat "$(echo {{f}})"', "echo `echo {{f}}`", 'grep "{{f}}"'])
def test_a_value_stays_out_of_the_programs_own_quoting(cells: Cells, program: str) -> None:
    cells.ip.user_ns["f"] = "nofile; echo PWNED"
    assert isinstance(cells.fails(f"%kafka ls / | {program}"), UsageError)
    assert "PWNED" not in cells.printed.replace("nofile; echo PWNED", "")


def test_a_value_is_no_option(cells: Cells) -> None:
    cells.ip.user_ns["a"] = "--show-secrets"
    for line in ("cat /image/scram/SCRAM-SHA-256/alice {{a}}", 'ls "{{a}}"', "ls {{'-l'}}"):
        assert "would be an option" in cells.fails(f"%kafka {line}").message
    cells.ip.user_ns["when"] = "-1000w"
    with pytest.raises(KshellError, match=r"the state at 20\S+ is not known"):
        cells.run("%kafka ls / --as-of {{when}}")


def test_secrets_go_through_no_program(cells: Cells, tmp_path: Path) -> None:
    line = "%kafka cat /image/scram/SCRAM-SHA-256/alice --show-secrets"
    assert "saved" in cells.fails(f"{line} | cat").message
    cells.run(f"{line} -o json > {tmp_path / 'f'}")
    assert "redacted" not in (tmp_path / "f").read_text()


@pytest.mark.parametrize(
    "first",
    ["t = %kafka pwd;", "%kafka pwd --into t", "t = %kafka pwd > {{target}}", "t = %kafka follow --since 0 --count 2"],
)
def test_what_one_cell_keeps_quiet_the_next_one_shows(cells: Cells, tmp_path: Path, first: str) -> None:
    cells.ip.user_ns["target"] = tmp_path / "f"
    cells.run(first)
    cells.shown.clear()
    cells.run("t")
    assert len(cells.shown) == 1 and cells.text()


def test_a_long_answer_is_not_saved_whole(cells: Cells) -> None:
    cells.run("x = %kafka find / --values\nx")
    assert 100 < len(cells.text().splitlines()) < 110
    assert "more lines" in cells.text()
    assert len(str(cells.ip.user_ns["x"]).splitlines()) >= len(cells.ip.user_ns["x"])


def test_only_a_comment_is_nothing(cells: Cells) -> None:
    cells.run("%kafka # words")
    assert cells.shown == []
    cells.run("%kafka pwd # not; quiet;")
    assert cells.text() == "/"


def test_the_column_is_shown_only_where_it_is_the_lines(cells: Cells) -> None:
    cells.fails("%kafka ls / 'unclosed")
    assert "^" in cells.printed
    cells.ip.user_ns["t"] = "/image/topics"
    cells.fails("%kafka ls {{t}} 'unclosed")
    assert "^" not in cells.printed


def test_the_tools_of_a_notebook(cells: Cells) -> None:
    cells.run("%load_ext autoreload\n%autoreload 2\n%kafka pwd")
    assert cells.text() == "/"
