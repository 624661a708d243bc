"""What SQL says of a point in the past, against the commands: each of those replays the log up to there by itself.

A session that was asked for its history answers out of the log's index. So a table that is the same both ways is right
unless both a replay and the index are wrong alike; Kafka's own classes judge replays (tests/live/test_as_of.py).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kshell.engine.session import Session
from kshell.history.recorded import recorded_past
from kshell.sources.choose import demo_directory
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.tables.declaration import tables
from tests.builders import FIXTURES, node_name, recorded
from tests.commands.shell import opened, rows, value
from tests.commands.test_sql_history import ask, listed

OFFSETS = 30
"""Offsets of each directory that are looked at, and its ends."""
PAIRS = 10
"""Pairs of them between which changes are looked at."""
NODES = (*recorded(), Path(demo_directory()))
FEW = tuple(FIXTURES / node for node in ("3.9.2/controller-3001", "4.1.1/controller-3000"))
"""One whose log has metadata transactions, and one whose log begins with a snapshot."""


def compare(node: Path, chosen: random.Random, offsets: int, pairs: int) -> int:
    """Hold tables at random offsets against commands, and changes between them against ``diff``; gives how many."""
    travelled = opened(node / METADATA_DIRECTORY)
    log = recorded_past(travelled, "").history.log
    first = log.start - 1 if log.start else 0
    some = sorted({first, log.end - 1, *(chosen.randrange(first, log.end) for _ in range(offsets))})
    for offset in some:
        alone = opened(node / METADATA_DIRECTORY).reshape(point=str(offset))
        (tables_there,) = ask(travelled, f"SELECT {', '.join(whole(name, offset) for name in tables())}")
        for name, table in tables().items():
            columns = [field.name for field in table.fields]
            found = listed(tables_there[name] or [], columns)
            assert found == listed(answers(alone, name), columns), (node, name, offset)
        assert alone.past is None  # it has replayed the log up to there, and no more
    for _ in range(pairs):
        a, b = chosen.choice(some), chosen.choice(some)
        changes = [changed(row) for row in ask(travelled, f"SELECT * FROM changes({a}, {b})")]
        expected = rows(opened(node / METADATA_DIRECTORY), f"diff {a} {b}")
        assert changes == json.loads(json.dumps(expected, default=dict)), (node, a, b)
    return len(some) * len(tables()) + pairs


def whole(name: str, offset: int) -> str:
    """All rows of a table in one column: a query costs more than what is asked of it."""
    return f"(SELECT list(rows) FROM {name}_at({offset}) rows) AS {name}"


def answers(session: Session, name: str) -> Iterable[Mapping[str, Any]]:
    """The rows of a table as the command of that name has them; two tables have commands that say more."""
    if name == "features":
        levels = {row["feature"]: row["level"] for row in rows(session, "features")}
        levels.pop("kraft.version", None)  # which control records say, no record of a feature
        return [{"name": name, "level": level} for name, level in levels.items() if level]
    if name == "provenance":
        (version,) = ask(session, "SELECT metadataVersion FROM provenance") or [{}]
        at = value(session, "cat /image/provenance")
        return [{**(at if at["offset"] >= 0 else {}), **version}]
    return rows(session, name)


def changed(row: dict[str, Any]) -> dict[str, Any]:
    """A change with its values as they are in ``diff``: SQL has them as JSON."""
    return row | {side: None if row[side] is None else json.loads(row[side]) for side in ("old", "new")}


@pytest.mark.parametrize("node", FEW, ids=node_name)
def test_a_table_at_a_point_is_what_its_command_says_there(node: Path) -> None:
    assert compare(node, random.Random(node_name(node)), 1, 2) > 30


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("node", NODES, ids=node_name)
def test_so_it_is_at_many_points_of_every_recorded_directory(node: Path, soak_count: int) -> None:
    for seed in range(soak_count):
        count = compare(node, random.Random(f"{node_name(node)} {seed}"), OFFSETS, PAIRS)
        print(f"{node_name(node)}: {count} answers compared")
