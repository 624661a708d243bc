"""Expectations: what must hold of a table's rows, declared with its columns, and checked while files are written.

::

    expect = (*not_null("clusterId", "day"), *at_least(0, "leaderMs"), ordered("fromOffset", "toOffset"),
              unique("clusterId", "day", "broker"))

Rows are checked in Arrow, in the task that writes them: no second pass, no job of its own. Only if a step writes
several files of a table, their keys are counted once more. A breach, a row that breaks an expectation, fails nothing:
it is reported in the table ``breaches``.
"""

from __future__ import annotations

import importlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.spark.schemas import Row
from kshell.tables.arrow import json_text
from kshell.tables.declaration import Field

if TYPE_CHECKING:
    import pyarrow as pa


_CLUSTER = "clusterId"
_LONGEST = 2_000
"""Characters of an example row, as JSON; a longer one is cut."""
_OFFSETS = ("offset", "validFromOffset", "fromOffset")
"""Columns with the offset of a row's record; the first one that a table has is reported."""

BREACH_FIELDS = (
    Field(_CLUSTER, "string", "the cluster whose rows they are; null where it is the cluster that is missing"),
    Field("step", "int64", "the step that wrote the rows"),
    Field("table", "string", "the table that has them"),
    Field("expectation", "string", "what must hold, as in the reference of the tables"),
    Field("count", "int64", "how many rows of that step break it"),
    Field("key", "json", "the key of one of them: its columns by name; null where the table declares no key"),
    Field("offset", "int64", "the offset of its record; null where the table has none"),
    Field("example", "json", "that row"),
)


class Breach(NamedTuple):
    """The number of rows of one cluster that break an expectation (its name), and one of them as an example."""

    expectation: str
    cluster_id: str | None
    rows: int
    example: Row


def breach_rows(
    step: int, breaches: Mapping[str, Iterable[Breach]], expectations: Mapping[str, Expectations]
) -> list[Row]:
    """Make a step's rows of the table ``breaches``, one per table, expectation and cluster; arguments are by table."""
    merged: dict[tuple[str, str, str | None], Breach] = {}
    for table, listed in breaches.items():
        for breach in listed:
            place = table, breach.expectation, breach.cluster_id
            before = merged.get(place)
            merged[place] = breach if before is None else before._replace(rows=before.rows + breach.rows)
    rows = []
    for (table, *_), breach in merged.items():
        key = key_of(expectations[table])
        text = json.dumps(breach.example, default=str, ensure_ascii=False)
        rows.append(
            {
                _CLUSTER: breach.cluster_id,
                "step": step,
                "table": table,
                "expectation": breach.expectation,
                "count": breach.rows,
                "key": {name: breach.example.get(name) for name in key} if key else None,
                "offset": next((breach.example[name] for name in _OFFSETS if name in breach.example), None),
                "example": json.loads(text) if len(text) <= _LONGEST else {"truncated": text[:_LONGEST]},
            }
        )
    return rows


def identity(row: Row) -> tuple[object, ...]:
    """Return the values by which two rows of ``breaches`` report the same breach in different steps."""
    key = json_text(row["key"]) if isinstance(row["key"], dict) else row["key"]
    return row["table"], row["expectation"], row[_CLUSTER], row["count"], key


class Condition(NamedTuple):
    """A condition on each single row; ``name`` is the condition as SQL. Nulls pass, except with ``IS NOT NULL``."""

    name: str
    columns: tuple[str, ...]
    operator: str
    least: int = 0

    def broken(self, rows: pa.Table) -> pa.ChunkedArray | None:
        """Return a mask of the rows of a ``pyarrow.Table`` that break the condition; ``None`` if none does."""
        compute = importlib.import_module("pyarrow.compute")
        first = rows.column(self.columns[0])
        if self.operator == "not null":
            return compute.is_null(first) if first.null_count else None
        if self.operator == "at least":
            least = compute.min(first).as_py()
            return None if least is None or least >= self.least else compute.less(first, self.least)
        second = rows.column(self.columns[1])
        compare = compute.greater if self.operator == "<=" else compute.greater_equal
        mask = compute.fill_null(compare(first, second), False)
        return mask if compute.any(mask).as_py() else None


class Unique(NamedTuple):
    """No two rows have the same values in these columns; with ``current`` only rows with ``isCurrent`` count."""

    name: str
    columns: tuple[str, ...]
    current: bool = False


