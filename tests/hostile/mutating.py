"""Random damage to real directories, case by case: ``python -m tests.hostile.mutating KIND FIRST COUNT``.

A process of its own, so that what it needs of memory can be asked for. Each case prints nothing unless it breaks a
promise: anything but a typed error, an answer that is not the cluster's, more than :data:`SECONDS`. The seed of a case
is its kind and number, so one can be run again alone. The last line is the cases and the memory, in MiB.
"""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import stat
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from kshell.engine.session import Session
from kshell.errors import KshellError
from kshell.render import render
from tests.builders import LOG, batches, node_name, recorded, sealed
from tests.commands.shell import lines, opened, run

SECONDS = 2.0
"""Of the processor: a busy machine is no fault of a case."""
FILES, SEALED = "files", "sealed"
KINDS = (FILES, SEALED)
"""Damage that checksums may show; and damage whose checksums were made right again."""

_FAR = (1 << 63) - 2
_MOST_BYTES = 130_000
_TEXTS = ("leader-epoch-checkpoint", "quorum-state", "partition.metadata", "../meta.properties")
_COMMANDS: Final = (
    "status",
    "health",
    "info",
    "info --meta-properties",
    "verify",
    "verify --deep",
    "dump -o jsonl",
    "dump",
    "ls -l /image/topics/byName",
    "find /image --values -o jsonl",
    "log -n 5",
    "log --limit 20 -o jsonl",
    "blame /image/features",
    "partitions -o jsonl",
    "configs",
    "acls -o record",
    "timeline",
    "explain 3",
    "explain 40 --record",
    "quorum",
    "registrations",
    "tree /log --limit 100",
    "diff 5 40",
)


@functools.cache
def nodes() -> list[Path]:
    """The small recorded directories."""
    small = []
    for node in recorded():
        sizes = [path.stat().st_size for path in node.rglob("*") if path.is_file()]
        if sum(sizes) < _MOST_BYTES and (node / "__cluster_metadata-0" / LOG).exists():
            small.append(node)
    return small


@functools.cache
def expected(node: Path, offset: int) -> set[str]:
    """The hashes that a recorded directory may have as of an offset: a snapshot's offset is nowhere but in its name."""
    ends = [file.end_offset - 1 for file in opened(node).source.listing().snapshots if file.end_offset]
    last = _hash(opened(node))["offset"]
    return {str(_hash(opened(node), f"--as-of {each}")["hash"]) for each in {*ends, min(offset, last)}}


def _hash(session: Session, options: str = "") -> dict[str, Any]:
    return dict(json.loads("".join(render(run(session, f"hash {options}"), "json"))))


# --- damage to files --------------------------------------------------------------------------------------------------


def _files(inner: Path) -> list[Path]:
    return [
        path
        for path in sorted(inner.iterdir())
        if path.suffix in (".log", ".checkpoint") and path.is_file() and path.stat().st_size < 1 << 20
    ]


def _burst(rng: random.Random, raw: bytes) -> bytes:
    at, size = rng.randrange(len(raw)), rng.choice((1, 2, 4, 16, 100, 512))
    return raw[:at] + rng.randbytes(min(size, len(raw) - at)) + raw[at + size :]


