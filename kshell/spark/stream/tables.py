"""Tables that follow directories: a step of the pipeline for every micro-batch, each exactly once.

A micro-batch says up to which offsets the clusters go; the step begins where the tables themselves are. So whatever was
killed, and whenever: a micro-batch that comes again finds that it was taken in, or takes it in now.
"""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from kshell.errors import CommandError, KshellError, UsageError
from kshell.sources.points import Point
from kshell.spark.failures import WORKER_STARTS, is_late_worker
from kshell.spark.files.scan import LogCopy, Unread
from kshell.spark.options import parse
from kshell.spark.reconcile import by_cluster
from kshell.spark.steps.step import NOTHING, Summary, is_damage
from kshell.spark.steps.step_run import run_step
from kshell.spark.steps.unread import Failures, add_unread, first, is_unread
from kshell.spark.stream.growth import FIELDS, FORMAT, Grown, GrowthSource
from kshell.spark.stream.plan import present
from kshell.spark.tables.data_files import file_system
from kshell.spark.tables.delta import RETAINED_HOURS
from kshell.spark.tables.steps import writer_lock
from kshell.spark.tables.warehouse import for_spark, location

if TYPE_CHECKING:
    from kshell.sources.directory.log import Progress
    from kshell.spark.reconcile import ReconciledLog
    from kshell.spark.tables.warehouse import Warehouse

_POLL = 0.2
_REASONS = 1000
"""Reasons of quarantine, and breaches, that are told apart: some name offsets, and a stream has no end."""
_TIDY = 200
"""Micro-batches after which files are removed that no recent step has: each replaces some in nearly every table."""
EVERY = 30.0
"""Seconds from one micro-batch to the next, unless somebody says otherwise."""


class Sources(NamedTuple):
    """What is followed. ``options``: those of the data source."""

    options: Mapping[str, str]
    cluster: str | None = None
    """The cluster of copies that do not say theirs."""
    since: Point = Point()


class Trigger(NamedTuple):
    """When micro-batches begin: every so many seconds, or one after the other until what is there now is read."""

    available_now: bool = False
    every: float = EVERY


class Stopping(Exception):
    """No micro-batch begins any more. This one is not done, so the next query has it."""


