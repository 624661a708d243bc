"""``spark.readStream.format("kraft")``: exactly once over restarts, in bounded micro-batches."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.spark.failures import WORKER_STARTS, is_late_worker
from tests.builders import FIXTURES, batch, value, write_log
from tests.notebooks import sparks
from tests.spark.reading import COLUMNS, dumped, rows
from tests.spark.stream.growing import growing

pytestmark = [pytest.mark.spark, pytest.mark.slow]
NODE = FIXTURES / "4.2.1-rolled/controller-3002"


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session on this machine alone, which knows the format."""
    with sparks.session(tmp_path_factory.mktemp("spark")) as session:
        import kshell.spark

        kshell.spark.register(session)
        yield session


class Query:
    """A streaming query that is started again and again; what its micro-batches hold."""

    def __init__(self, spark: Any, path: Path, checkpoint: Path, **options: str) -> None:
        self._reader = spark.readStream.format("kraft").options(**options).load(str(path))
        self._checkpoint = checkpoint
        self.batches: dict[int, list[Any]] = {}
        self.fails_at: int | None = None

    def _batch(self, frame: Any, number: int) -> None:
        self.batches[number] = frame.collect()
        if number == self.fails_at:
            raise RuntimeError("killed")

    def start(self) -> Any:
        """The query; it ends when all that is there now was read."""
        writer = self._reader.writeStream.foreachBatch(self._batch)
        return writer.option("checkpointLocation", str(self._checkpoint)).trigger(availableNow=True).start()

    def finish(self) -> list[Any]:
        """Runs to the end; the rows of all micro-batches so far. A worker that a busy machine starts late is no end."""
        for starts_left in reversed(range(WORKER_STARTS)):
            try:
                self.start().awaitTermination()
                break
            except Exception as error:
                if not starts_left or not is_late_worker(error):
                    raise
        return [row for number in sorted(self.batches) for row in self.batches[number]]


def test_a_growing_directory_in_bounded_micro_batches_over_restarts(spark: Any, tmp_path: Path) -> None:
    pieces = growing(NODE / METADATA_DIRECTORY, tmp_path / "c" / METADATA_DIRECTORY, random.Random(2))
    for _ in range(8):
        next(pieces)
    query = Query(spark, tmp_path / "*", tmp_path / "checkpoint", maxBytesPerTrigger="9000")
    query.fails_at = 1
    with pytest.raises(Exception, match="killed"):
        query.finish()
    query.fails_at = None
    failed = query.batches[1]
    for _ in pieces:
        pass
    made = query.finish()
    assert query.batches[1] == failed, "the micro-batch that failed comes again as it was"
    assert [tuple(row[name] for name in COLUMNS) for row in made] == dumped(NODE)[0]
    assert len(query.batches) > 4
    assert max(map(len, query.batches.values())) < len(made) / 2


@pytest.mark.parametrize("view", ["quarantine", "PARTITION"])
def test_other_views_are_what_a_read_gives(spark: Any, tmp_path: Path, view: str) -> None:
    cluster = tmp_path / "c"
    write_log(cluster, batch([value("PARTITION")] * 3), b"\xff" + batch([value("NO_OP")], 3)[1:], batch([b"\1"], 4))
    query = Query(spark, cluster, tmp_path / "checkpoint", view=view)
    assert [row.asDict(recursive=True) for row in query.finish()] == rows(cluster, view=view)
    assert len(query.batches) == 1
    query.finish()
    assert len(query.batches) == 1


def test_latest_begins_with_what_comes_after_the_start(spark: Any, tmp_path: Path) -> None:
    write_log(tmp_path / "c", batch([value("NO_OP")] * 3))
    query = Query(spark, tmp_path / "*", tmp_path / "checkpoint", startingOffsets="latest", columns="offset")
    assert query.finish() == []
    write_log(tmp_path / "c", batch([value("NO_OP")] * 3), batch([value("NO_OP")], 3))
    write_log(tmp_path / "d", batch([value("NO_OP")]))
    assert sorted(row.offset for row in query.finish()) == [0, 3]


def test_a_file_that_goes_while_it_is_read_fails_the_micro_batch(tmp_path: Path) -> None:
    from kshell.errors import UnreadError
    from kshell.spark.options import parse
    from kshell.spark.stream.source import KraftStreamReader

    segment = write_log(tmp_path / "c", batch([value("NO_OP")]))
    reader = KraftStreamReader(parse({"path": str(tmp_path / "c")}))
    (part,) = reader.partitions(reader.initialOffset(), reader.latestOffset())
    segment.unlink()
    with pytest.raises(UnreadError, match="is gone since it was listed"):
        list(reader.read(part))


def test_a_spark_that_says_neither_start_nor_limit(tmp_path: Path) -> None:
    """4.1."""
    from kshell.spark.options import parse
    from kshell.spark.stream.source import KraftStreamReader

    write_log(tmp_path / "c", *(batch([value("NO_OP")], number) for number in range(10)))
    options = parse({"path": str(tmp_path / "c"), "maxBytesPerTrigger": "1"})
    reader = KraftStreamReader(options)
    ends = [reader.initialOffset(), *(reader.latestOffset() for _ in range(11))]
    offsets = [next(iter(end.values()))["offset"] if end else 0 for end in ends]
    assert offsets == [*range(11), 10]
    again = KraftStreamReader(options)
    assert again.latestOffset() == ends[-1], "after a restart all there is, which is no less than before"
    again = KraftStreamReader(options)
    again.partitions(ends[2], ends[3])
    assert again.latestOffset() == ends[4], "unless a micro-batch came again"


@pytest.mark.parametrize("name", ["since", "until"])
def test_a_point_that_moves_with_each_restart_is_refused(name: str) -> None:
    from kshell.errors import UsageError
    from kshell.spark.options import parse
    from kshell.spark.stream.source import KraftStreamReader

    with pytest.raises(UsageError, match=f"{name}: a stream takes no relative time") as raised:
        KraftStreamReader(parse({"path": "/a", name: "-15m"}))
    assert "2026-01-31" in (raised.value.hint or "")
    for fixed in ("5", "2026-01-31T12:00:00Z", "now"):
        KraftStreamReader(parse({"path": "/a", name: fixed}))


def test_what_a_stream_does_not_have(spark: Any, tmp_path: Path) -> None:
    write_log(tmp_path / "c", batch([value("NO_OP")]))
    with pytest.raises(Exception, match="no view files"):
        Query(spark, tmp_path / "c", tmp_path / "checkpoint", view="files").finish()
    with pytest.raises(Exception, match="no such file or directory"):
        Query(spark, tmp_path / "nowhere", tmp_path / "checkpoint").finish()
