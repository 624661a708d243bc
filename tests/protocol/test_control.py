"""Control records: what is known of them, and what is not."""

from __future__ import annotations

import pytest

from kshell.protocol.control import (
    CONTROL_TYPES,
    LEADER_CHANGE,
    SNAPSHOT_FOOTER,
    NewerControlError,
    control_key,
    control_number,
    decode_control,
    holds,
)
from kshell.protocol.primitives import DecodeError
from tests.builders import batch, control, control_batch, leader_change, parsed, uuid, value


def test_numbers_and_names() -> None:
    names = {2: "LEADER_CHANGE", 3: "SNAPSHOT_HEADER", 4: "SNAPSHOT_FOOTER", 5: "KRAFT_VERSION", 6: "KRAFT_VOTERS"}
    assert {number: kind.name for number, kind in CONTROL_TYPES.items()} == names
    for number in names:
        assert control_number(control_key(number)) == number


def test_a_leader_change_of_each_version() -> None:
    voters = [{"voterId": 3000}, {"voterId": 3001}]
    old = {"version": 0, "leaderId": 3001, "voters": voters, "grantingVoters": voters[1:]}
    assert decode_control(*control(2, **old)) == (2, 0, old)
    known = [{"voterId": 3000, "voterDirectoryId": uuid(7)}]
    new = {"version": 1, "leaderId": 3000, "voters": known, "grantingVoters": known}
    assert decode_control(*control(2, **new)) == (2, 1, new)


def test_the_voters_of_a_dynamic_quorum() -> None:
    voter = {
        "voterId": 1,
        "voterDirectoryId": uuid(1),
        "endpoints": [{"name": "CONTROLLER", "host": "localhost", "port": 65535}],
        "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
    }
    assert decode_control(*control(6, version=0, voters=[voter]))[2]["voters"] == [voter]
    assert decode_control(*control(5, version=0, kRaftVersion=1)) == (5, 0, {"version": 0, "kRaftVersion": 1})


@pytest.mark.parametrize(
    ("key", "body", "reason"),
    [
        (None, b"\x00\x00", "fewer than 4 bytes"),
        (b"\x00\x00\x00", b"\x00\x00", "fewer than 4 bytes"),
        (control_key(9), b"\x00\x00", "type 9 is not known"),
        (control_key(4), None, "fewer than 2 bytes"),
        (control_key(4), b"\x00", "fewer than 2 bytes"),
        (control_key(4), b"\x00\x01\x00", "SNAPSHOT_FOOTER version 1 is not known"),
        (control_key(2), b"\xff\xff", "LEADER_CHANGE version -1 is not known"),
        (control_key(4), b"\x00\x00\x00\x00", "bytes too many"),
        (control_key(2), b"\x00\x00\x00", "ends too early"),
    ],
)
def test_what_is_no_control_record(key: bytes | None, body: bytes | None, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        decode_control(key, body)


@pytest.mark.parametrize(
    ("key", "body", "newer"),
    [
        (control_key(9), b"\x00\x00", True),
        (control_key(4), b"\x00\x01\x00", True),
        (control_key(4), b"\xff\xff", False),
        (control_key(2), b"\x00\x00\x00", False),
        (control_key(4), None, False),
        (None, b"\x00\x00", False),
    ],
)
def test_newer_is_told_from_malformed(key: bytes | None, body: bytes | None, newer: bool) -> None:
    with pytest.raises(DecodeError) as caught:
        decode_control(key, body)
    assert isinstance(caught.value, NewerControlError) == newer


def test_holds_looks_at_every_record_of_a_control_batch() -> None:
    both = parsed(control_batch([leader_change(), control(4)]))
    assert holds(both, LEADER_CHANGE)
    assert holds(both, SNAPSHOT_FOOTER)
    assert not holds(parsed(control_batch([leader_change()])), SNAPSHOT_FOOTER)
    assert not holds(parsed(batch([value("NO_OP")])), LEADER_CHANGE)
    assert not holds(parsed(control_batch([(None, None)])), LEADER_CHANGE)
