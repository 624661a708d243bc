"""``kshell-pipeline run``: reads what is new in the logs of clusters, and adds it to the tables as one step."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kshell.engine.declaration import Arg, Example
from kshell.engine.result import Report
from kshell.spark.session import NAME
from kshell.spark.verbs import SPARK_FLAGS, Verb
from kshell.spark.verbs.warehouse.flags import OUT, SINCE, SOURCE_FLAGS, SourcesArguments, sources_of
from kshell.spark.verbs.warehouse.opening import open_warehouse

if TYPE_CHECKING:
    from kshell.spark.reconcile import ReconciledLog

_FEW_OFFSETS, _FEW_BYTES = 200_000, 32 << 20
"""Limits of a small step, for all logs together: below both, Spark spends most of its time on starting and planning."""


def run(args: SourcesArguments) -> Report:
    """Run one step. Exit code 4 if something was damaged or malformed, else 3 if something could not be read."""
    from kshell.spark.steps.planning import NOW, clusters
    from kshell.spark.steps.step import run_step
    from kshell.spark.steps.unread import UnreadErrors, first, known_clusters
    from kshell.spark.verbs.warehouse.step_summary import report

    sources = sources_of(args)
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(open_warehouse(args))
        warehouse, progress = place.warehouse, place.progress
        progress(0, 0, "looking for metadata directories")
        failed: UnreadErrors = {}
        copies = clusters(sources, args.cluster, failed)
        stack.enter_context(warehouse.writing())  # only now: if no source is found, nothing is written
        since = args.since or NOW

        def planned(logs: Sequence[ReconciledLog], failed: UnreadErrors) -> None:
            """Decide, once the logs to read are known, whether the step is small. Raise if none could be planned."""
            if not logs:
                raise first(failed)
            place.is_brief = sum(log.checkpoint.offset for log in logs) < _FEW_OFFSETS
            place.is_brief &= sum(log.size for log in logs) < _FEW_BYTES

        summary = run_step(warehouse, copies, since=since, progress=progress, failed=failed, planned=planned)
        return report(warehouse.place, len(known_clusters(copies, failed)), summary)


VERB = Verb(
    name="run",
    summary="take what is new of clusters into the tables of a directory",
    run=run,
    arguments=SourcesArguments,
    args=(Arg("more", "more sources, such as the paths that your shell makes of a glob", arity="*"),),
    flags=(
        *SOURCE_FLAGS,
        OUT,
        SINCE,
        *SPARK_FLAGS,
    ),
    examples=(
        Example(f"{NAME} run --source '/fleet/*/*/__cluster_metadata-0' --out tables", "all copies of all clusters"),
        Example(
            f"{NAME} run --source /var/lib/kafka --out tables --cluster staging",
            "copies that do not say which cluster they belong to",
        ),
        Example(f"{NAME} run --source '/fleet/*/*' --out tables --since -30d", "of clusters that are new, a month"),
    ),
    description=(
        "The copies of a cluster (by meta.properties) are compared and reconciled into one log. A second run reads"
        " only what is new, and where nothing is, it does not even start Spark. A run that is killed leaves the"
        " tables as they were. What cannot be decoded is in the table quarantine; exit code 4: some of that is damaged"
        " or malformed, or a copy turns out to be of another cluster, which the table copies has (other-cluster). A"
        " copy that a glob finds and that cannot be read, a directory that a glob may not enter, and a cluster that"
        " cannot be planned are rows of the table copies (unreadable), and the others go on; exit code 3."
    ),
)
