"""The reader of kafka-dump-log's output, on lines as it prints them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka import dumplog

BATCH = (
    "baseOffset: {0} lastOffset: {0} count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
    "partitionLeaderEpoch: {1} isTransactional: false isControl: {2} deleteHorizonMs: OptionalLong.empty position: 0 "
    "CreateTime: 5 size: 75 magic: 2 compresscodec: none crc: 1818114599 isvalid: {3}\n"
)
RECORD = "| offset: {} CreateTime: 5 keySize: 4 valueSize: 3 sequence: -1 headerKeys: [] {}\n"
CONTROL = BATCH.format(0, 3, "true", "true") + RECORD.format(0, 'SnapshotFooter {"version":0}')
DATA = BATCH.format(1, 4, "false", "true") + RECORD.format(
    1, 'payload: {"type":"NO_OP_RECORD","version":0,"data":{"x":"| offset: 9 } payload: "}}'
)


def test_records_of_several_files() -> None:
    output = (
        f"Dumping /a/1.log\nLog starting offset: 0\n{CONTROL}{DATA}"
        f"Dumping /a/0-0.checkpoint\nSnapshot end offset: 0, epoch: 3\n{CONTROL}"
    )
    footer = {
        "offset": 0,
        "epoch": 3,
        "timestampMs": 5,
        "type": "SNAPSHOT_FOOTER",
        "version": 0,
        "data": {"version": 0},
    }
    no_op = {
        "offset": 1, "epoch": 4, "timestampMs": 5, "type": "NO_OP_RECORD", "version": 0,
        "data": {"x": "| offset: 9 } payload: "},
    }  # fmt: skip
    assert dumplog.parse(output) == {Path("/a/1.log"): [footer, no_op], Path("/a/0-0.checkpoint"): [footer]}


@pytest.mark.parametrize(
    "output",
    [
        "Dumping /a\n" + BATCH.format(0, 3, "true", "false"),
        "Dumping /a\nError while decoding\n",
        "Dumping /a\n" + RECORD.format(0, "payload: {"),
        "Dumping /a\n" + RECORD.format(0, "Novelty {}"),
    ],
)
def test_what_it_does_not_understand_is_an_error(output: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        dumplog.parse(output)
