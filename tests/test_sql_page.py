"""The queries of docs/sql.md are real: each prints what stands below it.

``python -m tests.test_sql_page`` writes the outputs.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.test_readme import WIDTH, output

PAGE = Path(__file__).parents[1] / "docs" / "sql.md"
BLOCK = re.compile(r"```sql\n(?P<query>.*?)```\n\n```\n(?P<output>.*?)```", re.DOTALL)


def printed(query: str) -> str:
    """What the query prints for the sample."""
    return output(f"sql {shlex.quote(query)}")


def blocks() -> list[tuple[str, str]]:
    return [(found["query"], found["output"]) for found in BLOCK.finditer(PAGE.read_text())]


@pytest.mark.parametrize(("query", "shown"), blocks(), ids=range(len(blocks())))
def test_a_query_prints_what_stands_below_it(query: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert shown.count("\n") > 1, "a question without an answer"
    assert printed(query) == shown
    assert [line for line in (*query.splitlines(), *shown.splitlines()) if len(line) > WIDTH + 10] == []


def test_every_query_is_run() -> None:
    assert len(blocks()) == PAGE.read_text().count("```sql") >= 5


if __name__ == "__main__":
    PAGE.write_text(
        BLOCK.sub(lambda found: f"```sql\n{found['query']}```\n\n```\n{printed(found['query'])}```", PAGE.read_text())
    )
