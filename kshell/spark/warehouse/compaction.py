"""Batches that many steps have written, put together: the same rows in fewer files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from kshell.commands.base.result import Row
from kshell.sources.log import Progress
from kshell.spark.warehouse import Warehouse, catalog
from kshell.spark.warehouse.catalog import TableSpec
from kshell.spark.warehouse.commits import ALL, CLOSED

LARGE = 256 << 20
"""Bytes from which on a batch stays as it is, unless somebody says otherwise."""
Sizes = list[tuple[str, int]]


def compact(warehouse: Warehouse, large: int, *, told: Progress) -> list[Row]:
    """Rewrites batches below ``large`` bytes of tables that have several; gives a row about each of them.

    The caller is the only writer. Where there is nothing to do, no session is needed.
    """
    wanted = dict(_wanted(warehouse, large))
    if not wanted:
        return []
    before = {name: _size(warehouse, name) for name in wanted}
    warehouse.begin()
    rows = {}
    for name, steps in wanted.items():
        told(0, 0, f"{name}: {len(steps)} batches")
        rows[name] = warehouse.compact(name, steps)
    warehouse.commit({})
    return [_row(name, rows[name], before[name], _size(warehouse, name)) for name in wanted if rows[name]]


def _wanted(warehouse: Warehouse, large: int) -> Iterator[tuple[str, list[int]]]:
    """The tables with their batches that are to be put together."""
    for name, spec in catalog.tables().items():
        part = CLOSED if spec.closes else ALL
        held = warehouse.parts(name).get(part, {})
        if spec.is_fleet or not (spec.closes or not spec.by_cluster):
            continue
        sizes = _sizes(warehouse, spec, part)
        small = {step for step, size in sizes.items() if size < large}
        several = len(small) > 1 if not spec.by_cluster else any(len(small & set(own)) > 1 for own in held.values())
        if several:
            yield name, sorted(small)


def _sizes(warehouse: Warehouse, spec: TableSpec, part: str) -> dict[int, int]:
    """Bytes by step."""
    sizes: dict[int, int] = defaultdict(int)
    held = warehouse.parts(spec.name).get(part, {})
    for step in {step for own in held.values() for step in own}:
        kept = {part: {name: [step] for name, own in held.items() if step in own}}
        sizes[step] = sum(size for _, size in warehouse.tables.size(spec, kept))
    return sizes


def _size(warehouse: Warehouse, name: str) -> Sizes:
    files: Sizes = warehouse.tables.size(catalog.table(name), warehouse.parts(name))
    return files


def _row(name: str, rows: int, before: Sizes, after: Sizes) -> dict[str, Any]:
    return {
        "table": name,
        "rows": rows,
        "filesBefore": len(before),
        "filesAfter": len(after),
        "bytesBefore": sum(size for _, size in before),
        "bytesAfter": sum(size for _, size in after),
    }
