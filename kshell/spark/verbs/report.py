"""``kshell-pipeline report``: writes pages (HTML, Markdown) about a cluster or all clusters of a warehouse."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kshell.engine.declaration import Example, Flag
from kshell.engine.result import Report, Rows, Section, typed
from kshell.errors import UsageError
from kshell.spark.session import NAME
from kshell.spark.verbs import SPARK_FLAGS, Verb
from kshell.spark.verbs.warehouse.flags import OUT, WarehouseArguments, utf8
from kshell.spark.verbs.warehouse.opening import open_warehouse

if TYPE_CHECKING:
    from kshell.spark.report.compose import Document
    from kshell.spark.report.section import Scope
    from kshell.spark.tables.warehouse import Warehouse

_ATTENTION = typed("level:string figure:string what:string where:string section:string")
_FILES = typed("file:string bytes:int64")
_PICTURES = typed("directory:string pictures:int32 bytes:int64")


class ReportVerbArguments(WarehouseArguments):
    """Arguments and options of ``report``."""

    cluster: str | None
    name: list[tuple[str, str]] | None
    to: str | None
    format: list[str] | None


def run(args: ReportVerbArguments) -> Report:
    """Write the report. Return what needs attention, and the files that were written."""
    from kshell.spark.report.collect import cluster_names, collect, reader, renamed
    from kshell.spark.report.compose import compose
    from kshell.spark.report.write import target_of, write

    target = target_of(args.to or "report", args.format or ())
    with open_warehouse(args) as place:
        warehouse = place.warehouse
        scope = scope_of(warehouse, args.cluster)
        names = cluster_names(warehouse.state.clusters, args.name or ())
        place.starts_reading()
        answers = collect(warehouse.spark, reader(warehouse, scope), scope, place.progress)
        answers = renamed(answers, names)
        place.progress(0, 0, "drawing")
        document = compose(scope, answers, (f"tables of {warehouse.place}", f"step {warehouse.state.step:,}"))
        return _answer(document, write(document, target))


def scope_of(warehouse: Warehouse, cluster: str | None) -> Scope:
    """Return the scope: one cluster, or all. Raises UsageError for an unknown one, CommandError without tables."""
    from kshell.spark.report.section import Scope

    clusters = sorted(warehouse.state.clusters)
    if not clusters:
        raise warehouse.no_tables()
    if cluster is not None and cluster not in clusters:
        import difflib  # late: only mistakes need it

        close = difflib.get_close_matches(cluster, clusters, n=3, cutoff=0.3) or clusters[:3]
        raise UsageError(
            f"{cluster}: no such cluster", hint=f"there are {len(clusters):,}, {', '.join(close)} among them"
        )
    return Scope(clusters[0] if cluster is None and len(clusters) == 1 else cluster)


def _named(text: str) -> tuple[str, str]:
    cluster, equals, name = utf8(text).rpartition("=")  # a cluster id that is made of a path may contain =
    if not equals or not cluster or not name:
        raise ValueError("ID=NAME")
    return cluster, name


def _answer(document: Document, files: list[tuple[str, int]]) -> Report:
    attention = [
        {"level": item.level, "figure": item.figure, "what": item.message, "where": item.where, "section": section.name}
        for item, section in document.attention
    ]
    pages = [{"file": path, "bytes": size} for path, size in files if not path.endswith(".png")]
    drawn = [(path, size) for path, size in files if path.endswith(".png")]
    sections = [
        Section("attention", "Needs attention" if attention else "Nothing needs attention", Rows(_ATTENTION, attention))
    ]
    sections.append(Section("files", "Written", Rows(_FILES, pages)))
    if drawn:
        folder = {
            "directory": os.path.dirname(drawn[0][0]),
            "pictures": len(drawn),
            "bytes": sum(size for _, size in drawn),
        }
        sections.append(Section("pictures", "Pictures of the Markdown file", Rows(_PICTURES, [folder])))
    return Report(sections)


VERB = Verb(
    name="report",
    summary="pages about a cluster or the fleet: what needs attention, plots, short tables",
    run=run,
    arguments=ReportVerbArguments,
    flags=(
        OUT,
        Flag(("--cluster",), "only this cluster (default: all of them together)", "ID", convert=utf8),
        Flag(
            ("--name",),
            "a name for a cluster (default: the beginning of its id)",
            "ID=NAME",
            convert=_named,
            repeat=True,
        ),
        Flag(("--to",), "a directory, or a file whose ending says the format: .html, .md (report)", "DIR|FILE"),
        Flag(("--format",), "only this format (default: both)", "NAME", choices=("html", "markdown"), repeat=True),
        *SPARK_FLAGS,
    ),
    examples=(
        Example(f"{NAME} report --out tables", "report/report.html, report/report.md and its pictures"),
        Example(
            f"{NAME} report --out tables --cluster 4L6g3nShT-eMCtK--X86sw --to orders.html", "one page of a cluster"
        ),
    ),
    description=(
        "The page is one file without scripts, which needs nothing from elsewhere and suits light and dark screens."
        " Its size does not grow with the clusters: of what there is much of, it shows the worst, and says so. Pictures"
        " need matplotlib; without it there are only tables."
    ),
)
