"""Commands run as the front ends run them, and what they gave as plain values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kshell.engine import formats
from kshell.engine.execution import prepare
from kshell.engine.result import Branch, Report, Result, Rows, Text, Tree, Value
from kshell.engine.session import Session
from kshell.render import render
from kshell.sources.directory.source import DirectorySource

FORMATS = tuple(formats.FORMATS)


def opened(directory: Path | str, **options: Any) -> Session:
    """A session on a directory or file."""
    return Session(DirectorySource(str(directory)), **options)


def run(session: Session, line: str) -> Result:
    """The result of a line. The exit code of rows is known only when they were read: see :func:`rows`."""
    call = prepare(session, line)
    assert call is not None
    return call.run()


def rows(session: Session, line: str) -> list[dict[str, Any]]:
    """The rows of a line, read to the end."""
    result = run(session, line)
    assert isinstance(result, Rows)
    return [dict(row) for row in result]


def lines(session: Session, line: str, width: int | None = None) -> list[str]:
    """What a line prints as text, at a pipe."""
    return "".join(render(run(session, line), "text", width=width)).splitlines()


def value(session: Session, line: str) -> Any:
    """The value of a line that gives one."""
    result = run(session, line)
    assert isinstance(result, Value)
    return result.value


def words(session: Session, line: str) -> str:
    """The text of a line that gives one."""
    result = run(session, line)
    assert isinstance(result, Text)
    return result.text


def root(session: Session, line: str) -> Branch:
    """The root of a line that gives a tree."""
    result = run(session, line)
    assert isinstance(result, Tree)
    return result.root


def sections(session: Session, line: str) -> dict[str, Any]:
    """The sections of a report: objects, or lists of rows."""
    result = run(session, line)
    assert isinstance(result, Report)
    return {
        section.key: [dict(row) for row in section.body] if isinstance(section.body, Rows) else dict(section.body)
        for section in result.sections
    }
