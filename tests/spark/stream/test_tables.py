"""The verb ``stream``: up to where each micro-batch goes, how it ends, and what it refuses. Without Spark."""

from __future__ import annotations

import json
import pickle
import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import pytest

from kshell.errors import CommandError, DeadlineError, SourceError, SourcePermissionError, UsageError
from kshell.spark import cli
from kshell.spark.failures import WORKER_STARTS
from kshell.spark.interrupts import quiet
from kshell.spark.options import parse
from kshell.spark.steps.step import NOTHING, Summary
from kshell.spark.steps.unread import reasons_of
from kshell.spark.stream import tables as stream_tables
from kshell.spark.stream.tables import Sources, Stopping, TableStream, folded
from kshell.spark.tables.steps import ClusterState, WarehouseState
from tests.builders import batch, value, write_log
from tests.spark.files.test_scan import refusing

DONE = Summary(1, ("x",), {"records": 3}, 10, {("torn", "cut"): 1}, ({"clusterId": "x"},), (), 1.0)


class Warehouse:
    """As much of one as a stream looks at."""

    def __init__(self, place: Path, spark: Any = None, clusters: Any = None) -> None:
        self.place = str(place)
        self.spark = spark
        self.state = WarehouseState(clusters=clusters or {})
        self.log = self
        self.actions: list[str] = []

    def rows(self) -> list[dict[str, str]]:
        """As much of the log of steps as a stream looks at."""
        return [{"action": action, "phase": phase} for action in self.actions for phase in ("begin", "done")]


class Frame:
    """A micro-batch."""

    def __init__(self, *rows: tuple[str, int, int, int, bool]) -> None:
        self._rows = rows

    def select(self, *names: str) -> Frame:
        """All of it."""
        assert names == ("path", "offset", "bytes", "behind", "moved")
        return self

    def collect(self) -> list[tuple[Any, ...]]:
        """Its rows."""
        return [(json.dumps(path), *more) for path, *more in self._rows]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """(cluster -> copies, until) of the steps that were taken."""
    taken: list[Any] = []

    def take(warehouse: Any, copies: Any, *, until: Any, **more: Any) -> Summary:
        taken.append(({name: [Path(one.path).name for one in held] for name, held in copies.items()}, until))
        return DONE

    monkeypatch.setattr(stream_tables, "run_step", take)
    return taken


def stream_of(tmp_path: Path, said: list[str], spark: Any = None) -> TableStream:
    """One over the clusters x (copies a and b) and y."""
    for cluster, name in (("x", "a"), ("x", "b"), ("y", "c")):
        write_log(tmp_path / name / "__cluster_metadata-0", batch([value("NO_OP")] * 3))
        (tmp_path / name / "meta.properties").write_text(f"cluster.id={cluster}\nnode.id=1\n")
    sources = Sources({"path": str(tmp_path / "?")})
    return TableStream(Warehouse(tmp_path / "out", spark), sources, say=said.append)  # type: ignore[arg-type]


def test_a_micro_batch_takes_the_clusters_that_grew_up_to_where_they_did(tmp_path: Path, steps: list[Any]) -> None:
    said: list[str] = []
    stream = stream_of(tmp_path, said)
    path = f"{tmp_path}/%s/__cluster_metadata-0"
    stream._batch(Frame((path % "a", 2, 9, 0, True), (path % "b", 3, 9, 5, True)), 7)
    assert steps == [({"x": ["__cluster_metadata-0"] * 2}, {"x": 3})]
    stream._batch(Frame((path % "c", 1, 9, 0, True), (path % "gone", 8, 9, 0, True)), 8)
    assert steps[1:] == [({"y": ["__cluster_metadata-0"]}, {"y": 1})]
    assert said[0].startswith("micro-batch 7: 1 of 1 clusters, 3 records, 10 bytes in") and said[0].endswith(
        "5 bytes behind"
    )
    assert stream.clusters == {"x", "y"} and stream.summary == folded(DONE, DONE)