class TableStream:
    """The tables of ``warehouse`` follow ``sources``.

    ``say``: gets a line about every micro-batch. ``retained_hours``: how long files stay that no step has any more.

    Raises UsageError for options that are not understood.
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
        self._options = parse(sources.options)._replace(passes_over=True)
        self._say = say
        self._progress = progress
        self._busy = threading.Lock()
        self._stop = 0
        self._failure: BaseException | None = None
        self._untidy = 0
        self.summary = NOTHING
        """Of all steps."""
        self.clusters: set[str] = set()
        """All that were looked at."""

    def size(self) -> int:
        """Bytes of the logs that are there now."""
        return sum(segment.size for copy in present(self._options).values() for segment in copy.listing.segments)

    def run(self, checkpoint: str, trigger: Trigger) -> int:
        """Follows until all is read, or until a signal comes: then the micro-batch that runs is finished.

        Gives the signal, or 0. The caller is the warehouse's only writer. Raises CommandError where another query uses
        the checkpoint, KshellError for what a step raises.
        """
        place = location(checkpoint)
        if place == self._warehouse.place:
            raise UsageError(f"{place}: both the tables and the checkpoint", hint="a checkpoint has its own directory")
        with writer_lock(place):
            spark = self._session()  # first: a session that starts hears signals, too, and would cut the step off
            with self._signals():
                if not present(self._options):
                    self._say("no metadata directory there yet")
                if _has_begun(place):
                    self._catch_up()
                self._start(lambda: self._query(spark, for_spark(place), trigger))
        return self._stop

    def _session(self) -> Any:
        spark = self._warehouse.spark
        if ".connect." in type(spark).__module__:
            raise UsageError("stream: not through Spark Connect", hint="repeat `run` there: it takes only what is new")
        spark.dataSource.register(GrowthSource)
        return spark

    def _query(self, spark: Any, checkpoint: str, trigger: Trigger) -> Any:
        """The query, started."""
        reader = spark.readStream.format(FORMAT).options(**self._sources.options)
        writer = reader.load().writeStream.foreachBatch(self._batch).option("checkpointLocation", checkpoint)
        if trigger.available_now:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{trigger.every * 1000:.0f} milliseconds").start()

    def _start(self, query: Callable[[], Any]) -> None:
        """Follow with a query, and with another where the Python worker of its source was late."""
        for starts_left in reversed(range(WORKER_STARTS)):
            try:
                return self._follow(query())
            except CommandError as error:
                if not starts_left or not is_late_worker(error.__cause__):
                    raise
            self._say("Spark's Python worker was not up within Spark's ten seconds; the stream starts again")

    def _follow(self, query: Any) -> None:
        error: Exception | None = None
        try:
            while not self._stop and not query.awaitTermination(_POLL):
                pass
        except (KeyboardInterrupt, KshellError):  # a second Ctrl-C, or the end of --timeout
            with suppress(Exception):  # the JVM's answer that this was in the middle of may come to the next question
                query.stop()
            raise
        except Exception as raised:  # Spark's own, of a type that is not there where pyspark is not
            error = raised
        if self._stop:
            with self._busy:
                pass  # the micro-batch that runs comes to its end, and none begins after it
        query.stop()
        if self._failure is not None:
            raise self._failure
        if error is not None and not self._stop:
            reason = str(error).strip().partition("\n")[0][:300]
            raise CommandError(f"the stream ended: {reason}") from error

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """The first Ctrl-C or SIGTERM lets the micro-batch end, a second one does not."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def heard(number: int, frame: FrameType | None) -> None:
            if self._stop:
                raise KeyboardInterrupt
            self._stop = number
            self._say("stopping when this micro-batch is done")

        before = {number: signal.signal(number, heard) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # --- one micro-batch ---

    def _batch(self, frame: Any, number: int) -> None:
        """What it raises ends the query, and the micro-batch comes again in the next one."""
        with self._busy:
            if self._stop:
                raise Stopping
            try:
                rows = frame.select(*(field.name for field in FIELDS)).collect()
                self._take([tuple(row) for row in rows], number)
            except BaseException as error:
                self._failure = error
                raise

    def _take(self, rows: Sequence[Grown], number: int) -> None:
        ends = {json.loads(path): offset for path, offset, *_ in rows}
        moved = {json.loads(path) for path, *_, is_new in rows if is_new}
        unread: list[Unread] = []
        copies_by_path = present(self._options, unread=unread)
        at = {copy.path: path for path, copy in copies_by_path.items()}
        copies: dict[str, list[LogCopy]] = {}
        until: dict[str, int | None] = {}
        for name, cluster_copies in by_cluster(copies_by_path.values(), self._sources.cluster).items():
            there = {at[copy.path] for copy in cluster_copies}
            # Of what could not be read the tables lack what the checkpoint has: also where nothing has moved since.
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
        """``until``: of each cluster; ``None``: all there is. Raises KshellError where nothing at all can be read."""
        warehouse, failed = self._warehouse, Failures()
        add_unread(failed, unread, self._sources.cluster)
        clusters_before = warehouse.state.clusters.keys()

        def planned(logs: Sequence[ReconciledLog], failed: Failures) -> None:
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
        """Clusters that the checkpoint has passed and the tables do not have: these are other tables, or were begun
        anew. What they lack comes in one step.
        """
        unread: list[Unread] = []
        every = by_cluster(present(self._options, unread=unread).values(), self._sources.cluster)
        state = self._warehouse.state
        missing = {
            name: cluster_copies
            for name, cluster_copies in every.items()
            if name not in state.clusters or name in state.failed
        }
        if missing:
            summary = self._step(missing, None, unread)
            if summary.step:
                self._say(f"{len(missing)} clusters that the tables do not have: {summary.bytes_read:,} bytes")


def _has_begun(checkpoint: str) -> bool:
    """Whether a query has committed a micro-batch there."""
    system, root = file_system(checkpoint)
    return bool(system.get_file_info(f"{root}/commits").type.name == "Directory")


def folded(before: Summary, later: Summary) -> Summary:
    """Two steps as one: sums, and of each cluster's copies what was said last. It does not grow with every step."""
    counts = Counter(before.quarantine)
    counts.update(later.quarantine)
    most_frequent = sorted(counts.items(), key=lambda entry: (not is_damage(*entry[0]), -entry[1]))[:_REASONS]
    rows = Counter(before.rows)
    rows.update(later.rows)
    copies = [row for row in before.copies if row.get("clusterId") not in later.clusters and not is_unread(row)]
    copies += [row for row in later.copies if row.get("clusterId") in later.clusters or is_unread(row)]
    return Summary(
        max(before.step, later.step),
        tuple(dict.fromkeys((*before.clusters, *later.clusters))),
        dict(rows),
        before.bytes_read + later.bytes_read,
        dict(most_frequent),
        tuple(copies),
        tuple(dict.fromkeys((*before.restarted, *later.restarted))),
        before.seconds + later.seconds,
        later.unread_code,
        breaches=(before.breaches + later.breaches)[-_REASONS:],
    )
