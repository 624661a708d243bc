"""Records of many batches at once are where :func:`iter_records` finds them; batches of any other form are told."""

from __future__ import annotations

import random
import struct

import pytest

from kshell.protocol.batches import APPEND_TIME_BIT, iter_records, read_header, write_batch
from kshell.protocol.checksum import crc32c
from kshell.protocol.primitives import write_varint
from tests.builders import TIME, batch, batches, control_batch, leader_change, parsed, value
from tests.columnar.alone import same

pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

pytestmark = pytest.mark.usefixtures("every_shape")
NO_OP = value("NO_OP")


def of(
    body: bytes, count: int, *, base_offset: int = 0, attributes: int = 0, first: int = TIME, last: int = TIME
) -> bytes:
    """A batch of any bytes as its records."""
    covered = struct.pack(">hiqqqhii", attributes, count - 1, first, last, -1, -1, -1, count) + body
    return struct.pack(">qiibI", base_offset, len(covered) + 9, 1, 2, crc32c(covered)) + covered


def record(
    index: int, content: bytes = NO_OP, *, time: int = 0, key: bytes | None = None, headers: int = 0, size: int = 0
) -> bytes:
    """One record; ``size``: by how much its size is wrong."""
    packed = write_varint(-1) if key is None else write_varint(len(key)) + key
    body = b"\x00" + write_varint(time) + write_varint(index) + packed
    body += write_varint(len(content)) + content + write_varint(headers) + headers * (b"\x02h" + b"\x01")
    return write_varint(len(body) + size) + body


PLAIN = {
    "one": of(record(0), 1),
    "none": of(b"", 0),
    "many": of(b"".join(record(index) for index in range(9000)), 9000),
    "long values": of(b"".join(record(i, b"\x01\x1f\x00" + bytes(10 ** (i + 1))) for i in range(5)), 5),
    "times": of(b"".join(record(i, time=t) for i, t in enumerate((0, -1, 63, 64, -65, 9000, 1 << 20, -(1 << 26)))), 8),
    "time of the broker": of(record(0, time=7) + record(1), 2, attributes=APPEND_TIME_BIT, last=TIME + 99),
    "offset": of(record(0), 1, base_offset=1 << 40),
}
OTHER = {
    "control": control_batch([leader_change()]),
    "a key": of(record(0) + record(1, key=b"k") + record(2), 3),
    "an empty key": of(record(0, key=b""), 1),
    "headers": of(record(0, headers=2) + record(1), 2),
    "far times": of(record(0, time=1 << 30) + record(1, time=-(1 << 60)), 2),
    "an offset that does not follow": of(record(0) + record(2), 2),
    "too many": of(record(0) + record(1), 1),
    "too few": of(record(0), 2),
    "bytes after the last": of(record(0) + b"\x00", 1),
    "a record too long": of(record(0, size=1) + record(1), 2),
    "a record too short": of(record(0, size=-1) + record(1), 2),
    "a last one too long": of(record(0) + record(1, size=3), 2),
    "a negative size": of(record(0) + b"\x01" + record(1), 2),
    "a size that ends too early": of(record(0) + b"\xff", 2),
    "a size of two bytes that does": of(record(0) + b"\xff\xff", 2),
    "a size of four bytes": of(b"\x8e\x80\x80\x00" + record(0)[1:], 1),
    "no value": of(b"\x0c\x00\x00\x00\x01\x01\x00", 1),
    "a value that is longer than its record": of(b"\x10\x00\x00\x00\x01\x7e\x01\x14\x00", 1),
    "a count that is negative": of(record(0), -1),
    "a count beyond all": of(record(0), (1 << 31) - 1),
    "an unknown codec": of(record(0), 1, attributes=7),
    "far offsets": of(record(0) + record(1) + record(2), 3, base_offset=(1 << 63) - 2),
    "far base times": of(record(0, time=5) + record(1, time=-5), 2, first=(1 << 63) - 3),
    "times before all": of(record(0, time=-5), 1, first=-(1 << 63)),
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_batches(name: str) -> None:
    from kshell.columnar.framing import frame

    same(PLAIN[name])
    made = parsed(PLAIN[name])
    framed, odd = frame([made])
    assert not odd
    found = [(r.offset, r.timestamp, r.value) for r in iter_records(made)]
    assert found == [
        (int(framed.offset[row]), int(framed.timestamp[row]), framed.value(row)) for row in range(made.records)
    ]


@pytest.mark.parametrize("name", OTHER)
def test_other_batches(name: str) -> None:
    from kshell.columnar.framing import frame

    assert frame([parsed(OTHER[name])])[1] == [0]
    same(OTHER[name])
    same(PLAIN["one"], OTHER[name], PLAIN["none"], PLAIN["times"], OTHER[name], OTHER["a key"])


def test_offsets_that_no_column_holds_are_null_and_times_wrap_as_javas_do() -> None:
    assert [row[0] for row in same(OTHER["far offsets"])] == [(1 << 63) - 2, (1 << 63) - 1, None]
    assert [row[1] for row in same(OTHER["times before all"])] == [(1 << 63) - 5]


def test_compressed_batches() -> None:
    cramjam = pytest.importorskip("cramjam")
    from kshell.protocol.batches import pack

    records: list[tuple[bytes | None, bytes | None]] = [(None, NO_OP)] * 5
    packed = bytes(cramjam.zstd.compress(pack(records)))
    raw = write_batch(records, base_offset=3, epoch=1, timestamp=TIME, codec=4, compressed=packed)
    assert len(same(batch([NO_OP] * 3), raw, batch([NO_OP], 8))) == 9


def test_batches_of_all_sizes() -> None:
    rng, raw, offset = random.Random(4), [], 0
    for size in [*range(70), 130, 8191, 8192, 8193]:
        values = [value("PRODUCER_IDS", brokerId=rng.randrange(9), nextProducerId=offset) for _ in range(size)]
        raw.append(batch(values, offset))
        offset += size
    assert [row[0] for row in same(*raw)] == list(range(offset))


@pytest.mark.parametrize("seed", range(30))
def test_bytes_that_are_wrong_though_their_crc_is_right(seed: int) -> None:
    rng, raw = random.Random(seed), []
    for _ in range(30):
        body = bytearray(b"".join(record(index, time=rng.randrange(300)) for index in range(rng.randrange(1, 9))))
        count = rng.randrange(1, 9) if rng.random() < 0.1 else body.count(NO_OP)
        for _ in range(rng.randrange(2)):
            body[rng.randrange(len(body))] = rng.choice((0, 1, 2, 0x7F, 0x80, 0x81, 0xFF))
        raw.append(of(bytes(body), count))
    same(*raw)
    assert len(batches(b"".join(raw))) == 30
    assert read_header(raw[0], 0).magic == 2
