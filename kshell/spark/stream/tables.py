"""``kshell-pipeline stream``: tables that follow directories, with one step of the pipeline per micro-batch.

A micro-batch of the source ``kraft-growth`` says up to which offset each cluster can be read; the step begins at the
checkpoint that the tables themselves keep. So each record gets into the tables exactly once, even after a kill: a
micro-batch that Spark repeats is either in the tables already, or is written now.
"""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.errors import CommandError, KshellError, UsageError
from kshell.sources.points import Point
from kshell.spark.failures import WORKER_STARTS, is_late_worker, of_worker
from kshell.spark.files.scan import LogCopy, Unread
from kshell.spark.interrupts import handled
from kshell.spark.options import parse
from kshell.spark.reconcile import by_cluster
from kshell.spark.steps.step import NOTHING, Summary, is_damage, run_step
from kshell.spark.steps.unread import UnreadErrors, add_unread, first, is_unread
from kshell.spark.stream.growth import FIELDS, FORMAT, GrowthRow, GrowthSource
from kshell.spark.stream.plan import listed_copies
from kshell.spark.tables.data_files import file_system
from kshell.spark.tables.delta import RETAINED_HOURS
from kshell.spark.tables.steps import DONE_PHASE, writer_lock
from kshell.spark.tables.warehouse import for_spark, location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from kshell.sources.directory.log import Progress
    from kshell.spark.reconcile import ReconciledLog
    from kshell.spark.tables.warehouse import Warehouse

_POLL = 0.2
"""Seconds between two looks at whether the query has ended or a signal has come."""
_REASONS = 1000
"""Reasons of quarantine, and breaches, that a summary keeps: some name offsets, so a stream would collect ever more."""
_TIDY = 200
"""Micro-batches after which old files are removed: each micro-batch replaces files in nearly every table."""
EVERY = 30.0
"""Seconds from one micro-batch to the next, by default."""


class Sources(NamedTuple):
    """The directories to follow. ``options``: the options of the data source, paths included."""

    options: Mapping[str, str]
    cluster: str | None = None
    """The cluster id of copies without ``meta.properties``."""
    since: Point = Point()
    """Where a cluster begins that the tables do not have yet."""


class Stopping(Exception):
    """Refuses a micro-batch because the stream is stopping. Spark does not commit it, so the next query repeats it."""