def _zeroed(rng: random.Random, raw: bytes) -> bytes:
    block = rng.choice((512, 4096))
    at = rng.randrange((len(raw) + block - 1) // block) * block
    return raw[:at] + bytes(min(block, len(raw) - at)) + raw[at + block :]


def _cut(rng: random.Random, raw: bytes) -> bytes:
    return raw[: rng.randrange(len(raw))]


def _grown(rng: random.Random, raw: bytes) -> bytes:
    return raw + rng.choice((bytes(5000), rng.randbytes(70), b"\xff" * 61, raw[:200]))


def _parts(raw: bytes) -> list[bytes]:
    return [raw[batch.position : batch.end] for batch in batches(raw)]


def _swapped(rng: random.Random, raw: bytes) -> bytes:
    parts = _parts(raw)
    one, other = rng.randrange(len(parts)), rng.randrange(len(parts))
    parts[one], parts[other] = parts[other], parts[one]
    return b"".join(parts)


def _doubled(rng: random.Random, raw: bytes) -> bytes:
    parts = _parts(raw)
    parts.insert(rng.randrange(len(parts)), rng.choice(parts))
    return b"".join(parts)


def _missing(rng: random.Random, raw: bytes) -> bytes:
    parts = _parts(raw)
    del parts[rng.randrange(len(parts))]
    return b"".join(parts)


_BYTES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    _burst, _burst, _zeroed, _cut, _grown, _swapped, _doubled, _missing,
)  # fmt: skip


def _change_file(rng: random.Random, inner: Path) -> None:
    files = _files(inner)
    path = rng.choice(files or [inner / "quorum-state"])
    raw = path.read_bytes() if files else b""
    if raw:
        try:
            path.write_bytes(rng.choice(_BYTES)(rng, raw))
        except (AssertionError, ValueError, IndexError, struct.error, KshellError):
            path.write_bytes(_burst(rng, raw))  # its batches cannot be told apart any more: it was damaged before


def _change_text(rng: random.Random, inner: Path) -> None:
    path = inner / rng.choice(_TEXTS)
    if not path.is_file():
        return
    raw = path.read_bytes()
    made = rng.choice((_burst, _cut, _grown))(rng, raw or b"0")
    if rng.random() < 0.3:
        made = rng.choice((b"", b"\x00" * 40, b"0\n999999999999\n", b"9" * 5000, "ä=\u2028\n".encode(), b"{" * 3000))
    path.write_bytes(made)


def _rename(rng: random.Random, inner: Path) -> None:
    files = _files(inner)
    if files:
        number = rng.choice((0, 1, 5, 77, _FAR + 1, 10**20 - 1))
        suffix = rng.choice(
            (".log", ".log", f"-{rng.choice((0, 1, 9)):010d}.checkpoint", ".checkpoint", ".log.deleted")
        )
        target = inner / f"{number:020d}{suffix}"
        path = rng.choice(files)
        if not target.is_dir():  # damage before this one may have put one there
            path.rename(target)


def _replace(rng: random.Random, inner: Path) -> None:
    """Nothing where a file was, or an empty file, a link, a device, a pipe, a directory, a sparse giant."""
    files = _files(inner)
    if not files:
        return
    path = rng.choice(files)
    path.unlink()
    kind = rng.randrange(8)
    if kind == 1:
        path.touch()
    elif kind == 2:
        path.symlink_to(rng.choice((path.name, "/dev/zero", "/dev/full", "/nonexistent", "..")))
    elif kind == 3:
        os.mkfifo(path)
    elif kind == 4:
        path.mkdir()
    elif kind == 5:
        with path.open("wb") as file:
            file.truncate(rng.choice((1 << 20, 1 << 31, 1 << 40)))
    elif kind == 6:
        path.touch()
        path.chmod(0)


