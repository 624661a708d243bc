"""Gold in many steps: what is kept, and what is made again, are together what is made of everything at once."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.spark import gold
from kshell.spark.files.scan import find
from kshell.spark.options import SLICE_BYTES
from kshell.spark.reconcile import Checkpoint, ReconciledLog, Request, reconcile
from kshell.spark.steps.step import advance
from kshell.spark.tables.catalog import CLOSED
from kshell.spark.tables.gold_table import GoldTable
from kshell.spark.tables.warehouse import Warehouse
from tests.builders import sealed, value, write_log
from tests.spark.gold import churn
from tests.spark.gold.busy import BEGIN, DAY, HOUR, RACKS, Clock, Cluster, right
from tests.spark.gold.frames import comparable
from tests.spark.gold.only import only_gold
from tests.spark.reading import dumped

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SETTLING = {name: table for name, table in gold.tables().items() if table.final_by}


@pytest.fixture(autouse=True)
def no_others() -> Iterator[None]:
    """Steps make no other gold tables: these do not need them."""
    with only_gold(SETTLING):
        yield


def wrong(seed: int) -> Clock:
    """A clock that goes wrong now and then: by minutes often, by hours seldom, by days hardly ever; or shows none."""
    some = random.Random(seed)

    def shown(ms: int) -> int:
        pick = some.random()
        if pick > 0.998:
            return some.choice((0, -1))
        reach = 5 * DAY if pick < 0.002 else 3 * HOUR if pick < 0.02 else HOUR // 3 if pick < 0.2 else 0
        return max(0, ms + some.randint(-reach, reach))

    return shown


def one_truth(warehouse: Warehouse, name: str, node: Path, until: int) -> ReconciledLog:
    """A log up to an offset."""
    known = warehouse.state.clusters.get(name)
    reached = None if known is None else Checkpoint.from_json(known.reached)
    return reconcile(find([str(node)]), Request(name, SLICE_BYTES, reached, until=until))


def held(warehouse: Warehouse, names: list[str]) -> None:
    """The settling tables are those that all of silver gives at once."""
    for name, table in SETTLING.items():
        kept = [row.asDict() for row in warehouse.read(name).drop("isFinal").collect()]
        assert comparable(kept) == comparable(at_once(warehouse, table, names)), name


def at_once(warehouse: Warehouse, table: GoldTable, names: list[str]) -> list[dict[str, Any]]:
    given = {need: warehouse.read(need, () if need == table.name else names) for need in table.needs}
    return [row.asDict() for row in table.made_of(given).drop("untilMs").collect()]


def in_steps(
    spark: Any, place: Path, logs: dict[str, Path], some: random.Random, steps: int, often: int = 1
) -> Warehouse:
    """All of the logs in steps of any length; the tables held against what they should be after so many of them."""
    warehouse = Warehouse(spark, str(place))
    ends = {name: dumped(node / METADATA_DIRECTORY)[0][-1][0] + 1 for name, node in logs.items()}
    cuts = {name: [*sorted(some.sample(range(1, end), steps - 1)), end] for name, end in ends.items()}
    with warehouse.writing():
        for number in range(steps):
            found = [one_truth(warehouse, name, node, cuts[name][number]) for name, node in logs.items()]
            advance(warehouse, found)
            if not (steps - 1 - number) % often:
                held(warehouse, list(logs))
    return warehouse


@pytest.mark.soak
@pytest.mark.long
def test_a_clock_that_goes_wrong_by_days_makes_all_of_it_anew(spark: Any, tmp_path: Path) -> None:
    bad = range(BEGIN + 11 * DAY, BEGIN + 12 * DAY)
    node = churn.month(tmp_path / "one", 8, lambda ms: ms - 6 * DAY if ms in bad else ms)
    warehouse = Warehouse(spark, str(tmp_path / "out"))
    written: dict[str, int] = {}
    with warehouse.writing():
        for until, kept in {1000: [1], 1200: [1, 2], 1400: [3]}.items():
            advance(warehouse, [one_truth(warehouse, "one", node, until)])
            assert final_steps(warehouse, written) == kept
    held(warehouse, ["one"])


def final_steps(warehouse: Warehouse, written: dict[str, int]) -> list[int]:
    """The steps that have written the files of ``leadership`` whose rows are final; called after each of them.

    ``written``: what it knows of files from earlier calls.
    """
    paths = [file.path for file in warehouse.files("leadership", CLOSED)]
    return sorted({written.setdefault(path, warehouse.state.step) for path in paths})


def without_time(raw: bytes) -> bytes:
    """A batch of one record, with a time that no 64 bits hold."""
    made, at = bytearray(raw), 61
    while made[at] & 0x80:
        at += 1
    made[at + 2] = 1  # the difference to the batch's time: -1
    struct.pack_into(">q", made, 27, -1 << 63)
    return sealed(made)


@pytest.mark.soak
@pytest.mark.long
def test_records_without_a_time(spark: Any, tmp_path: Path) -> None:
    made = Cluster(1)
    for broker in RACKS:
        made.register(broker)
        made.registration(broker, fenced=-1)
    made.topic("t", 2, 3)
    one, other = made.parts
    leaders = [next(broker for broker in part.replicas if broker != part.leader) for part in made.parts]
    made.ms += DAY
    made.write(made.change(one, leader=-1))
    made.batches[-1] = without_time(made.batches[-1])
    made.write(made.change(other, leader=leaders[1]), back=made.ms)
    ends: list[int] = []
    for days in (2, 2, 30, 30):
        made.ms += days * DAY
        made.write(value("NO_OP") if days == 2 and not ends else made.change(one, leader=leaders[len(ends) % 2]))
        ends.append(made.offset)
    write_log(tmp_path / "one" / METADATA_DIRECTORY, *made.batches)
    warehouse, written = Warehouse(spark, str(tmp_path / "out")), dict[str, int]()
    with warehouse.writing():
        for until in ends:
            advance(warehouse, [one_truth(warehouse, "one", tmp_path / "one", until)])
            steps = final_steps(warehouse, written)
            if until >= ends[-2]:
                held(warehouse, ["one"])
    assert steps[0] == 1, "it went on"
    assert sum(row.gained for row in warehouse.read("leadership").collect()) >= 2


def final_rows(warehouse: Warehouse, name: str, cluster: str) -> list[int]:
    """How many rows of a cluster were final after each step."""
    table, found = warehouse.table(name), []
    for version in (row["versions"][name] for row in warehouse.log.rows() if row["phase"] == "done"):
        files = [file for file in table.files_at(version).values() if file.partition == "true"]
        clusters = [row["clusterId"] for rows in table.writer.read(files) for row in rows.to_pylist()]
        found.append(clusters.count(cluster))
    return found


@pytest.mark.soak
@pytest.mark.long
def test_months_in_steps_with_clocks_of_any_kind(spark: Any, tmp_path: Path, soak_count: int) -> None:
    for seed in range(soak_count):
        place = tmp_path / str(seed)
        clocks = {"right": right, "wrong": wrong(seed)}
        logs = {name: churn.month(place / name, seed, clock) for name, clock in clocks.items()}
        warehouse = in_steps(spark, place / "out", logs, random.Random(seed), min(3 * soak_count, 6), often=3)
        for name in SETTLING:
            first, *_, before, last = final_rows(warehouse, name, "right")
            assert before > 0 and first < last, "in several steps"
            assert warehouse.state.rows[name] <= warehouse.read(name).count() - before, "rows are kept"
            assert warehouse.read(name, ["right"], CLOSED).count() == last
        assert all(one.settled_ms and one.settled_ms % DAY == 0 for one in warehouse.state.clusters.values())
