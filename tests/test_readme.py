"""The README's examples are real: each ``$ ./dev demo …`` prints what stands below it.

``python -m tests.test_readme`` writes the outputs anew.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from kshell.cli import main
from kshell.version import __version__

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"```\n\$ \./dev demo (?P<command>[^\n]*)\n(?P<output>.*?)```", re.DOTALL)
PROMPT = "$ ./dev demo "
WIDTH = 80


def output(command: str) -> str:
    """What the command prints on standard output, through a pipe."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["--demo", *shlex.split(command)])
    assert code == 0, err.getvalue()
    assert err.getvalue() == ""
    return out.getvalue()


def blocks() -> list[tuple[str, str]]:
    return [(found["command"], found["output"]) for found in BLOCK.finditer(README.read_text())]


def test_there_is_a_tour() -> None:
    assert len(blocks()) >= 8


@pytest.mark.parametrize(("command", "shown"), blocks(), ids=[command for command, _ in blocks()])
def test_example(command: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert output(command) == shown, "python -m tests.test_readme writes README's outputs again: read git diff"


def test_the_tour_is_legible_in_a_narrow_terminal() -> None:
    shown = [line for command, text in blocks() for line in [PROMPT + command, *text.splitlines()]]
    assert [line for line in shown if len(line) > WIDTH] == []


def test_recipes_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    rows = [line.split(" | ") for line in README.read_text().splitlines() if line.startswith("| `kafka-")]
    recipes = [recipe for row in rows for recipe in re.findall(r"`([^`]+)`", row[1])]
    assert len(recipes) >= 10
    for recipe in recipes:
        if not recipe.startswith("kshell"):  # those name files of the reader's own
            assert output(recipe)


def test_the_recipe_for_unavailable_partitions_finds_what_has_no_leader() -> None:
    row = next(line for line in README.read_text().splitlines() if "--unavailable-partitions" in line)
    recipe = re.findall(r"`([^`]+)`", row.split(" | ")[1])[0]
    leaderless = output("partitions --where 'leader == -1' -o jsonl")
    assert leaderless and output(f"{recipe} -o jsonl") == leaderless


def test_the_one_command_that_changes_something_is_named_where_reading_is_promised() -> None:
    paragraphs = re.split(r"\n\n|\n(?=- )", README.read_text())
    promises = [one for one in paragraphs if re.search(r"reads: no lock|Nothing is written", one)]
    assert len(promises) == 2
    assert all("loggers NODE set" in part for part in promises)


def test_the_wheel_is_named_as_it_is_built() -> None:
    assert set(re.findall(r"kraft_shell-([^-]+)-py3", README.read_text())) == {__version__}


def test_every_extra_has_its_weight() -> None:
    extras = tomllib.loads((README.parent / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    rows = re.findall(r"^\| `([a-z]+)` \|[^|]*\| [\d.]+ MB[^|]* \| [\d.]+ [MG]B[^|]* \|$", README.read_text(), re.M)
    assert sorted(rows) == sorted(extras)


def rewrite() -> None:
    """Puts the real outputs into the README."""
    text = README.read_text()

    def block(found: re.Match[str]) -> str:
        return f"```\n{PROMPT}{found['command']}\n{output(found['command'])}```"

    README.write_text(BLOCK.sub(block, text))


if __name__ == "__main__":
    rewrite()
    sys.stdout.write("README.md: outputs written\n")