def change_files(rng: random.Random, inner: Path) -> None:
    """One to three kinds of damage."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        rng.choice((_change_file, _change_file, _change_file, _change_text, _rename, _replace))(rng, inner)


# --- damage with good checksums ---------------------------------------------------------------------------------------

_NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def _hostile(rng: random.Random, batch: bytes) -> bytes:
    """A batch with other bytes, lengths, counts or flags."""
    made = bytearray(batch)
    for _ in range(rng.choice((1, 1, 2, 4))):
        where = rng.random()
        if where < 0.15:  # attributes: codec, transaction, control
            made[21:23] = rng.choice((0, 1, 2, 3, 4, 5, 7, 16, 32, 48, 0x7FFF)).to_bytes(2, "big")
        elif where < 0.3:  # last offset delta, number of records
            number = rng.choice(_NUMBERS).to_bytes(4, "big")
            made[23:27], made[57:61] = (
                number,
                rng.choice((number, made[57:61], rng.choice(_NUMBERS).to_bytes(4, "big"))),
            )
        elif where < 0.4:  # times, producer
            at = rng.randrange(27, 57)
            made[at] = rng.randrange(256)
        elif where < 0.8 and len(made) > 61:
            at = rng.randrange(61, len(made))
            made[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif where < 0.9 and len(made) > 61:  # a number of many bytes
            at = rng.randrange(61, len(made))
            made[at : at + 5] = rng.choice((b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x08", b"\xff" * 5, bytes(5)))
        else:
            at = rng.randrange(61, len(made) + 1)
            made[at:at] = rng.choice((bytes(3), rng.randbytes(9), b"\x02" * 40, made[61:120]))
    made[8:12] = (len(made) - 12).to_bytes(4, "big")
    return sealed(made)


def change_sealed(rng: random.Random, inner: Path) -> None:
    """One or two batches of one file, with the CRC made right again."""
    path = rng.choice(_files(inner))
    parts = _parts(path.read_bytes())
    for _ in range(rng.choice((1, 1, 2))):
        place = rng.randrange(len(parts))
        parts[place] = _hostile(rng, parts[place])
    path.write_bytes(b"".join(parts))


# --- one case ---------------------------------------------------------------------------------------------------------


def case(kind: str, number: int, scratch: Path) -> str | None:
    """Run one case; what is wrong with it, if anything is."""
    rng = random.Random(f"{kind}-{number}")
    node = rng.choice(nodes())
    target = scratch / str(number)
    shutil.copytree(node, target, copy_function=shutil.copyfile)
    inner = target / "__cluster_metadata-0"
    (change_files if kind == FILES else change_sealed)(rng, inner)
    command = rng.choice(_COMMANDS)
    started = time.process_time()
    try:
        wrong = _answer(target, node if kind == FILES else None, command)
    except Exception:
        wrong = traceback.format_exc()
    took = time.process_time() - started
    if wrong is None and took > SECONDS:
        wrong = f"took {took:.1f} s"
    if wrong is None:
        shutil.rmtree(target, onerror=_force)
    return wrong and f"{kind} {number} ({node_name(node)}, {command}): {wrong}"


def _force(function: Callable[[str], object], path: str, _: object) -> None:
    os.chmod(path, stat.S_IRWXU)
    function(path)


def _answer(target: Path, node: Path | None, command: str) -> str | None:
    session = opened(target)
    try:
        found = _hash(session)
        is_whole = not session.problems()
    except KshellError:
        is_whole = False
    else:
        offset = found["offset"]  # -1 where nothing is left
        if (
            node is not None
            and is_whole
            and offset >= 0
            and found["hash"] not in expected(node, offset)
            and not _is_unconfirmed_snapshot(session)
        ):
            return f"another state at offset {offset}, and no word of it"
    try:
        lines(session, command, 100)
    except KshellError as error:
        if error.message.startswith("a fault of kshell"):
            return error.message
    return None


def _is_unconfirmed_snapshot(session: Session) -> bool:
    """Whether the state comes from a snapshot of which verify says that nothing confirms where it ends: nothing but its
    name says that. A log always says.
    """
    base = session.loaded.snapshot
    checks = json.loads("".join(render(run(session, "verify"), "json")))
    return base is not None and any(
        check["file"] == os.path.basename(base.path)
        and check["kind"] == "snapshot"
        and check["certainty"] != "confirmed"
        for check in checks
    )


def main() -> None:
    kind, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with tempfile.TemporaryDirectory(prefix="kshell-mutations-") as scratch:
        for number in range(first, first + count):
            wrong = case(kind, number, Path(scratch))
            if wrong:
                print(wrong, flush=True)
    print(count, _peak())


def _peak() -> int:
    """MiB in memory at the most; what the process was forked from had does not count."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) // 1024


if __name__ == "__main__":
    main()
