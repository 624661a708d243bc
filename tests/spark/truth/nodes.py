"""Made-up nodes of a cluster, each with its copy of the log, and what is to be said of their tables."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from kshell.sources.files import METADATA_DIRECTORY
from tests.builders import batch, batches, control, control_batch, uuid, value, write_log
from tests.spark.truth.truths import Tables


def leader(epoch: int, at: int) -> bytes:
    """The LeaderChange of an epoch."""
    voters = [{"voterId": one} for one in (1, 2, 3)]
    return control_batch([control(2, leaderId=1 + epoch % 3, voters=voters, grantingVoters=voters)], at, epoch)


def record(at: int, epoch: int, name: str = "a") -> bytes:
    return batch([value("TOPIC", name=f"{name}-{at}", topicId=uuid(at + 1))], at, epoch)


def log(*epochs: int, start: int = 0, name: str = "a") -> list[bytes]:
    """One batch of one record for each offset from ``start`` on, of that epoch; the first of an epoch opens it."""
    return [
        leader(epoch, at) if at == start or epoch != epochs[at - start - 1] else record(at, epoch, name)
        for at, epoch in enumerate(epochs, start)
    ]


def node(folder: Path, number: int, parts: list[bytes], *, cluster: str = "one", start: int = 0) -> Path:
    directory = folder / f"node-{number}"
    shutil.rmtree(directory, ignore_errors=True)
    write_log(directory / METADATA_DIRECTORY, *parts, base_offset=start)
    (directory / "meta.properties").write_text(f"version=1\ncluster.id={cluster}\nnode.id={number}\n")
    return directory


def read(*paths: Path) -> Tables:
    tables = Tables()
    tables.step(*paths)
    return tables


def states(tables: Tables) -> dict[str, str]:
    """Copy -> state."""
    assert tables.last is not None
    return {Path(row["copy"]).parent.name: row["state"] for row in tables.last.copies}


def names(tables: Tables) -> list[str]:
    """The names of the topics, in the order of the log."""
    return [json.loads(row["data"])["name"] for row in tables.rows if row["type"] == "TOPIC_RECORD"]


def spoilt(directory: Path, *places: int) -> Path:
    """Turns a bit in the batches of those places of a node's first segment; gives the file."""
    file = min(directory.glob("*/*.log"))
    raw = bytearray(file.read_bytes())
    found = batches(bytes(raw))
    for place in places:
        raw[found[place].position + 70] ^= 1
    file.chmod(0o600)
    file.write_bytes(raw)
    return file
