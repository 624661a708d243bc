"""The answer of ``run`` and ``stream``: what a step read, wrote, and found wrong."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from kshell.engine.result import Report, Row, Rows, Section, typed
from kshell.errors import EXIT_DATA, EXIT_OK
from kshell.spark.session import NAME
from kshell.spark.steps.step import Summary
from kshell.spark.tables import catalog
from kshell.spark.tables.catalog import BREACHES

_TABLES = typed("table:string layer:string rowsWritten:int64")
_QUARANTINE = typed("kind:string count:int64 reason:string")
_BREACHES = typed("table:string expectation:string clusterId:string count:int64")
_COPIES = typed("clusterId:string copy:string state:string reason:string damage:[string]")


def report(place: str, clusters: int, summary: Summary) -> Report:
    """Return a step's summary. Exit code 4 if anything was damaged or malformed, else that of what was unreadable."""
    totals = {
        "out": place,
        "step": summary.step or None,
        "clusters": clusters,
        "changedClusters": len(summary.clusters),
        "restartedClusters": len(summary.restarted),
        "bytesRead": summary.bytes_read,
        "seconds": round(summary.seconds, 1),
    }
    sections = [Section("summary", "Summary" if summary.step else "Summary: nothing new", totals)]
    if summary.rows:
        sections.append(Section("tables", "Tables", Rows(_TABLES, list(_written(summary)))))
    if summary.quarantine:
        rows = [
            {"kind": kind, "count": count, "reason": reason} for (kind, reason), count in summary.quarantine.items()
        ]
        sections.append(Section("quarantine", "Quarantine", Rows(_QUARANTINE, rows)))
    if summary.breaches:
        first, count = min(row["step"] for row in summary.breaches), len(summary.breaches)
        query = f"{NAME} query --out {shlex.quote(place)} 'SELECT * FROM {BREACHES} WHERE step >= {first}'"
        title = f"{count} {'breach' if count == 1 else 'breaches'} of expectations: {query}"
        sections.append(Section(BREACHES, title, Rows(_BREACHES, summary.breaches)))
    if summary.copies:
        sections.append(Section("copies", "Copies that are not as the others", Rows(_COPIES, summary.copies)))
    return Report(sections, exit_code=max(summary.unread_code, EXIT_DATA if summary.is_damaged else EXIT_OK))


def _written(summary: Summary) -> Iterator[Row]:
    for name, spec in catalog.tables().items():
        if name in summary.rows:
            yield {"table": name, "layer": spec.layer, "rowsWritten": summary.rows[name]}
