"""Write the tables of one step, layer by layer: bronze, silver, gold; tables of a layer in parallel where possible."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial, reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as fn

from kshell.errors import UnreadError
from kshell.protocol.control import CONTROL_TYPES
from kshell.spark import gold, silver
from kshell.spark.files.plan import UNREAD
from kshell.spark.schemas import CLUSTER_FIELDS, COPY_FIELDS, FILE_FIELDS, QUARANTINE_FIELDS
from kshell.spark.silver.declaration import SilverTable
from kshell.spark.silver.events import RANGE_FIELDS, effective, open_transactions_of
from kshell.spark.steps import ingest
from kshell.spark.steps.cluster_changes import ClusterChange, RecordCounts
from kshell.spark.steps.finalization import Horizon, horizon, tomorrow_ms
from kshell.spark.steps.gold_layer import GoldLayer
from kshell.spark.steps.local_frames import frame_of, union
from kshell.spark.tables import catalog
from kshell.spark.tables.catalog import CLUSTERS, CONTROL_RECORDS, COPIES, CURRENT, FILES, QUARANTINE, RECORDS
from kshell.spark.tables.gold_table import PARTITIONS_RETAINED
from kshell.spark.tables.steps import ClusterState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kshell.sources.directory.log import Progress
    from kshell.spark.reconcile import BadBatches, ReconciledLog
    from kshell.spark.steps.step import Replan
    from kshell.spark.tables.warehouse import Warehouse

_FILE = ["clusterId", "file"]
_BEGIN = "BEGIN_TRANSACTION_RECORD"
_CONTROL = [kind.name for kind in CONTROL_TYPES.values()]
_BAD_BATCH = "kind = 'batch' and not isSnapshot"
"""SQL: whether a finding is a damaged batch of a log. Planning leaves these out, and then reports them itself."""
_HINT = "the step is not committed; executors on other machines must reach the same paths"
_CHANGING_DAMAGE = "each time that it is read, other batches are damaged"
Work = tuple[str, Callable[[], None]]
"""The name of a table, and the function that writes it."""
_THREADS = 4
"""Tables written in parallel: each needs a few short Spark jobs, between which cores wait for the driver."""
_READS = 4
"""How often a step reads at most: it reads again without the batches that turned out to be damaged."""
_OFTEN = 50
"""Reasons of quarantine that a summary lists at most, the most frequent ones."""


class StepWriter:
    """Writes the tables of a step; the caller begins the step, calls :meth:`run`, and commits.

    Afterwards ``rows`` has the rows written per table, and ``quarantined`` how often each (kind, reason) occurred.
    """

    def __init__(
        self, warehouse: Warehouse, fresh: Sequence[ClusterChange], progress: Progress, replan: Replan | None
    ) -> None:
        self.rows: dict[str, int] = {}
        self.quarantined: dict[tuple[str, str], int] = {}
        self._warehouse = warehouse
        self._spark = warehouse.spark
        self._fresh = {change.cluster_id: change for change in fresh}
        self._progress = progress
        self._replan_cluster = replan
        self._damage: list[DataFrame] = []
        self._counts: dict[str, RecordCounts] = {}
        self._changed: dict[str, set[str]] = {}
        """Table -> the clusters whose rows in it this step has changed."""

    def run(self) -> dict[str, ClusterState]:
        """Write all layers; return the new states of the clusters. Raises UnreadError."""
        restarted = [name for name, change in self._fresh.items() if change.before is None]
        self._reset([name for name in restarted if name in self._warehouse.state.clusters])
        counted = self._records()
        self._control_records(counted)
        self._quarantine(counted)
        self._listings()
        open_transactions = self._silver(counted)
        horizons = self._gold(counted)
        return {
            name: self._state(change, open_transactions.get(name), horizons.get(name))
            for name, change in self._fresh.items()
        }

    @property
    def logs(self) -> dict[str, ReconciledLog]:
        """The reconciled log of each cluster as it was written, without batches that turned out to be damaged."""
        return {name: change.log for name, change in self._fresh.items()}

    def _reset(self, clusters: Collection[str]) -> None:
        """Delete all rows of some clusters, which are then written from scratch."""
        if clusters:
            self._warehouse.remove(clusters)
            for name in catalog.tables():
                self._change(name, clusters)

    def _state(self, change: ClusterChange, open_transaction: int | None, horizon: Horizon | None) -> ClusterState:
        before = change.before
        settled = before.settled_ms if horizon is None and before is not None else horizon and horizon.until
        return ClusterState(change.log.checkpoint._asdict(), open_transaction, settled)

    # --- bronze ---

    def _records(self) -> dict[str, RecordCounts]:
        """Write ``records``, again without damaged batches if there are any; return the counts by cluster."""
        bad_batches: dict[str, list[tuple[str, int, str]]] = {}
        for _ in range(_READS):
            findings = self._written()
            more = _bad_batches(findings) if findings is not None and self._replan_cluster is not None else {}
            if findings is not None:
                self._damage.append(findings.where(f"not ({_BAD_BATCH})") if more else findings)
            if not more:
                self._change(RECORDS, self._counts)
                return self._counts
            bad_batches.update({name: [*bad_batches.get(name, ()), *batches] for name, batches in more.items()})
            self._replan({name: bad_batches[name] for name in more})
        raise UnreadError(
            _CHANGING_DAMAGE,
            hint=_HINT,
            clusters={name: f"{bad_batches[name][-1][0]}: {_CHANGING_DAMAGE}" for name in more},
        )

    def _written(self) -> DataFrame | None:
        """Write and count the records; return what was found wrong in them, if anything. Raises UnreadError."""
        slices = [piece for change in self._fresh.values() for piece in change.log.slices]
        if not slices:
            return None
        self._progress(0, 0, f"{RECORDS}: {sum(change.log.size for change in self._fresh.values()) / 1e6:,.1f} MB")
        cores = self._parallelism()
        taken = ingest.append(self._warehouse, slices, cores)
        self.rows[RECORDS], self._counts = taken.rows, taken.counts
        if not taken.finding_count:
            return None
        findings = ingest.findings(self._spark, slices, cores).localCheckpoint()  # the files may change meanwhile
        if findings.count() != taken.finding_count:
            raise UnreadError("the sources changed while they were read", hint=_HINT)
        _check_read(findings)
        return findings

    def _replan(self, bad: Mapping[str, BadBatches]) -> None:
        """Reconcile clusters again without damaged batches: their offsets are then missing, for states as well."""
        assert self._replan_cluster is not None
        self._warehouse.retract(RECORDS)
        self.rows.pop(RECORDS)
        self._counts = {}
        # Tables that this step starts from scratch still do: the reason for it may lie in the damaged batches.
        logs = {
            name: self._replan_cluster(name, batches, self._fresh[name].log.restart) for name, batches in bad.items()
        }
        restarted = [name for name, log in logs.items() if log.restart and self._fresh[name].before is not None]
        self._reset(restarted)
        for name, log in logs.items():
            before = None if name in restarted else self._fresh[name].before
            self._fresh[name] = ClusterChange(log, before)

    def _parallelism(self) -> int:
        return int(self._spark.conf.get("spark.sql.shuffle.partitions") or 1)

    def _new_records(self) -> DataFrame:
        return self._warehouse.read_appended(RECORDS)

    def _control_records(self, counted: Mapping[str, RecordCounts]) -> None:
        clusters = [name for name, records in counted.items() if not records.types.keys().isdisjoint(_CONTROL)]
        if clusters:
            frame = self._new_records().where(fn.col("type").isin(_CONTROL))
            self.rows[CONTROL_RECORDS] = self._warehouse.append(CONTROL_RECORDS, frame)
            self._change(CONTROL_RECORDS, clusters)

    def _quarantine(self, counted: Mapping[str, RecordCounts]) -> None:
        names = [field.name for field in QUARANTINE_FIELDS]
        frames = []
        if planned := [row for change in self._fresh.values() for row in change.log.findings]:
            frames.append(frame_of(self._spark, QUARANTINE_FIELDS, planned))
        if any(records.undecoded for records in counted.values()):
            undecoded = self._new_records().where(fn.col("reason").isNotNull())
            frames.append(undecoded.withColumn("kind", fn.lit("record")).select(*names))
        if self._damage:  # each read of the same files has found it again
            frames.append(union(self._damage).dropDuplicates(["file", "position", "kind"]))
        if not frames:
            return
        self.rows[QUARANTINE] = self._warehouse.append(QUARANTINE, union(frames))
        self._change(QUARANTINE, self._fresh)
        written = self._warehouse.read_appended(QUARANTINE)
        groups = written.groupBy("kind", "reason").count().orderBy(fn.desc("count"), "kind", "reason")
        self.quarantined = {(row["kind"], row["reason"]): row["count"] for row in groups.limit(_OFTEN).collect()}

    def _listings(self) -> None:
        """Write ``files``, ``copies`` and ``clusters``, whose rows planning has made."""
        logs = [change.log for change in self._fresh.values()]
        files = frame_of(self._spark, FILE_FIELDS, [row for log in logs for row in log.files])
        unchanged = self._warehouse.read(FILES, self._fresh).join(files.select("clusterId", "file"), _FILE, "left_anti")
        copies = frame_of(self._spark, COPY_FIELDS, [row for log in logs for row in log.copies])
        clusters = frame_of(self._spark, CLUSTER_FIELDS, [log.cluster for log in logs])
        frames = {FILES: unchanged.unionByName(files), COPIES: copies, CLUSTERS: clusters}
        _write_in_parallel([self._replacing(name, frames[name]) for name in frames], self._progress)
        # Other tables use only values of `clusters` that new records change.
        self._change(CLUSTERS, [name for name, change in self._fresh.items() if change.log.slices])

    # --- silver ---

    def _silver(self, counted: Mapping[str, RecordCounts]) -> dict[str, int]:
        """Write the silver tables; return, by cluster, the offset at which a transaction begins that is still open."""
        replay_ranges = [
            {
                "clusterId": name,
                "base": replay_range.base,
                "sinceOffset": replay_range.since,
                "toOffset": replay_range.to,
            }
            for name, change in self._fresh.items()
            for replay_range in change.log.ranges
        ]
        if not replay_ranges:
            return {
                name: open_transaction
                for name, change in self._fresh.items()
                if (open_transaction := change.open_transaction) is not None
            }
        frame = frame_of(self._spark, RANGE_FIELDS, replay_ranges)
        records = self._with_open_transactions()
        with_base = [name for name, change in self._fresh.items() if any(part.base for part in change.log.ranges)]
        control_records = self._warehouse.read(CONTROL_RECORDS, with_base)
        # Not cached: the ten frames made from a cached one would contain its whole plan, and plan it again each.
        events = self._warehouse.materialized(effective(records, frame, control_records))
        _write_in_parallel(
            [
                self._extending(table, events, clusters)
                for table in silver.tables().values()
                if (clusters := self._touched(table.types, counted))
            ],
            self._progress,
        )
        was_open = any(change.open_transaction is not None for change in self._fresh.values())
        if not was_open and not any(_BEGIN in records.types for records in counted.values()):
            return {}
        return {row["clusterId"]: row["offset"] for row in open_transactions_of(records, frame).collect()}

    def _with_open_transactions(self) -> DataFrame:
        """Return the new records, and again the records of transactions that were open after the last step."""
        frames = [self._new_records()] if RECORDS in self.rows else []
        open_transactions = {
            name: change.open_transaction for name, change in self._fresh.items() if change.open_transaction is not None
        }
        if open_transactions:
            least = min(open_transactions.values())
            since = reduce(
                lambda condition, cluster_condition: condition | cluster_condition,
                [
                    (fn.col("clusterId") == name) & (fn.col("offset") >= fn.lit(at))
                    for name, at in open_transactions.items()
                ],
            )
            before = self._warehouse.read_before(RECORDS, open_transactions, "offset", least)
            frames.append(before.where(since & ~fn.col("isSnapshot")))
        return union(frames or [self._warehouse.read(RECORDS, ())])

    def _touched(self, types: Collection[str], counted: Mapping[str, RecordCounts]) -> list[str]:
        """Return the clusters in which records of some types may take effect in this step."""
        return [
            name
            for name, change in self._fresh.items()
            if change.open_transaction is not None
            or (name in counted and not counted[name].types.keys().isdisjoint(types))
        ]

    def _extending(self, table: SilverTable, events: DataFrame, clusters: Collection[str]) -> Work:
        # Read here, before any silver table is written: a table needs the other tables as they were before the step.
        before = {name: self._warehouse.read(name, clusters, CURRENT) for name in (table.name, *table.needs)}

        def work() -> None:
            mine = events.where(fn.col("clusterId").isin(list(clusters)))
            self.rows[table.name] = self._warehouse.extend(table.name, table.versions(mine, before), clusters)
            self._change(table.name, clusters)

        return table.name, work

    # --- gold ---

    def _gold(self, counted: Mapping[str, RecordCounts]) -> dict[str, Horizon]:
        """Write the gold tables, wave by wave; return which rows are then final, of clusters where these may change."""
        settling = self._changed_of(need for table in gold.tables().values() if table.final_by for need in table.needs)
        new = {name: records.times for name, records in counted.items()}
        tomorrow = tomorrow_ms()
        horizons = {name: horizon(self._fresh[name], new.get(name), tomorrow) for name in settling}
        layer = GoldLayer(self._warehouse, horizons, tomorrow)
        work = [(PARTITIONS_RETAINED, partial(self._counting, PARTITIONS_RETAINED, layer.retain))] if settling else []
        for wave in gold.waves():
            for table in wave:
                if clusters := settling if table.final_by else self._changed_of(table.needs):
                    write = partial(layer.write, table, clusters)
                    work.append((table.name, partial(self._counting, table.name, write)))
                    self._change(table.name, clusters)
            _write_in_parallel(work, self._progress)
            work = []
        return horizons

    def _changed_of(self, names: Iterable[str]) -> set[str]:
        return set().union(*(self._changed.get(name, ()) for name in names))

    def _counting(self, name: str, write: Callable[[], int]) -> None:
        self.rows[name] = write()

    def _replacing(self, name: str, frame: DataFrame) -> Work:
        return name, partial(self._counting, name, lambda: self._warehouse.replace(name, frame, self._fresh))

    def _change(self, name: str, clusters: Iterable[str]) -> None:
        self._changed.setdefault(name, set()).update(clusters)


def _check_read(findings: DataFrame) -> None:
    """Raise UnreadError if files could not be read; it names each cluster that this concerns, with one example."""
    unread = findings.where(fn.col("kind") == UNREAD).groupBy("clusterId")
    examples = unread.agg(fn.min_by(fn.struct("file", "reason"), "file")).collect()
    clusters = {name: f"{example.file}: {example.reason}" for name, example in examples}
    if clusters:
        raise UnreadError(next(iter(clusters.values())), hint=_HINT, clusters=clusters)


def _bad_batches(findings: DataFrame) -> dict[str, list[tuple[str, int, str]]]:
    """Return the damaged batches of logs, by cluster."""
    bad: dict[str, list[tuple[str, int, str]]] = {}
    for row in findings.where(_BAD_BATCH).select("clusterId", "file", "position", "reason").collect():
        bad.setdefault(row["clusterId"], []).append((row["file"], row["position"], row["reason"]))
    return bad


def _write_in_parallel(work: Sequence[Work], progress: Progress) -> None:
    """Write several tables in parallel. The first error is raised, once the running writes have finished."""
    with ThreadPoolExecutor(_THREADS, "kshell table") as pool:
        running = {pool.submit(write): name for name, write in work}
        try:
            for number, future in enumerate(as_completed(running), 1):
                future.result()
                progress(0, 0, f"{running[future]} written, {number} of {len(work)}")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
