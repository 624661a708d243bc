"""Whatever a log is, sound or damaged: what a walk finds does not hang on how it is walked.

Most batches are allowed by what allowed the one before them, without being judged; most are read from a window that
holds all around them. Random logs are walked with every batch judged, from a new start at every batch, and through
windows that hold hardly one.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from kshell.errors import CorruptDataError
from kshell.protocol import verify
from kshell.protocol.batches import CRC_START, HEADER_SIZE, Batch
from kshell.protocol.verify import Chain, FixedEpoch, LeaderEpochs, RisingEpochs, find_batch
from kshell.protocol.windows import Window, Windowed, windowed
from tests.builders import batch, control, control_batch, leader_change, sealed, value

Epochs = LeaderEpochs | FixedEpoch | RisingEpochs
SEEDS = range(600)
NOTHING = value("NO_OP")
LARGE = value("TOPIC", name="x" * 700)
OTHER = control(5, kRaftVersion=1)
INTEGERS = {0: ">q", 8: ">i", 12: ">i", 16: ">b", 17: ">I", 21: ">h", 23: ">i", 57: ">i"}
"""Where a header has its offset, length, epoch, magic, CRC, attributes, last offset delta and count; and their form."""


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that there can be one that is too large."""
    monkeypatch.setattr(verify, "MAX_BATCH", 1000)


class EveryBatchJudged(LeaderEpochs):
    """The rules alone: no batch passes because the one before it did."""

    fault = LeaderEpochs._examine


class Log(NamedTuple):
    """Files of a log one after another, and the lines of its ``leader-epoch-checkpoint``."""

    files: list[bytes]
    history: list[tuple[int, int]]


def made(seed: int) -> Log:
    """A log of few batches, which may be damaged."""
    rng = random.Random(seed)
    parts, history = _batches(rng)
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        rng.choice(DAMAGE)(rng, parts)
    cuts = sorted(rng.randint(0, len(parts)) for _ in range(rng.choice((0, 0, 1, 2))))
    files = [b"".join(parts[start:end]) for start, end in zip([0, *cuts], [*cuts, len(parts)], strict=True)]
    if rng.random() < 0.2:
        files[-1] = files[-1][: rng.randint(0, len(files[-1]))]
    if rng.random() < 0.2:
        files[rng.randrange(len(files))] += bytes(rng.choice((1, 30, 61, 500)))
    return Log(files, _lines(rng, history))


def _batches(rng: random.Random) -> tuple[list[bytes], list[tuple[int, int]]]:
    """Batches, and the true starts of their epochs."""
    offset, epoch = rng.choice((0, 0, 7, (1 << 63) - 100)), rng.choice((0, 1, 5))
    parts: list[bytes] = []
    history = [(epoch, offset)]
    surprises = rng.choice((0.0, 0.0, 0.15))
    if rng.random() < 0.7:
        parts.append(control_batch([leader_change()], offset, epoch))
        offset += 1
    for _ in range(rng.randint(1, 14)):
        if rng.random() < 0.25:
            epoch += rng.choice((1, 1, 3))
            history.append((epoch, offset))
            if rng.random() < 0.2:  # as Kafka 3.3 can write it: a record comes before the LeaderChange
                parts.append(batch([NOTHING], offset, epoch))
                offset += 1
            if rng.random() >= surprises:
                parts.append(control_batch([leader_change()], offset, epoch))
                offset += 1
        kind, records = rng.random(), rng.randint(1, 3)
        its_epoch = max(0, epoch + rng.choice((-1, 1, 2))) if rng.random() < surprises / 2 else epoch
        if kind < surprises:
            pairs = rng.choice(([OTHER], [leader_change()], [leader_change(), OTHER], [(None, None)]))
            parts.append(control_batch(pairs, offset, its_epoch))
            records = len(pairs)
        else:
            values = [NOTHING] * (records - 1) + [rng.choice((NOTHING, NOTHING, NOTHING, LARGE))]
            parts.append(batch(values, offset, its_epoch))
        offset += records
    return parts, history