def test_what_could_not_be_read_is_taken_as_far_as_the_checkpoint_is(tmp_path: Path, steps: list[Any]) -> None:
    stream = stream_of(tmp_path, [])
    failed = {"x": {f"{tmp_path}/a": "refused"}}
    stream._warehouse.state = stream._warehouse.state._replace(failed=failed)
    path = f"{tmp_path}/%s/__cluster_metadata-0"
    stream._batch(Frame((path % "a", 3, 0, 5, False), (path % "b", 2, 9, 0, True)), 1)
    assert steps == [({"x": ["__cluster_metadata-0"] * 2}, {"x": 3})], "the checkpoint is beyond what a had"


def test_files_of_old_steps_are_removed_after_many_micro_batches(
    tmp_path: Path, steps: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []
    monkeypatch.setattr(stream_tables, "_TIDY", 2)

    def vacuum(*given: object, **more: object) -> dict[str, tuple[int, int]]:
        assert not more, "what readers may still need stays"
        done.append(len(steps))
        return {"topics": (1_200, 90_000), "files": (34, 7)}

    said: list[str] = []
    stream = stream_of(tmp_path, said)
    monkeypatch.setattr(stream._warehouse, "vacuum", vacuum, raising=False)
    for number in range(5):
        stream._batch(Frame((f"{tmp_path}/a/__cluster_metadata-0", number + 1, 9, 0, True)), number)
    assert done == [2, 4] and said.count("1,234 files of old steps were removed") == 2


def test_a_directory_whose_name_is_no_utf8(tmp_path: Path, steps: list[Any]) -> None:
    pytest.importorskip("pyarrow")
    growth = pytest.importorskip("kshell.spark.stream.growth")
    stream = stream_of(tmp_path, [])
    for name, odd in (("a", "caf\udce8"), ("b", "caf\udce9")):
        (tmp_path / name).rename(tmp_path / odd)
    stream._sources = Sources({"path": f"{tmp_path}/caf*"})
    stream._options = parse(stream._sources.options)
    reader = growth.GrowthReader(stream._options)
    begin = reader.initialOffset()
    (partition,) = reader.partitions(begin, json.loads(json.dumps(reader.latestOffset(begin))))
    (batch,) = reader.read(partition)
    rows = [tuple(row.values()) for row in batch.to_pylist()]
    assert len({path for path, *_ in rows}) == 2
    frame = type("Frame", (), {"select": lambda self, *names: self, "collect": lambda self: rows})()
    stream._batch(frame, 0)
    assert steps == [({"x": ["__cluster_metadata-0"] * 2}, {"x": 3})]


def test_what_a_step_raises_ends_the_query_as_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = stream_of(tmp_path, [])

    def failing(*given: Any, **more: Any) -> Any:
        raise SourceError("no")

    monkeypatch.setattr(stream_tables, "run_step", failing)

    class Query:
        stopped = False

        def awaitTermination(self, seconds: float) -> bool:  # noqa: N802
            with pytest.raises(SourceError):
                stream._batch(Frame(), 0)
            raise RuntimeError("StreamingQueryException")

        def stop(self) -> None:
            self.stopped = True

    query = Query()
    with pytest.raises(SourceError, match="no"):
        stream._follow(query)
    assert query.stopped


class LateWorker:
    """A query whose source's Python worker is up at the ``starts``-th start only."""

    def __init__(self, starts: int) -> None:
        self.starts = starts

    def awaitTermination(self, seconds: float) -> bool:  # noqa: N802
        self.starts -= 1
        if self.starts:
            raise RuntimeError("[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back.")
        return True

    def stop(self) -> None:
        pass


def test_a_python_worker_that_is_late_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    stream, query = stream_of(tmp_path, said), LateWorker(3)
    monkeypatch.setattr(stream, "_session", object)
    monkeypatch.setattr(stream, "_query", lambda *given: query)
    assert stream.run(str(tmp_path / "checkpoint")) == 0
    assert said == ["Spark's Python worker was not up within Spark's ten seconds; the stream starts again"] * 2


def test_a_python_worker_that_never_comes_ends_the_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    stream, query = stream_of(tmp_path, said), LateWorker(WORKER_STARTS + 1)
    monkeypatch.setattr(stream, "_session", object)
    monkeypatch.setattr(stream, "_query", lambda *given: query)
    with pytest.raises(CommandError, match=r"the stream ended: .* failed to connect back"):
        stream.run(str(tmp_path / "checkpoint"))
    assert len(said) == WORKER_STARTS - 1


def test_the_end_of_a_timeout_is_told_as_that(tmp_path: Path) -> None:
    class Query:
        stopped = False

        def awaitTermination(self, seconds: float) -> bool:  # noqa: N802
            raise DeadlineError("gave up")

        def stop(self) -> None:
            self.stopped = True

    query = Query()
    with pytest.raises(DeadlineError):
        stream_of(tmp_path, [])._follow(query)
    assert query.stopped


def test_a_signal_lets_the_micro_batch_end_and_no_other_begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    stream, events = stream_of(tmp_path, said), []
    begun = threading.Event()

    def slow(*given: Any, **more: Any) -> Summary:
        begun.set()
        threading.Event().wait(0.3)
        events.append("step ends")
        return DONE

    monkeypatch.setattr(stream_tables, "run_step", slow)

    class Query:
        def awaitTermination(self, seconds: float) -> bool:  # noqa: N802
            signal.raise_signal(signal.SIGTERM)
            return False

        def stop(self) -> None:
            events.append("stopped")

    thread = threading.Thread(target=stream._batch, args=(Frame(), 0))
    with stream._signals():
        thread.start()
        assert begun.wait(60)
        stream._follow(Query())
    thread.join()
    assert events == ["step ends", "stopped"]
    assert "stopping when this micro-batch is done" in said
    with pytest.raises(Stopping):
        stream._batch(Frame(), 1)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_session_that_starts_leaves_the_signals_to_the_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Query:
        def awaitTermination(self, seconds: float) -> bool:  # noqa: N802
            signal.raise_signal(signal.SIGTERM)
            return False

        def stop(self) -> None:
            pass

    said: list[str] = []
    stream = stream_of(tmp_path, said)
    with ExitStack() as sessions:
        monkeypatch.setattr(stream, "_session", lambda: sessions.enter_context(quiet(cast("Any", object()))))
        monkeypatch.setattr(stream, "_query", lambda *given: Query())
        try:
            stopped = stream.run(str(tmp_path / "checkpoint"))
        except KeyboardInterrupt:
            pytest.fail("the session took it")
        assert stopped == signal.SIGTERM
    assert said == ["stopping when this micro-batch is done"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_second_signal_is_told_as_that_whatever_the_jvm_says(tmp_path: Path) -> None:
    class Query:
        def awaitTermination(self, seconds: float) -> bool:  # noqa: N802
            raise KeyboardInterrupt

        def stop(self) -> None:
            raise RuntimeError("Py4JNetworkError")

    with pytest.raises(KeyboardInterrupt):
        stream_of(tmp_path, [])._follow(Query())


def test_clusters_that_other_tables_lack_come_first(tmp_path: Path, steps: list[Any]) -> None:
    stream = stream_of(tmp_path, [])
    stream._warehouse.state = WarehouseState(clusters={"x": ClusterState({})})
    stream._catch_up()
    assert steps == [({"y": ["__cluster_metadata-0"]}, None)]


def test_what_a_restore_took_back_comes_again(tmp_path: Path, steps: list[Any]) -> None:
    """Spark's checkpoint is beyond it: a cluster that does not grow any more would stay as it was restored."""
    stream = stream_of(tmp_path, [])
    warehouse: Any = stream._warehouse
    warehouse.state = WarehouseState(clusters=dict.fromkeys("xy", ClusterState({})))
    for last in ("run", "restore 1", "optimize"):
        warehouse.actions += ["stream", last] if last != "optimize" else [last]
        stream._catch_up()
    both = {"x": ["__cluster_metadata-0"] * 2, "y": ["__cluster_metadata-0"]}
    assert steps == [(both, None)] * 2
    warehouse.actions += ["stream"]
    stream._catch_up()
    assert len(steps) == 2, "the stream has done so"


def test_what_could_not_be_read_comes_again_until_it_can(
    tmp_path: Path, steps: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    failures: list[Any] = []
    without: Callable[..., Summary] = vars(stream_tables)["run_step"]

    def take(*given: Any, failed: Any, **more: Any) -> Summary:
        failures.append(reasons_of(failed))
        return without(*given, **more)

    monkeypatch.setattr(stream_tables, "run_step", take)
    stream = stream_of(tmp_path, [])
    stream._warehouse.state = WarehouseState(
        clusters=dict.fromkeys("xyz", ClusterState({})), failed={"y": {"c": "no"}, "z": {"d": "no"}}
    )
    refusing(monkeypatch, "a")
    path = f"{tmp_path}/%s/__cluster_metadata-0"
    stream._batch(Frame((path % "b", 3, 9, 0, True), (path % "c", 2, 0, 7, False)), 1)
    both = {"x": ["__cluster_metadata-0"], "y": ["__cluster_metadata-0"]}
    assert steps == [(both, {"x": 3, "y": 2})], "the checkpoint is beyond what y did not give"
    assert failures == [{"x": {path % "a": f"{path % 'a'}: permission denied"}}]
    stream._catch_up()
    assert steps[1:] == [({"y": ["__cluster_metadata-0"]}, None)]


def test_a_stream_whose_only_cluster_cannot_be_read_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = stream_of(tmp_path, [])
    refusing(monkeypatch, "a", "b", "c")
    with pytest.raises(SourcePermissionError):
        stream._take([], 0)


def test_two_streams_do_not_share_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = stream_of(tmp_path, []), stream_of(tmp_path, [])

    def meanwhile(self: Any) -> Any:
        with pytest.raises(CommandError, match="is writing there"):
            two.run(str(tmp_path / "checkpoint"))
        raise UsageError("enough")

    monkeypatch.setattr(TableStream, "_session", meanwhile)
    with pytest.raises(UsageError, match="enough"):
        one.run(str(tmp_path / "checkpoint"))
    for inside in ("out", "out/", "out/checkpoint"):
        with pytest.raises(UsageError, match="among the tables"):
            one.run(str(tmp_path / inside))


def test_not_through_connect(tmp_path: Path) -> None:
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with pytest.raises(UsageError, match="Spark Connect"):
        stream_of(tmp_path, [], remote).run(str(tmp_path / "checkpoint"))


def test_size_is_that_of_the_logs(tmp_path: Path) -> None:
    assert stream_of(tmp_path, []).size() == 3 * len(batch([value("NO_OP")] * 3))


def test_several_steps_as_one() -> None:
    later = DONE._replace(step=4, clusters=("x", "y"), rows={"records": 1, "files": 2}, copies=({"clusterId": "y"},))
    made = folded(DONE, later)
    assert (made.step, made.clusters, made.bytes_read) == (4, ("x", "y"), 20)
    assert made.rows == {"records": 4, "files": 2} and made.quarantine == {("torn", "cut"): 2}
    assert made.copies == ({"clusterId": "y"},), "what was last said of each cluster"
    assert folded(made, NOTHING) == folded(NOTHING, made) == made
    lost = {"clusterId": "z", "state": "unreadable"}
    made = folded(made, DONE._replace(clusters=(), copies=(lost,), unread_code=3))
    assert made.copies == ({"clusterId": "y"}, lost) and made.unread_code == 3
    assert folded(made, NOTHING).copies == ({"clusterId": "y"},), "it can be read again"


def test_a_stream_without_end_keeps_no_more_with_every_step() -> None:
    made = folded(NOTHING, DONE._replace(quarantine={("batch", "bad CRC"): 1}))
    for number in range(3000):
        made = folded(made, DONE._replace(step=number, quarantine={("torn", f"at {number}"): 2}))
    assert len(pickle.dumps(made)) < 50_000
    assert (made.step, made.rows, made.copies) == (2999, {"records": 9003}, DONE.copies)
    assert made.is_damaged, "what decides the exit code stays"


@pytest.mark.parametrize(
    "words",
    [
        ["--out", "x", "--checkpoint", "y"],
        ["--source", "x", "--checkpoint", "y"],
        ["--source", "x", "--out", "y"],
        ["--source", "x", "--out", "y", "--checkpoint", "z", "--every", "30"],
        ["--source", "x", "--out", "y", "--checkpoint", "z", "--every", "1s", "--available-now"],
        ["--source", "x", "--out", "y", "--checkpoint", "z", "--max-bytes", "0"],
        ["--source", "x", "--out", "y", "--checkpoint", "z", "--max-bytes", "64mb"],
        ["--source", "ftp://host/x", "--out", "y", "--checkpoint", "z"],
    ],
)
def test_lines_that_are_not_understood(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["stream", *words]) == 2
