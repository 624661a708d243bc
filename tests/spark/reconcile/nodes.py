"""Made-up nodes of a cluster, each with its copy of the log, and what is to be said of their tables."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from kshell.sources.directory.files import METADATA_DIRECTORY
from tests.builders import batches, write_log
from tests.spark.reconcile.tables import Tables


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