def _lines(rng: random.Random, history: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The lines of a checkpoint: none, all, those of some time ago, or wrong ones."""
    form = rng.randrange(5)
    if form == 0:
        return []
    lines = history[: rng.randint(1, len(history))] if form == 2 else list(history)
    if form == 3:
        lines = lines[rng.randrange(len(lines)) :]
    if form == 4:
        lines = [(max(0, epoch + rng.choice((-1, 0, 0, 1))), start + rng.randint(-2, 2)) for epoch, start in lines]
    return sorted(lines, key=lambda line: line[1])


def _flip(rng: random.Random, parts: list[bytes]) -> None:
    at = rng.randrange(len(parts))
    raw = bytearray(parts[at])
    if raw:
        raw[rng.randrange(min(len(raw), rng.choice((HEADER_SIZE, 1000))))] ^= 1 << rng.randrange(8)
    parts[at] = bytes(raw)


def _rewrite(rng: random.Random, parts: list[bytes]) -> None:
    """Another number in a header, which its CRC may agree to."""
    at = rng.choice((0, rng.randrange(len(parts))))
    raw = bytearray(parts[at])
    if len(raw) <= HEADER_SIZE:
        return
    place = rng.choice(list(INTEGERS))
    form = INTEGERS[place]
    bits = 8 * struct.calcsize(form)
    (number,) = struct.unpack_from(form, raw, place)
    number += rng.choice((-1000, -1, 1, 2, 60, 1 << (bits - 2), 1 << (bits - 1)))
    raw[place : place + bits // 8] = (number % (1 << bits)).to_bytes(bits // 8, "big")
    parts[at] = sealed(raw) if place >= CRC_START else bytes(raw)


def _claim(rng: random.Random, parts: list[bytes]) -> None:
    """Another length."""
    at = rng.randrange(len(parts))
    if len(parts[at]) > HEADER_SIZE:
        parts[at] = parts[at][:8] + rng.randint(0, 2000).to_bytes(4, "big") + parts[at][12:]


def _swap(rng: random.Random, parts: list[bytes]) -> None:
    one, other = rng.randrange(len(parts)), rng.randrange(len(parts))
    parts[one], parts[other] = parts[other], parts[one]


def _drop(rng: random.Random, parts: list[bytes]) -> None:
    parts[rng.randrange(len(parts))] = b""


def _repeat(rng: random.Random, parts: list[bytes]) -> None:
    parts.insert(rng.randrange(len(parts)), rng.choice(parts))


def _cut(rng: random.Random, parts: list[bytes]) -> None:
    at = rng.randrange(len(parts))
    parts[at] = parts[at][: rng.randint(0, len(parts[at]))]


def _fill(rng: random.Random, parts: list[bytes]) -> None:
    parts.insert(rng.randrange(len(parts) + 1), rng.choice((bytes, rng.randbytes))(rng.randint(1, 200)))


DAMAGE: list[Callable[[random.Random, list[bytes]], None]] = [
    _flip,
    _rewrite,
    _claim,
    _swap,
    _drop,
    _repeat,
    _cut,
    _fill,
]


class Pieces:
    """Bytes through windows of a size, or of what is asked for."""

    def __init__(self, raw: bytes, piece: int) -> None:
        self.size = len(raw)
        self._raw = raw
        self._piece = piece

    def window(self, position: int, size: int) -> Window:
        return Window(self._raw[position : position + max(size, self._piece)], position)

    def data_from(self, position: int) -> int:
        return position


Event = tuple[Any, ...]


def _steps(chain: Chain, data: bytes | Windowed, file: str, position: int) -> Iterator[Batch]:
    """A walk, with a new start at every batch."""
    size = windowed(data).size
    while position < size:
        found = next(chain.walk(data, file, position), None)
        if found is None:
            return
        yield found
        position = found.end


def events(
    files: list[bytes],
    epochs: Epochs,
    *,
    source: Callable[[bytes], bytes | Windowed] = bytes,
    walk: Callable[[Chain, bytes | Windowed, str, int], Iterator[Batch]] = Chain.walk,
) -> Iterator[Event]:
    """All that a walk over files finds; damage is stepped over, as ``LogReader`` does. ``None``s between the events are
    for who wants to look at ``epochs``.
    """
    expected: int | None = None
    for number, raw in enumerate(files):
        file, data = f"{number}", source(raw)
        position: int | None = 0
        while position is not None:
            chain = Chain(epochs, expected)
            try:
                for found in walk(chain, data, file, position):
                    expected = chain.next_offset
                    assert expected == found.last_offset + 1
                    yield "batch", file, found._replace(buf=found.raw(), start=0)
                position = None
                if chain.torn is not None:
                    yield "torn", file, chain.torn
            except CorruptDataError as error:
                yield "damage", error.file, error.position, error.reason
                following = find_batch(data, error.position + 1)
                position, expected = following and following.position, None


def state(epochs: LeaderEpochs) -> dict[str, Any]:
    """What is known of the epochs so far."""
    known = {name: known for name, known in vars(epochs).items() if name != "_line_end"}
    last = known["_last"]
    return known | {"_last": last and last._replace(buf=last.raw(), start=0)}


def rules(log: Log, seed: int) -> list[Callable[[], Epochs]]:
    """What the epochs of a file can be held against."""
    first = log.history[0][0] if log.history else seed % 3
    return [lambda: LeaderEpochs(log.history), lambda: FixedEpoch((None, first)[seed % 2]), RisingEpochs]


def test_the_random_logs_hold_what_they_are_made_for() -> None:
    found = [list(events(log.files, LeaderEpochs(log.history))) for log in map(made, SEEDS)]
    assert sum(all(event[0] == "batch" for event in log) for log in found) > len(SEEDS) // 15
    wrong = [event for log in found for event in log if event[0] != "batch"]
    reasons = {event[3] if event[0] == "damage" else event[2].reason for event in wrong}
    for part in (
        "CRC does not match", "magic", "claims a length", "the maximum is", "are left", "a whole batch follows",
        "it is whole", "was expected", "records over", "outside 0 to", "falls", "without a LeaderChange",
        "does not raise", "leader-epoch-checkpoint says", "the batches after it have", "bytes of a batch", "zero bytes",
    ):  # fmt: skip
        assert any(part in reason for reason in reasons), part


def test_what_passes_without_being_judged_would_have_passed_and_leaves_the_same_behind() -> None:
    passed = 0
    for seed in SEEDS:
        log = made(seed)
        mine, reference = LeaderEpochs(log.history), EveryBatchJudged(log.history)
        walks = events(log.files, mine), events(log.files, reference)
        for found, expected in zip(*walks, strict=True):
            assert found == expected, seed
            assert state(mine) == state(reference), seed
            if seed % 3 == 0:
                mine.prove_first()
                reference.prove_first()
            passed += found[0] == "batch"
    assert passed > len(SEEDS)


def test_a_walk_that_begins_again_at_every_batch_finds_the_same() -> None:
    for seed in SEEDS:
        log = made(seed)
        for make in rules(log, seed):
            assert list(events(log.files, make(), walk=_steps)) == list(events(log.files, make())), seed


@pytest.mark.parametrize(("piece", "near"), [(1, 1 << 20), (600, 1 << 20), (1500, 500)])
def test_a_walk_through_windows_finds_the_same(piece: int, near: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_NEAR", near)
    for seed in SEEDS:
        log = made(seed)
        for make in rules(log, seed):
            walks = [
                list(events(log.files, make(), source=source)) for source in (bytes, lambda raw: Pieces(raw, piece))
            ]
            assert walks[0] == walks[1], seed
