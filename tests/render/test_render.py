"""The registry of formats, and how lazily they work."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from kshell.engine.formats import FORMATS
from kshell.engine.result import Column, Nothing, Report, Row, Rows, Text, Tree, Value
from kshell.errors import CommandError, UsageError
from kshell.render import render, renderers


def test_every_format_renders_every_kind() -> None:
    assert tuple(FORMATS) == ("text", "wide", "record", "json", "jsonl", "yaml", "csv", "tsv", "markdown", "html"), (
        "list the format here, and write tests/render/test_NAME.py, which parses what it prints"
    )
    for fmt in FORMATS:
        assert set(renderers(fmt)) == {Text, Value, Rows, Tree, Report, Nothing}


def test_unknown_format() -> None:
    with pytest.raises(UsageError, match="toml: no such format"):
        render(Nothing(), "toml")


def test_a_subclass_is_rendered_as_its_kind() -> None:
    class Note(Text):
        pass

    assert list(render(Note("a"), "text")) == ["a\n"]


@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("style", ["table", "lines", "values"])
def test_a_million_rows_stream(fmt: str, style: str) -> None:
    made = 0

    def rows() -> Iterator[Row]:
        nonlocal made
        for made in range(1, 1_000_001):
            yield {"path": "/x", "value": made}

    chunks = render(Rows((Column("path"), Column("value")), rows(), style=style, line_column="path"), fmt)
    for _ in range(3):
        next(chunks)
    assert made <= 1000


@pytest.mark.parametrize("fmt", FORMATS)
def test_what_the_rows_raise_comes_through_after_what_was_made(fmt: str) -> None:
    def rows() -> Iterator[Row]:
        yield from ({"a": n} for n in range(2000))
        raise CommandError("here")

    seen = []
    with pytest.raises(CommandError, match="here"):
        for chunk in render(Rows((Column("a"),), rows()), fmt):
            seen.append(chunk)
    assert len("".join(seen).splitlines()) >= 1900


def test_text_and_json_import_nothing_heavy() -> None:
    code = (
        "import sys; from kshell.render import render; from kshell.engine.result import *\n"
        "from kshell.render.output import emit\n"
        "emit(Value('', '', {'a': [1]}), 'text'); emit(Value('', '', {'a': [1]}), 'json')\n"
        "heavy = {'yaml', 'pygments', 'html', 'csv', 'subprocess', 'tempfile', 'prompt_toolkit', 'asyncio'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
