"""``sql`` over history: tables of versions, tables at points, what changed, what happened."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.session import Session
from kshell.errors import EXIT_DATA, EXIT_USAGE, SourceError, UsageError
from kshell.history.catalog import catalog
from kshell.history.versions import history_name
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.tables.declaration import tables
from kshell.tables.versions import VERSION, recorded_fields
from tests.builders import node_name, recorded
from tests.commands.shell import opened, rows, run

POINTS = 4
"""Offsets of each directory that are looked at."""


def ask(session: Session, query: str) -> list[dict[str, Any]]:
    return rows(session, f"sql {json.dumps(query)}")


def in_some_order(found: Iterable[Mapping[str, Any]], names: Iterable[str] | None = None) -> list[str]:
    wanted = None if names is None else list(names)
    return sorted(
        json.dumps([(name, row.get(name)) for name in wanted or row], sort_keys=True, default=dict) for row in found
    )


def offsets(session: Session, seed: str) -> list[int]:
    """Any offsets of the log, its ends among them."""
    loaded = session.loaded
    session.travels()
    assert session.past is not None
    known = session.past.history()
    assert known is not None and loaded.log_end_offset
    log = known[0].log
    chosen = random.Random(seed)
    return sorted({log.start, log.end - 1, *(chosen.randrange(log.start, log.end) for _ in range(POINTS))})


@pytest.mark.parametrize("node", recorded(), ids=node_name)
def test_a_table_at_an_offset_and_the_versions_valid_there_are_what_the_command_says_there(node: Path) -> None:
    session = opened(node / METADATA_DIRECTORY)
    for offset in offsets(session, node_name(node)):
        then = session.reshape(point=str(offset))
        valid = f"validFromOffset <= {offset} AND (validToOffset IS NULL OR validToOffset > {offset})"
        for name, table in tables().items():
            expected = list(table.rows(then, then.image, None))
            every = [field.name for field in table.fields]
            assert in_some_order(ask(session, f"SELECT * FROM {name}_at({offset})")) == in_some_order(expected, every)
            if name == "controllers":
                continue  # the shell asks files beside the log who leads, too: tests/spark/silver compares those
            shared = [field.name for field in recorded_fields(name)]
            listed = ", ".join(f'"{column}"' for column in shared)
            found = ask(session, f"SELECT {listed} FROM {history_name(name)} WHERE {valid}")
            assert in_some_order(found) == in_some_order(expected, shared), (name, offset)
