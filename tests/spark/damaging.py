"""Copies of recorded directories with something done to their bytes, as disks and servers do it."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from kshell.protocol.batches import HEADER_SIZE, LENGTH_END, read_header
from tests.builders import batches, copy_of, sealed


def damaged_copy(node: Path, to: Path, rng: random.Random) -> Path:
    """A copy with a few faults; gives its metadata directory. Some copies have no log, or no epochs beside it."""
    shutil.rmtree(to / node.name, ignore_errors=True)
    directory = copy_of(node, to)
    if rng.random() < 0.2:
        (directory / "leader-epoch-checkpoint").unlink(missing_ok=True)
    if rng.random() < 0.2 and list(directory.glob("*.checkpoint")):
        for segment in directory.glob("*.log"):
            segment.unlink()
    files = sorted(directory.glob("*.log")) or sorted(directory.glob("*.checkpoint"))[-1:]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        file = rng.choice(files)
        raw = bytearray(file.read_bytes())
        if raw:
            file.chmod(0o600)
            file.write_bytes(fault(raw, rng))
    return directory


def spoil(log: Path) -> int:
    """Turns a bit in one of the last batches of a segment, which its header does not show; gives its first byte."""
    raw = bytearray(log.read_bytes())
    hurt = batches(bytes(raw))[-3]
    raw[hurt.position + hurt.size - 1] ^= 1
    log.chmod(0o600)
    log.write_bytes(raw)
    return hurt.position


def undecodable(raw: bytes) -> bytes:
    """A batch whose CRC is right and whose first record is longer than all of it: only who decodes it notices."""
    made = bytearray(raw)
    made[HEADER_SIZE] = 0x7E
    return sealed(made)


def fault(raw: bytearray, rng: random.Random) -> bytearray:
    """One fault in a file's bytes."""
    at = rng.randrange(len(raw))
    match rng.randrange(8):
        case 0 | 1:
            raw[at] ^= 1 << rng.randrange(8)
        case 2 | 3:  # in a header
            start = rng.choice(starts(raw))
            raw[min(start + rng.randrange(HEADER_SIZE), len(raw) - 1)] ^= 1 << rng.randrange(8)
        case 4:
            del raw[at:]
        case 5:
            raw[at : at + 200] = bytes(len(raw[at : at + 200]))
        case 6:
            del raw[at : at + rng.randrange(1, 400)]
        case _:
            raw += bytes(rng.randrange(1, 200)) if rng.random() < 0.5 else raw[max(0, at - 300) : at]
    return raw


def starts(raw: bytes | bytearray) -> list[int]:
    """The first bytes of the batches, as far as lengths lead."""
    found = [0]
    while len(raw) - found[-1] >= HEADER_SIZE:
        size = read_header(bytes(raw[found[-1] : found[-1] + HEADER_SIZE]), 0).size
        if size < LENGTH_END or found[-1] + size >= len(raw):
            break
        found.append(found[-1] + size)
    return found
