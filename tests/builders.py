"""Small logs, snapshots and directories made with kshell's encoders, and the recorded directories of real clusters."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from crc32c import crc32c

from kshell.metadata.families.quorum import QUORUM
from kshell.metadata.image import EMPTY, Image
from kshell.metadata.records import FRAME_VERSION, RecordType, record_types
from kshell.metadata.replay import Replayer
from kshell.protocol.batches import APPEND_TIME_BIT, Batch, read_header, write_batch
from kshell.protocol.control import CONTROL_TYPES, control_key
from kshell.protocol.decoder import Message
from kshell.protocol.encoder import encode
from kshell.protocol.primitives import Uuid, write_uvarint, write_varint
from kshell.sources.directory.files import METADATA_DIRECTORY

FIXTURES = Path(__file__).parent / "fixtures"
TIME = 1_700_000_000_000
LOG = "00000000000000000000.log"

Pair = tuple[bytes | None, bytes | None]


def recorded(*, log_from_zero: bool = False) -> list[Path]:
    """The recorded log directories, one a node; with ``log_from_zero`` those whose log was never cut."""
    nodes = sorted(path.parent for path in FIXTURES.glob(f"*/*/{METADATA_DIRECTORY}"))
    return [node for node in nodes if not log_from_zero or (node / METADATA_DIRECTORY / LOG).exists()]


def node_name(node: Path) -> str:
    """A recorded directory's name in a test's id: ``4.3.1/broker-0``."""
    return f"{node.parent.name}/{node.name}"


def copy_of(node: Path, to: Path) -> Path:
    """A writable copy of a recorded directory; gives its metadata directory."""
    target = to / node.name
    shutil.copytree(node, target, copy_function=shutil.copyfile)
    return target / METADATA_DIRECTORY


def flip(file: Path, at: int) -> None:
    """Change one bit of a file."""
    raw = bytearray(file.read_bytes())
    raw[at] ^= 1
    file.write_bytes(raw)


def uuid(number: int) -> Uuid:
    """A UUID that is easy to tell from others."""
    return Uuid(number.to_bytes(16, "big"))


def kind(name: str) -> RecordType:
    """The record type named like ``TOPIC_RECORD``, the suffix optional."""
    by_name = {made.name: made for made in record_types().values()}
    return by_name.get(name) or by_name[f"{name}_RECORD"]


def encode_value(kind: RecordType, version: int, data: Message) -> bytes:
    """The value of a metadata record with a message: the inverse of ``decode_value``."""
    head = write_uvarint(FRAME_VERSION) + write_uvarint(kind.api_key) + write_uvarint(version)
    return head + encode(kind.schema, version, data)


def value(name: str, version: int = 0, /, **data: Any) -> bytes:
    """The value of one metadata record; fields that are left out have their default."""
    return encode_value(kind(name), version, data)


def control(number: int, /, **data: Any) -> Pair:
    """Key and value of one control record."""
    return control_key(number), encode(CONTROL_TYPES[number].schema, data.get("version", 0), data)


def leader_change(leader: int = 1, version: int = 0, voters: Iterable[int] = ()) -> Pair:
    """The control record that opens an epoch."""
    return control(2, version=version, leaderId=leader, voters=[{"voterId": number} for number in voters])


def batch(values: Iterable[bytes], base_offset: int = 0, epoch: int = 1, **more: Any) -> bytes:
    """A batch of metadata records."""
    return write_batch([(None, one) for one in values], base_offset=base_offset, epoch=epoch, timestamp=TIME, **more)


def timed_batch(values: Sequence[bytes], times: Sequence[int], base_offset: int = 0, *, append: bool = False) -> bytes:
    """A batch whose records were written at times of their own, or (``append``) by the broker's clock at the last."""
    body = b""
    for index, (one, at) in enumerate(zip(values, times, strict=True)):
        record = b"\x00" + write_varint(at - times[0]) + write_varint(index) + b"\x01" + write_varint(len(one)) + one
        record += b"\x00"
        body += write_varint(len(record)) + record
    attributes = APPEND_TIME_BIT if append else 0
    head = struct.pack(">hiqqqhii", attributes, len(values) - 1, times[0], max(times), -1, -1, -1, len(values))
    return sealed(struct.pack(">qiibI", base_offset, len(head + body) + 9, 1, 2, 0) + head + body)


def sealed(raw: bytes | bytearray) -> bytes:
    """A batch whose bytes were changed, with the CRC that they have now."""
    return bytes(raw[:17]) + struct.pack(">I", crc32c(bytes(raw[21:]))) + bytes(raw[21:])


def control_batch(pairs: Sequence[Pair], base_offset: int = 0, epoch: int = 1) -> bytes:
    """A batch of control records."""
    return write_batch(list(pairs), base_offset=base_offset, epoch=epoch, timestamp=TIME, control=True)


def parsed(raw: bytes) -> Batch:
    """The only batch of ``raw``."""
    found = read_header(raw, 0)
    assert found.size == len(raw)
    return found


def batches(raw: bytes) -> list[Batch]:
    """The batches of a file's bytes."""
    out: list[Batch] = []
    while not out or out[-1].end < len(raw):
        out.append(read_header(raw, out[-1].end if out else 0))
    return out


def snapshot(values: Sequence[bytes], epoch: int = 1, *, per_batch: int = 100, timestamp: int = TIME) -> bytes:
    """A whole snapshot: header, data, footer."""
    parts = [control_batch([control(3, lastContainedLogTimestamp=timestamp)], 0, epoch)]
    for at in range(0, len(values), per_batch):
        parts.append(batch(values[at : at + per_batch], 1 + at, epoch))
    parts.append(control_batch([control(4)], 1 + len(values), epoch))
    return b"".join(parts)


def write_log(directory: Path, *parts: bytes, base_offset: int = 0) -> Path:
    """One segment, made of batches."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{base_offset:020d}.log"
    path.write_bytes(b"".join(parts))
    return path


def write_snapshot(directory: Path, raw: bytes, end_offset: int, epoch: int = 1) -> Path:
    """One snapshot under Kafka's name for it."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{end_offset:020d}-{epoch:010d}.checkpoint"
    path.write_bytes(raw)
    return path


def write_epochs(directory: Path, *lines: tuple[int, int]) -> None:
    """``leader-epoch-checkpoint`` of (epoch, start offset) lines."""
    text = "".join(f"{epoch} {start}\n" for epoch, start in lines)
    (directory / "leader-epoch-checkpoint").write_text(f"0\n{len(lines)}\n{text}")


def metadata(image: Image) -> dict[str, Any]:
    """An image's tables without what control records say: a snapshot does not hold the LeaderChange of its log."""
    return {name: dict(table) for name, table in image.tables.items() if table and name != QUORUM}


def replayed(*values: bytes, base: Image = EMPTY, start: int = 0, epoch: int = 1) -> tuple[Image, Replayer]:
    """The image after records that come in one batch, and the replayer that made it."""
    replayer = Replayer(base)
    replayer.log_batch(parsed(batch(values, start, epoch)), LOG)
    return replayer.image(), replayer


def damaged_log(path: Path) -> None:
    """Write a log of offsets 0 to 14 in three batches, of which the second does not match its CRC."""
    change = value("CONFIG", resourceType=2, resourceName="t", name="retention.ms", value="1")
    first, middle, last = (batch([change] * 5, offset) for offset in (0, 5, 10))
    write_log(path, first, middle[:-1] + bytes([middle[-1] ^ 1]), last)
