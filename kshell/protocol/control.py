"""Control records: the records that the Raft layer itself writes into the log and into snapshots, and their decoding.

Source: ``org.apache.kafka.common.record.ControlRecordType`` (KIP-595, KIP-630, KIP-853). A key is an int16 version and
an int16 type; a value starts with its own int16 version, which is declared as the first field of the message.
"""

from __future__ import annotations

from typing import NamedTuple

from kshell.protocol.batches import Batch, iter_records
from kshell.protocol.decoder import Message, decode
from kshell.protocol.primitives import DecodeError
from kshell.protocol.schema import Schema

LEADER_CHANGE = Schema(
    "LeaderChangeMessage",
    "0-1",
    """
  version                  int16
  leaderId                 int32
  voters                   []Voter
    voterId                int32
    voterDirectoryId       uuid      1+
  grantingVoters           []Voter
    voterId                int32
    voterDirectoryId       uuid      1+
""",
)
SNAPSHOT_HEADER = Schema(
    "SnapshotHeaderRecord",
    "0",
    """
  version                    int16
  lastContainedLogTimestamp  int64
""",
)
SNAPSHOT_FOOTER = Schema("SnapshotFooterRecord", "0", "  version  int16")
KRAFT_VERSION = Schema(
    "KRaftVersionRecord",
    "0",
    """
  version        int16
  kRaftVersion   int16
""",
)
KRAFT_VOTERS = Schema(
    "VotersRecord",
    "0",
    """
  version                  int16
  voters                   []Voter
    voterId                int32
    voterDirectoryId       uuid
    endpoints              []Endpoint
      name                 string
      host                 string
      port                 uint16
    kRaftVersionFeature    KRaftVersionFeature
      minSupportedVersion  int16
      maxSupportedVersion  int16
""",
)


class NewerControlError(DecodeError):
    """A control record of a type or version that kshell does not know; it is taken as newer, not as damaged."""


class ControlType(NamedTuple):
    """A type of control record: its number in the key, its name in ``dump``, and the declaration of its value."""

    number: int
    name: str
    schema: Schema


CONTROL_TYPES = {
    kind.number: kind
    for kind in (
        ControlType(2, "LEADER_CHANGE", LEADER_CHANGE),
        ControlType(3, "SNAPSHOT_HEADER", SNAPSHOT_HEADER),
        ControlType(4, "SNAPSHOT_FOOTER", SNAPSHOT_FOOTER),
        ControlType(5, "KRAFT_VERSION", KRAFT_VERSION),
        ControlType(6, "KRAFT_VOTERS", KRAFT_VOTERS),
    )
}


def control_number(key: bytes | None) -> int:
    """Return the type number in the key of a control record. Raises DecodeError for a null or short key."""
    if key is None or len(key) < 4:
        raise DecodeError("a control record's key has fewer than 4 bytes", 0)
    return int.from_bytes(key[2:4], "big", signed=True)


def control_name(key: bytes | None) -> str:
    """Return the name of a control record's type; ``UNKNOWN_CONTROL_<type>`` for an unknown type. Never raises."""
    try:
        number = control_number(key)
    except DecodeError:
        return "UNKNOWN_CONTROL"
    return CONTROL_TYPES[number].name if number in CONTROL_TYPES else f"UNKNOWN_CONTROL_{number}"


def control_version(value: bytes | None) -> int:
    """Return the version in the value of a control record; -1 for a null or short value."""
    return int.from_bytes(value[:2], "big", signed=True) if value is not None and len(value) > 1 else -1


def decode_control(key: bytes | None, value: bytes | None) -> tuple[int, int, Message]:
    """Decode a control record into (type number, version, message).

    Raises NewerControlError for a type or version that :data:`CONTROL_TYPES` does not have, else DecodeError.
    """
    number = control_number(key)
    kind = CONTROL_TYPES.get(number)
    if kind is None:
        raise NewerControlError(f"control record type {number} is not known", 2)
    if value is None or len(value) < 2:
        raise DecodeError("a control record's value has fewer than 2 bytes", 0)
    version = control_version(value)
    if version not in kind.schema.versions:
        error = NewerControlError if version > 0 else DecodeError
        raise error(f"{kind.name} version {version} is not known (only {kind.schema.versions})", 0)
    return number, version, decode(kind.schema, version, value)


def control_key(number: int) -> bytes:
    """Encode the key of a control record of that type."""
    return b"\x00\x00" + number.to_bytes(2, "big")


def holds(batch: Batch, kind: Schema) -> bool:
    """Whether a (verified) batch is a control batch with a record of the type whose declaration is ``kind``."""
    if not batch.is_control:
        return False
    wanted = {number for number, control_type in CONTROL_TYPES.items() if control_type.schema is kind}
    try:
        return any(control_number(record.key) in wanted for record in iter_records(batch))
    except DecodeError:
        return False
