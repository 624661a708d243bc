"""kafka-dump-log's reading of log segments and snapshots, as the rows that our ``dump`` prints."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

from tests.kafka import jars

_MAIN = "org.apache.kafka.tools.DumpLogSegments"
_CONTROL = {
    "LeaderChange": "LEADER_CHANGE",
    "SnapshotHeader": "SNAPSHOT_HEADER",
    "SnapshotFooter": "SNAPSHOT_FOOTER",
    "KRaftVersion": "KRAFT_VERSION",
    "KRaftVoters": "KRAFT_VOTERS",
}
_BATCH = re.compile(r"baseOffset: \d+ .* partitionLeaderEpoch: (-?\d+) .* isvalid: (\w+)")
_RECORD = re.compile(
    r"\| offset: (\d+) CreateTime: (-?\d+) keySize: -?\d+ valueSize: -?\d+ .*? headerKeys: \[.*?\] (.*)"
)


class Row(TypedDict):
    """One record."""

    offset: int
    epoch: int
    timestampMs: int
    type: str
    version: int
    data: Any


def dump(files: Sequence[Path]) -> dict[Path, list[Row]]:
    """Return every record of these files, control records included, in one run of kafka-dump-log."""
    names = ",".join(map(str, files))
    output = jars.run(f"{jars.libs(jars.LATEST)}/*", _MAIN, "--cluster-metadata-decoder", "--files", names)
    return parse(output)


def parse(output: str) -> dict[Path, list[Row]]:
    """Read what kafka-dump-log prints; raise ValueError at what it calls invalid and at lines it should not print."""
    files: dict[Path, list[Row]] = {}
    rows: list[Row] = []
    epoch = -1
    for line in output.split("\n"):
        if line.startswith("Dumping "):
            rows = files[Path(line.removeprefix("Dumping "))] = []
        elif batch := _BATCH.match(line):
            if batch[2] != "true":
                raise ValueError(f"kafka-dump-log finds an invalid batch: {line}")
            epoch = int(batch[1])
        elif record := _RECORD.match(line):
            kind, version, data = _value(record[3])
            rows.append({
                "offset": int(record[1]), "epoch": epoch, "timestampMs": int(record[2]),
                "type": kind, "version": version, "data": data,
            })  # fmt: skip
        elif line and not line.startswith(("Log starting offset:", "Snapshot end offset:")):
            raise ValueError(f"kafka-dump-log prints {line!r}")
    return files


def _value(text: str) -> tuple[str, int, Any]:
    """Return type, version and data; a control record's version is its first field, which stays in the data."""
    kind, _, value = text.partition(" ")
    parsed = json.loads(value)
    if kind == "payload:":
        return parsed["type"], parsed["version"], parsed["data"]
    return _CONTROL[kind.rstrip(":")], parsed["version"], parsed