class TableStream:
    """Keeps the tables of ``warehouse`` up to date with ``sources``: create it, then call :meth:`run` once.

    ``say`` is called with a line about every micro-batch, ``progress`` during a step. ``retained_hours``: how long
    files stay that the current step no longer has. Raises UsageError for options that are not understood.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        sources: Sources,
        *,
        say: Callable[[str], None],
        progress: Progress | None = None,
        retained_hours: int = RETAINED_HOURS,
    ) -> None:
        self._warehouse = warehouse
        self._retained_hours = retained_hours
        warehouse.action = "stream"
        self._sources = sources
        self._options = parse(sources.options)._replace(skips_unlistable=True)
        self._say = say
        self._progress = progress
        self._busy = threading.Lock()
        self._stop = 0
        self._failure: BaseException | None = None
        self._untidy = 0
        self.summary = NOTHING
        """The summary of all steps so far."""
        self.clusters: set[str] = set()
        """All clusters of which a step has planned anything."""

    def size(self) -> int:
        """Return the bytes of all logs as they are now."""
        return sum(segment.size for copy in listed_copies(self._options).values() for segment in copy.listing.segments)

    def run(self, checkpoint: str, every: float | None = EVERY) -> int:
        """Follow the sources until a signal comes, which lets the running micro-batch finish.

        ``every`` is the time between micro-batches, in seconds; ``None``: they begin at once, and end when what is
        there now is read. The caller must be the warehouse's only writer. Returns the number of the signal; 0 if there
        was none. Raises CommandError if another query uses the checkpoint (a directory), and KshellError for an error
        of a step.
        """
        place = location(checkpoint)
        tables = self._warehouse.place
        if f"{place}/".startswith(f"{tables}/"):
            raise UsageError(f"{place}: among the tables", hint=f"next to them: --checkpoint {tables}-checkpoint")
        with writer_lock(place):
            spark = self._session()  # first: a starting session sets handlers of its own, which would abort a step
            with self._signals():
                if not listed_copies(self._options):
                    self._say("no metadata directory there yet")
                if _has_begun(place):
                    self._catch_up()
                self._start(lambda: self._query(spark, for_spark(place), every))
        return self._stop

    def _session(self) -> SparkSession:
        spark = self._warehouse.spark
        if ".connect." in type(spark).__module__:
            raise UsageError("stream: not through Spark Connect", hint="repeat `run` there: it takes only what is new")
        spark.dataSource.register(GrowthSource)
        return spark

    def _query(self, spark: SparkSession, checkpoint: str, every: float | None) -> StreamingQuery:
        """Start the query."""
        reader = spark.readStream.format(FORMAT).options(**self._sources.options)
        writer = reader.load().writeStream.foreachBatch(self._batch).option("checkpointLocation", checkpoint)
        if every is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{every * 1000:.0f} milliseconds").start()

    def _start(self, query: Callable[[], StreamingQuery]) -> None:
        """Start a query and wait for its end; start another one if Spark's Python worker did not start in time."""
        for starts_left in reversed(range(WORKER_STARTS)):
            try:
                return self._follow(query())
            except CommandError as error:
                if not starts_left or not is_late_worker(error.__cause__):
                    raise
            self._say("Spark's Python worker was not up within Spark's ten seconds; the stream starts again")

    def _follow(self, query: Any) -> None:
        """Wait until a query ends or a signal asks to stop, and raise what made it fail."""
        error: Exception | None = None
        try:
            while not self._stop and not query.awaitTermination(_POLL):
                pass
        except (KeyboardInterrupt, KshellError):  # a second Ctrl-C, or the end of --timeout
            with suppress(Exception):  # the interrupted call's answer may arrive as the answer to this call
                query.stop()
            raise
        except Exception as raised:  # Spark's exceptions; their types cannot be imported without pyspark
            error = raised
        if self._stop:
            with self._busy:
                pass  # wait for the running micro-batch; none begins after it
        query.stop()
        if self._failure is not None:
            raise self._failure
        if error is not None and not self._stop:
            if (reported := of_worker(error)) is not None:
                raise reported from error
            reason = str(error).strip().partition("\n")[0][:300]
            raise CommandError(f"the stream ended: {reason}") from error

    def _signals(self) -> AbstractContextManager[None]:
        """Let the first Ctrl-C or SIGTERM finish the running micro-batch, and a second one interrupt it."""

        def heard(number: int, frame: FrameType | None) -> None:
            if self._stop:
                raise KeyboardInterrupt
            self._stop = number
            self._say("stopping when this micro-batch is done")

        return handled({signal.SIGINT: heard, signal.SIGTERM: heard})

    # --- one micro-batch ---

    def _batch(self, frame: Any, number: int) -> None:
        """Process one micro-batch. An error ends the query; the next query repeats the micro-batch."""
        with self._busy:
            if self._stop:
                raise Stopping
            try:
                rows = frame.select(*(field.name for field in FIELDS)).collect()
                self._take([tuple(row) for row in rows], number)
            except BaseException as error:
                self._failure = error
                raise

    def _take(self, rows: Sequence[GrowthRow], number: int) -> None:
        """Write one step with the clusters that have grown, up to the offsets in ``rows``, and report on it."""
        ends = {json.loads(path): offset for path, offset, *_ in rows}
        moved = {json.loads(path) for path, *_, is_new in rows if is_new}
        unread: list[Unread] = []
        copies_by_path = listed_copies(self._options, unread=unread)
        at = {copy.path: path for path, copy in copies_by_path.items()}
        copies: dict[str, list[LogCopy]] = {}
        until: dict[str, int | None] = {}
        for name, cluster_copies in by_cluster(copies_by_path.values(), self._sources.cluster).items():
            there = {at[copy.path] for copy in cluster_copies}
            # A cluster that could not be read before is behind Spark's checkpoint, so it is tried even without growth.
            if there & moved or name in self._warehouse.state.failed:
                copies[name], until[name] = (
                    cluster_copies,
                    max((ends[path] for path in there & ends.keys()), default=None),
                )
        summary = self._step(copies, until, unread)
        behind = sum(row[3] for row in rows)
        self._say(
            f"micro-batch {number}: {len(summary.clusters)} of {len(copies)} clusters, "
            f"{summary.rows.get('records', 0):,} records, {summary.bytes_read:,} bytes in {summary.seconds:.1f} s; "
            + (f"{behind:,} bytes behind" if behind else f"up to date at offset {max(ends.values(), default=0):,}")
            + (f"; {len(summary.breaches)} breaches of expectations" if summary.breaches else "")
        )
        self._untidy += bool(summary.step)
        if self._untidy >= _TIDY:
            removed = self._warehouse.vacuum(self._retained_hours)
            self._untidy = 0
            self._say(f"{sum(files for files, _ in removed.values()):,} files of old steps were removed")

    def _step(
        self, copies: Mapping[str, Sequence[LogCopy]], until: Mapping[str, int | None] | None, unread: Sequence[Unread]
    ) -> Summary:
        """Run one step. ``until``: end offsets by cluster; ``None``: all. Raises KshellError if nothing can be read."""
        warehouse, failed = self._warehouse, UnreadErrors()
        add_unread(failed, unread, self._sources.cluster)
        clusters_before = warehouse.state.clusters.keys()

        def planned(logs: Sequence[ReconciledLog], failed: UnreadErrors) -> None:
            if failed and not logs and clusters_before <= failed.keys():
                raise first(failed)

        since = self._sources.since
        summary = run_step(
            warehouse, copies, since=since, until=until, progress=self._progress, failed=failed, planned=planned
        )
        self.summary = folded(self.summary, summary)
        self.clusters.update(copies)
        return summary

    def _catch_up(self) -> None:
        """Write, in one step, the clusters of which Spark's checkpoint may have more than the tables.

        They are missing if the tables were created again, or if the checkpoint was used for other tables before. After
        a `restore` all clusters may be behind; no micro-batch would come for one that does not grow any more.
        """
        unread: list[Unread] = []
        actions = (row["action"] for row in reversed(self._warehouse.log.rows()) if row["phase"] == DONE_PHASE)
        is_restored = next((name for name in actions if name.startswith(("restore", "stream"))), "stream") != "stream"
        every = by_cluster(listed_copies(self._options, unread=unread).values(), self._sources.cluster)
        state = self._warehouse.state
        missing = {
            name: cluster_copies
            for name, cluster_copies in every.items()
            if is_restored or name not in state.clusters or name in state.failed
        }
        if missing:
            summary = self._step(missing, None, unread)
            if summary.step:
                self._say(f"{len(summary.clusters)} clusters that the tables lacked: {summary.bytes_read:,} bytes")