def not_null(*columns: str) -> tuple[Condition, ...]:
    """Expect that columns have a value in every row."""
    return tuple(Condition(f"{column} IS NOT NULL", (column,), "not null") for column in columns)


def at_least(least: int, *columns: str) -> tuple[Condition, ...]:
    """Expect that the values of columns are at least a number."""
    return tuple(Condition(f"{column} >= {least}", (column,), "at least", least) for column in columns)


def ordered(first: str, second: str, *, strictly: bool = False) -> Condition:
    """Expect that the first column's value is at most the second's or, with ``strictly``, less than it."""
    operator = "<" if strictly else "<="
    return Condition(f"{first} {operator} {second}", (first, second), operator)


def unique(*columns: str) -> Unique:
    """Expect that columns identify a row."""
    return Unique(f"unique ({', '.join(columns)})", columns)


def one_current(*columns: str) -> Unique:
    """Expect that, of all versions with the same values in columns, at most one is current."""
    return Unique(f"unique ({', '.join(columns)}) WHERE isCurrent", columns, current=True)


def key(*columns: str) -> tuple[Condition | Unique, ...]:
    """Expect that columns identify a row, and have a value in every row."""
    return (*not_null(*columns), unique(*columns))


Expectations = tuple[Condition | Unique, ...]


def key_of(expectations: Expectations) -> tuple[str, ...]:
    """Return the columns of the first declared key, of rows or of what has versions; empty if there is none."""
    return next((expectation.columns for expectation in expectations if isinstance(expectation, Unique)), ())


class ExpectationCheck:
    """Checks the rows of one file while they are written: :meth:`add` all rows, then ask for :meth:`breaches`."""

    def __init__(self, expectations: Expectations, partition: str | None) -> None:
        self._conditions = [expectation for expectation in expectations if isinstance(expectation, Condition)]
        is_current = partition == "true"
        self._keys = {
            expectation: list[Any]()
            for expectation in expectations
            if isinstance(expectation, Unique) and expectation.current <= is_current
        }
        self._breaches: dict[tuple[str, str | None], Breach] = {}

    def add(self, rows: pa.Table) -> None:
        """Check some rows, a ``pyarrow.Table`` of the table's columns without the partition column."""
        for condition in self._conditions:
            if set(condition.columns) <= set(rows.column_names) and (mask := condition.broken(rows)) is not None:
                self._note(condition.name, rows.filter(mask))
        for expectation, parts in self._keys.items():
            parts.append(rows.select(list(expectation.columns)))

    def breaches(self) -> tuple[Breach, ...]:
        """Return the breaches, after all rows were added."""
        arrow = importlib.import_module("pyarrow")
        for expectation, parts in self._keys.items():
            if parts:
                self._note(expectation.name, repeated(arrow.concat_tables(parts)))
        return tuple(self._breaches.values())

    def _note(self, name: str, rows: pa.Table) -> None:
        for cluster_id, count, example in by_cluster(rows):
            before = self._breaches.get((name, cluster_id))
            breach = Breach(name, cluster_id, count, example)
            merged = breach if before is None else before._replace(rows=before.rows + count)
            self._breaches[name, cluster_id] = merged


def repeated(keys: pa.Table) -> pa.Table:
    """Return the repeated rows of a ``pyarrow.Table`` of keys: a key that occurs n times is returned n - 1 times."""
    columns = keys.column_names
    groups = keys.group_by(columns).aggregate([([], "count_all")])
    compute = importlib.import_module("pyarrow.compute")
    groups = groups.filter(compute.greater(groups.column("count_all"), 1))
    if not groups.num_rows:
        return groups.select(columns)
    arrow = importlib.import_module("pyarrow")
    times = compute.subtract(groups.column("count_all"), 1).to_pylist()
    return groups.select(columns).take(arrow.array([row for row, more in enumerate(times) for _ in range(more)]))


def by_cluster(rows: pa.Table) -> Iterator[tuple[str | None, int, Row]]:
    """Group rows that break an expectation: (cluster, number of rows, the first row without its binary values)."""
    clusters = rows.column(_CLUSTER).to_pylist() if _CLUSTER in rows.column_names else [None] * rows.num_rows
    for cluster_id, count in Counter(clusters).items():
        example = rows.slice(clusters.index(cluster_id), 1).to_pylist()[0]
        yield cluster_id, count, {name: value for name, value in example.items() if not isinstance(value, bytes)}
