"""Records in the form that controllers write are found by a short way; it must find what the long one finds."""

from __future__ import annotations

import random

import pytest

from kshell.protocol.batches import RawRecord, iter_records, plain_values, read_record
from kshell.protocol.primitives import DecodeError
from tests.builders import TIME, batch, parsed, timed_batch, value


def _long_way(raw: bytes) -> list[RawRecord] | str:
    found = parsed(raw)
    region, at, end = found.region()
    records: list[RawRecord] = []
    try:
        for index in range(found.records):
            record, at = read_record(region[:end], at, found)
            if record.offset != found.base_offset + index:
                return "damaged"
            records.append(record)
    except DecodeError:
        return "damaged"
    return records if at == end else "damaged"


def _iterated(raw: bytes) -> list[RawRecord] | str:
    try:
        return list(iter_records(parsed(raw)))
    except DecodeError:
        return "damaged"


def _values(rng: random.Random) -> list[bytes]:
    return [
        bytes(rng.choices(range(256), k=rng.choice((0, 1, 30, 63, 64, 200, 9000)))) for _ in range(rng.randint(1, 90))
    ]


@pytest.mark.parametrize("seed", range(10))
def test_any_batch_and_any_damage_to_its_records(seed: int) -> None:
    rng = random.Random(seed)
    values = _values(rng)
    raw = bytearray(batch(values, base_offset=7) if seed % 2 else timed_batch(values, [TIME] * len(values), 7))
    assert _iterated(bytes(raw)) == _long_way(bytes(raw))
    for _ in range(400):
        at = rng.randrange(61, len(raw)) if rng.random() < 0.5 else rng.randrange(61, min(len(raw), 90))
        before, raw[at] = raw[at], rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF, raw[at] ^ 1 << rng.randrange(8)))
        assert _iterated(bytes(raw)) == _long_way(bytes(raw)), at
        raw[at] = before


def test_what_controllers_write_goes_the_short_way() -> None:
    values = [value("NO_OP")] * 300
    found = parsed(batch(values))
    region, start, end = found.region()
    bounds = plain_values(region, start, end, 300)
    assert bounds is not None
    assert [region[at:stop] for at, stop in zip(bounds[::2], bounds[1::2], strict=True)] == values


@pytest.mark.parametrize("count", [299, 301])
def test_a_wrong_count_does_not(count: int) -> None:
    region, start, end = parsed(batch([value("NO_OP")] * 300)).region()
    assert plain_values(region, start, end, count) is None