def _has_begun(checkpoint: str) -> bool:
    """Whether a query has committed a micro-batch in this checkpoint directory."""
    system, root = file_system(checkpoint)
    return bool(system.get_file_info(f"{root}/commits").type.name == "Directory")


def folded(before: Summary, later: Summary) -> Summary:
    """Combine two summaries: sums, and the latest rows of each cluster's copies. Its size stays bounded."""
    counts = Counter(before.quarantine)
    counts.update(later.quarantine)
    most_frequent = sorted(counts.items(), key=lambda entry: (not is_damage(*entry[0]), -entry[1]))[:_REASONS]
    rows = Counter(before.rows)
    rows.update(later.rows)
    copies = [row for row in before.copies if row.get("clusterId") not in later.clusters and not is_unread(row)]
    copies += [row for row in later.copies if row.get("clusterId") in later.clusters or is_unread(row)]
    return Summary(
        step=max(before.step, later.step),
        clusters=tuple(dict.fromkeys((*before.clusters, *later.clusters))),
        rows=dict(rows),
        bytes_read=before.bytes_read + later.bytes_read,
        quarantine=dict(most_frequent),
        copies=tuple(copies),
        restarted=tuple(dict.fromkeys((*before.restarted, *later.restarted))),
        seconds=before.seconds + later.seconds,
        unread_code=later.unread_code,
        breaches=(before.breaches + later.breaches)[-_REASONS:],
    )
