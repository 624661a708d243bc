"""Every codec a batch may carry, its absence, its damage, and its bombs."""

from __future__ import annotations

import builtins
import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kshell.errors import MissingCodecError
from kshell.extras import install_command
from kshell.protocol import compression
from kshell.protocol.batches import iter_records, pack, write_batch
from kshell.protocol.compression import decompress
from kshell.protocol.primitives import DecodeError
from tests.builders import TIME, parsed, uuid, value

PAIRS: list[tuple[bytes | None, bytes | None]] = [
    (None, value("TOPIC", name=f"topic-{number}", topicId=uuid(number))) for number in range(50)
]


def xerial(data: bytes, block: int = 100) -> bytes:
    """The framing of Kafka's snappy: a header, then blocks with their size in front."""
    out = b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") * 2
    for at in range(0, len(data), block):
        packed = bytes(cramjam.snappy.compress_raw(data[at : at + block]))
        out += len(packed).to_bytes(4, "big") + packed
    return out


COMPRESSORS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (1, gzip.compress),
    "snappy": (2, xerial),
    "snappy-raw": (2, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    "lz4": (3, lambda data: bytes(cramjam.lz4.compress(data))),
    "zstd": (4, lambda data: bytes(cramjam.zstd.compress(data))),
}
every_codec = pytest.mark.parametrize("name", COMPRESSORS)


@every_codec
@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 70_000, 3_000_000])
def test_data_comes_back(name: str, size: int) -> None:
    codec, compress = COMPRESSORS[name]
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    assert decompress(codec, compress(data)) == data


@every_codec
def test_the_records_of_a_compressed_batch(name: str) -> None:
    codec, compress = COMPRESSORS[name]
    raw = write_batch(PAIRS, base_offset=7, epoch=1, timestamp=TIME, codec=codec, compressed=compress(pack(PAIRS)))
    found = parsed(raw)
    assert found.codec == codec
    assert found.crc_is_good()
    assert [(one.key, one.value) for one in iter_records(found)] == PAIRS


@pytest.mark.parametrize("name", ["snappy", "lz4", "zstd"])
def test_a_missing_library_names_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_cramjam(module: str, *args: Any, **more: Any) -> Any:
        if module == "cramjam":
            raise ImportError(module)
        return real(module, *args, **more)

    codec, compress = COMPRESSORS[name]
    data = compress(b"data")
    monkeypatch.setattr(builtins, "__import__", without_cramjam)
    with pytest.raises(MissingCodecError, match=name) as caught:
        decompress(codec, data)
    assert caught.value.exit_code == 4
    assert caught.value.hint == install_command("codecs")
    assert decompress(1, gzip.compress(b"data")) == b"data"


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_kafka_does_not_define(codec: int) -> None:
    with pytest.raises(DecodeError, match=f"compression codec {codec} is not one"):
        decompress(codec, b"data")


@every_codec
def test_a_bomb_stops_at_the_limit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    codec, compress = COMPRESSORS[name]
    bomb = compress(bytes(30_000_000)) if name != "snappy" else xerial(bytes(30_000_000), 1 << 20)
    monkeypatch.setattr(compression, "MAX_DECOMPRESSED", 1_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match="decompresses to more than 1000000 bytes"):
            decompress(codec, bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000


@every_codec
def test_exactly_the_limit_is_allowed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    codec, compress = COMPRESSORS[name]
    data = bytes(range(250)) * 4000
    packed = compress(data)
    monkeypatch.setattr(compression, "MAX_DECOMPRESSED", len(data))
    assert decompress(codec, packed) == data
    monkeypatch.setattr(compression, "MAX_DECOMPRESSED", len(data) - 1)
    with pytest.raises(DecodeError, match="decompresses to more than"):
        decompress(codec, packed)


def test_a_size_that_is_only_claimed_is_not_believed() -> None:
    claim = b"\xff\xff\xff\xff\x0f" + b"\x00" * 20
    with pytest.raises(DecodeError):
        decompress(2, claim)
    with pytest.raises(DecodeError):
        decompress(2, b"\x82SNAPPY\x00" + bytes(8) + len(claim).to_bytes(4, "big") + claim)


@every_codec
def test_every_cut_is_an_error(name: str) -> None:
    codec, compress = COMPRESSORS[name]
    whole = pack(PAIRS[:8])
    packed = compress(whole)
    blocks = {16}
    if name == "snappy":
        at = 16
        while at < len(packed):
            at += 4 + int.from_bytes(packed[at : at + 4], "big")
            blocks.add(at)
    for size in range(len(packed)):
        if name == "snappy" and size in blocks:  # each block stands alone: the batch's records show what is missing
            assert decompress(codec, packed[:size]) != whole
            continue
        with pytest.raises(DecodeError):
            decompress(codec, packed[:size])


@every_codec
@settings(max_examples=60)
@given(data=st.data())
def test_damaged_data_is_never_another_kind_of_error(name: str, data: st.DataObject) -> None:
    codec, compress = COMPRESSORS[name]
    raw = bytearray(compress(pack(PAIRS[:10])))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    for damaged in (bytes(raw), data.draw(st.binary(max_size=60))):
        with suppress(DecodeError):
            assert isinstance(decompress(codec, damaged), bytes)


def test_damage_inside_gzip_is_named() -> None:
    packed = bytearray(gzip.compress(b"metadata" * 20))
    packed[-5] ^= 1  # in the checksum
    with pytest.raises(DecodeError, match="gzip data of the batch cannot be decompressed"):
        decompress(1, bytes(packed))
    with pytest.raises(DecodeError, match="gzip data"):
        decompress(1, zlib.compress(b"not gzip"))
