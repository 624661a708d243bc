"""One file's row of the view ``files``: what its batches' headers and CRCs say of it."""

from __future__ import annotations

import os
from typing import Any

from kshell.protocol.batches import Batch
from kshell.sources.directory.files import named
from kshell.spark.files.plan import FilePlan, Finding
from kshell.spark.files.read import CRC, read

_LARGEST = (1 << 63) - 1


def file_row(plan: FilePlan) -> dict[str, Any]:
    """The columns of ``files`` but for whose the file is. Reads all of the file, a piece at a time."""
    findings, batches = list(plan.findings), _Batches()
    for placed in read(plan):
        if isinstance(placed, Finding):
            findings.append(placed)
        else:
            batches.add(placed.batch)
    findings.sort()
    name = named(os.path.basename(plan.path))
    torn = [finding.position for finding in findings if finding.kind == "torn"]
    return batches.row() | {
        "size": plan.size,
        "nameOffset": name.offset if name else None,
        "nameEpoch": name.epoch if name else None,
        "crcFailures": sum(finding.reason == CRC for finding in findings),
        "isDamaged": any(finding.kind != "torn" for finding in findings),
        "tornAt": torn[0] if torn else None,
        "findings": [
            {"position": None if at < 0 else at, "kind": kind, "reason": reason} for at, kind, reason in findings
        ],
    }


class _Batches:
    """Sums over good batches."""

    def __init__(self) -> None:
        self._first: Batch | None = None
        self._last: Batch | None = None
        self._earliest, self._latest = _LARGEST, -1
        self._batches = self._records = self._bytes = 0

    def add(self, batch: Batch) -> None:
        self._first = self._first or batch._replace(buf=b"")
        self._last = batch
        self._earliest = min(self._earliest, batch.base_timestamp)
        self._latest = max(self._latest, batch.max_timestamp)
        self._batches += 1
        self._records += batch.records
        self._bytes += batch.size

    def row(self) -> dict[str, Any]:
        first, last = self._first, self._last
        return {
            "firstOffset": first.base_offset if first else None,
            "lastOffset": last.last_offset if last else None,
            "firstEpoch": first.epoch if first else None,
            "lastEpoch": last.epoch if last else None,
            "firstTimestampMs": self._earliest if first else None,
            "lastTimestampMs": self._latest if first else None,
            "batches": self._batches,
            "records": self._records,
            "goodBytes": self._bytes,
        }
