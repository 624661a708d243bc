"""The first stage of a report: run the queries of all sections on Spark, and choose names for cluster ids."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from kshell.engine.result import Row
from kshell.errors import UsageError
from kshell.spark.report.section import Answers, Scope
from kshell.spark.report.sections import sections
from kshell.spark.tables.gold_table import tables_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kshell.sources.directory.log import Progress
    from kshell.spark.tables.warehouse import Warehouse

_THREADS = 4
"""Queries that run in parallel: each is a few short jobs, between which cores would wait for the driver."""


def collect(
    spark: SparkSession, read: Callable[[str], DataFrame], scope: Scope, progress: Progress | None = None
) -> dict[str, Answers]:
    """Return section -> query -> rows. ``read`` returns a table or view by name, limited to the report's clusters."""
    questions = [(section.name, name, sql) for section in sections() for name, sql in section.queries(scope).items()]
    frames = {table: read(table) for table in sorted({table for _, _, sql in questions for table in tables_of(sql)})}
    answers: dict[str, dict[str, Sequence[Row]]] = {section.name: {} for section in sections()}

    def ask(question: tuple[str, str, str]) -> tuple[str, str, list[Row]]:
        section, name, sql = question
        named: dict[str, Any] = {table: frames[table] for table in tables_of(sql)}
        answer = spark.sql(sql, **named)
        return section, name, [row.asDict(recursive=True) for row in answer.collect()]

    with ThreadPoolExecutor(_THREADS) as pool:
        for count, (section, name, rows) in enumerate(pool.map(ask, questions), 1):
            answers[section][name] = rows
            if progress is not None:
                progress(0, 0, f"report: {count} of {len(questions)} questions")
    return dict(answers)


def reader(warehouse: Warehouse, scope: Scope) -> Callable[[str], DataFrame]:
    """Return a function from the name of a table or view ``current_…`` to its rows of the scope's clusters."""
    from kshell.spark.views.named import named

    clusters = None if scope.cluster is None else [scope.cluster]
    return lambda name: named(warehouse, name, clusters=clusters)


# --- names of clusters ------------------------------------------------------------------------------------------------

_SHORTEST = 8
"""The fewest characters of a cluster id to show; git's short ids have about as many."""


def cluster_names(clusters: Collection[str], chosen: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    """Return cluster id -> name to show: the ``chosen`` one (id, name), else the first characters of the id, as many as
    are needed to tell all ids apart.

    Raises UsageError if a chosen name is for an unknown cluster, or two clusters would have the same name.
    """
    names = dict(chosen)
    for cluster in names:
        if cluster not in clusters:
            raise UsageError(
                f"--name {cluster}=…: no such cluster", hint=f"there are {', '.join(sorted(clusters)[:3])}, …"
            )
    rest = [cluster for cluster in clusters if cluster not in names]
    size = _SHORTEST
    while len({cluster[:size] for cluster in rest}) < len(rest):
        size += 1
    all_names = names | {cluster: cluster[:size] for cluster in rest}
    if len(set(all_names.values())) < len(all_names):
        twice = sorted(name for name in names.values() if list(all_names.values()).count(name) > 1)
        raise UsageError(f"--name: {twice[0]} would be the name of two clusters")
    return all_names


def renamed(answers: Mapping[str, Answers], names: Mapping[str, str]) -> dict[str, Answers]:
    """Return the answers of all sections with cluster names in place of cluster ids."""

    def row_of(row: Mapping[str, object]) -> dict[str, object]:
        renamed_row = dict(row)
        if "clusterId" in renamed_row:
            renamed_row["clusterId"] = names.get(str(renamed_row["clusterId"]), renamed_row["clusterId"])
        if renamed_row.get("scope") == "cluster" and "name" in renamed_row:
            renamed_row["name"] = names.get(str(renamed_row["name"]), renamed_row["name"])
        return renamed_row

    return {
        section: {name: [row_of(row) for row in rows] for name, rows in section_answers.items()}
        for section, section_answers in answers.items()
    }
