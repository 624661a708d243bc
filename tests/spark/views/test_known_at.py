"""The states that times mean, without Spark: the shell's, on logs whose clocks step back, with gaps and snapshots."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kshell.errors import DataError
from kshell.metadata.image import Image
from kshell.protocol.batches import write_batch
from kshell.sources.directory.source import DirectorySource
from kshell.sources.points import Point, offset_at
from kshell.spark.tables.steps import ClusterState
from kshell.spark.views.moment import is_known_at, known_by, moment_of
from tests.builders import TIME, metadata, snapshot, value, write_log, write_snapshot
from tests.spark.reading import needs_arrow
from tests.spark.reconcile.tables import Tables

DIRECTORIES = 80
BATCHES = 24


def write(path: Path, seed: int) -> None:
    """A log whose clock steps back now and then; some of its segments and snapshots are lost."""
    chosen, state, now, offset = random.Random(seed), dict[str, bytes](), TIME, 0
    lost = chosen.choice((0.0, 0.0, 0.4, 0.8))
    path.mkdir(parents=True)
    for _ in range(chosen.randint(2, BATCHES // 3)):
        base, parts = offset, []
        for _ in range(3):
            now += chosen.choice((0, 10, 10, 30, 30, -20, -50))
            time = chosen.choice((*[now] * 9, -1))
            made = {key: _config(key, f"{offset}{key}") for key in chosen.sample("abc", chosen.randint(1, 3))}
            state |= made
            pairs: list[Any] = [(None, one) for one in made.values()]
            parts.append(write_batch(pairs, base_offset=offset, epoch=1, timestamp=time))
            offset += len(made)
            if chosen.random() < 0.3 and chosen.random() >= lost / 2:
                write_snapshot(path, snapshot(list(state.values()), timestamp=time), offset)
        if chosen.random() >= lost:
            write_log(path, *parts, base_offset=base)


def _config(key: str, said: str) -> bytes:
    return value("CONFIG", resourceType=2, resourceName="t", name=key, value=said)


def shell(source: DirectorySource, time_ms: int) -> Image | None:
    """The state at a time; ``None`` where the shell does not know it."""
    try:
        return source.load(until=offset_at(source.listing(full_log=True), time_ms)).image
    except DataError:
        return None


@needs_arrow
def test_what_a_time_means_is_what_the_shell_says(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    for seed in range(DIRECTORIES):
        path = tmp_path / str(seed)
        write(path, seed)
        if not list(path.iterdir()):
            continue
        tables, source = Tables(), DirectorySource(str(path))
        reached = tables.step(path).checkpoint._asdict()
        log = [(row["offset"], row["timestampMs"]) for row in tables.rows if not row["isSnapshot"]]
        times = [when for _, when in log]
        for time_ms in sorted({at + by for at in {*times, TIME + 100} if at > 0 for by in (-5, 0, 5)}):
            after = min((offset for offset, when in log if when > time_ms), default=None)
            then, theirs = known_by(reached, time_ms, after), shell(source, time_ms)
            ours = tables.at(then) if then is not None else None
            place = f"{seed}: {time_ms - TIME}"
            if theirs is None and then is not None and then >= (reached["state_end"] or 0):
                seen["behind"] += 1  # after all that was read, it is what is known now
            elif theirs is None:
                # Before the first record of a whole log the shell has no state, a fleet a cluster without topics.
                assert ours is None or not metadata(ours), place
                seen["unknown"] += ours is None
            else:
                assert ours is not None and then is not None, place
                assert metadata(ours) == metadata(theirs), place
                seen["known"] += 1
                seen["backwards"] += any(when > time_ms for offset, when in log if offset <= then)
                seen["taken back"] += any(0 <= when <= time_ms for offset, when in log if offset > then)
    assert seen["backwards"] == 0
    assert min(seen["known"], seen["unknown"], seen["taken back"]) > 50, seen


def test_what_is_known_of_offsets() -> None:
    reached = {
        "state_ranges": [[20, 40, 100, 200], [60, 60, 300, 300], [80, 90, 350, 400]],
        "offset": 100,
        "state_end": 90,
    }
    known = [offset for offset in range(110) if is_known_at(reached, offset)]
    assert known == [*range(19, 40), 59, *range(79, 90), *range(99, 110)]
    assert is_known_at({"state_ranges": [[0, 5, 1, 2]], "offset": 5, "state_end": 5}, -1)
    assert not is_known_at({"state_ranges": [], "offset": 5, "state_end": None}, 3)


def test_a_state_before_damage_is_told_from_that_at_the_end_of_the_log() -> None:
    whole = {"state_ranges": [[0, 9, 1, 2]], "offset": 9, "state_end": 9}
    cut = {"state_ranges": [[0, 5, 1, 2]], "offset": 9, "state_end": 5}
    warehouse: Any = SimpleNamespace(
        state=SimpleNamespace(clusters={"cut": ClusterState(cut), "whole": ClusterState(whole)})
    )
    assert moment_of(warehouse, Point()).outdated == ("cut",)
    told = {offset: moment_of(warehouse, Point(offset=offset))[1:] for offset in (3, 4, 5, 7, 8, 20)}
    assert told == {
        3: ((), ()), 4: ((), ()), 5: (("cut",), ()), 7: (("cut",), ()), 8: ((), ("cut",)), 20: ((), ("cut",)),
    }  # fmt: skip
