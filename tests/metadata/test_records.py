"""Record values: framing, what is newer than kshell, what is broken, and that a declaration is all it takes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kshell.metadata.delta import Delta
from kshell.metadata.records import _HEADS, _TYPES, decode_value, record, record_types, upper_snake
from kshell.metadata.values import Origin
from kshell.protocol.decoder import UNKNOWN_TAGS, Message
from kshell.protocol.primitives import write_uvarint
from tests.builders import encode_value, kind, replayed, uuid, value
from tests.protocol.strategies import messages

VERSIONS = [
    pytest.param(made.api_key, version, id=f"{made.name}-{version}")
    for made in record_types().values()
    for version in range(made.schema.versions.low, (made.schema.versions.high or 0) + 1)
]
TOPIC = value("TOPIC", name="orders", topicId=uuid(1))


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_values_round_trip(key: int, version: int) -> None:
    made = record_types()[key]

    @settings(max_examples=15)
    @given(messages(made.schema, version))
    def check(message: Message) -> None:
        raw = encode_value(made, version, message)
        assert raw[0] == 1
        found = decode_value(raw)
        assert found == (made.name, version, made, message, None)

    check()


@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda rest: b"\x01" + rest))
def test_decoding_never_raises(raw: bytes) -> None:
    found = decode_value(raw)
    assert (found.data is None) != (found.undecoded is None)
    if found.undecoded:
        assert found.undecoded.raw == raw
        assert found.undecoded.reason


@pytest.mark.parametrize(
    ("raw", "name", "version", "reason"),
    [
        (b"\x02" + TOPIC[1:], "TOPIC_RECORD", 0, "frame version 2 is not known"),
        (b"\x01\x1f\x00" + b"anything", "UNKNOWN_31", 0, "record type 31 is not known"),
        (b"\x01" + write_uvarint(300) + b"\x04", "UNKNOWN_300", 4, "record type 300 is not known"),
        (b"\x01\x02\x07" + TOPIC[3:], "TOPIC_RECORD", 7, "TOPIC_RECORD version 7 is not known"),
    ],
)
def test_what_is_newer_than_kshell_is_kept_and_is_no_damage(raw: bytes, name: str, version: int, reason: str) -> None:
    found = decode_value(raw)
    assert (found.name, found.version, found.data) == (name, version, None)
    assert found.undecoded is not None
    assert found.undecoded.raw == raw
    assert reason in found.undecoded.reason
    assert not found.undecoded.malformed


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (TOPIC[:-3], "TOPIC_RECORD"),
        (TOPIC + b"\x00", "TOPIC_RECORD"),
        (b"", "UNKNOWN"),
        (b"\x01\x02", "UNKNOWN"),
        (b"\x01\xff\xff\xff\xff\xff\xff", "UNKNOWN"),
        (None, "UNKNOWN"),
    ],
)
def test_what_breaks_its_declaration_is_malformed(raw: bytes | None, name: str) -> None:
    found = decode_value(raw)
    assert found.name == name
    assert found.undecoded is not None
    assert found.undecoded.malformed


def test_unknown_tags_at_two_depths_are_in_the_data() -> None:
    point = {"name": "L", "host": "h", "port": 1, "securityProtocol": 0, UNKNOWN_TAGS: [{"tag": 9, "data": b"deep"}]}
    raw = value("REGISTER_BROKER", 4, brokerId=1, endPoints=[point], **{UNKNOWN_TAGS: [{"tag": 77, "data": b"top"}]})
    data = decode_value(raw).data
    assert data is not None
    assert data[UNKNOWN_TAGS] == [{"tag": 77, "data": b"top"}]
    assert data["endPoints"][0][UNKNOWN_TAGS] == [{"tag": 9, "data": b"deep"}]
    image, replayer = replayed(raw)
    assert not replayer.problems
    assert image["brokers"][1].value.listeners[0].name == "L"


def test_a_new_record_type_takes_one_declaration() -> None:
    try:

        @record(99, "WeatherRecord", "0", "  city  string")
        def weather(delta: Delta, data: Message, origin: Origin) -> None:
            delta.put("weather", data["city"], True, origin)

        image, replayer = replayed(encode_value(weather, 0, {"city": "Oslo"}))
        assert not replayer.problems
        assert image["weather"]["Oslo"].origin.record_type == "WEATHER_RECORD"
    finally:
        _TYPES.pop(99, None)
        _HEADS.pop(b"\x01\x63\x00", None)


def test_an_api_key_of_two_bytes_is_refused_and_not_declared_in_vain() -> None:
    for api_key in (128, 300, -1):
        with pytest.raises(ValueError, match=f"FarRecord: api key {api_key} takes two bytes"):
            record(api_key, "FarRecord", "0")


def test_an_api_key_has_one_declaration() -> None:
    with pytest.raises(ValueError, match="api key 2 is declared twice: TOPIC_RECORD and OTHER_RECORD"):
        record(2, "OtherRecord", "0")(lambda delta, data, origin: None)
    assert kind("TOPIC").name == "TOPIC_RECORD"


@pytest.mark.parametrize(
    ("name", "upper"),
    [
        ("PartitionChangeRecord", "PARTITION_CHANGE_RECORD"),
        ("NoOpRecord", "NO_OP_RECORD"),
        ("ZkMigrationStateRecord", "ZK_MIGRATION_STATE_RECORD"),
        ("ClearElrRecord", "CLEAR_ELR_RECORD"),
    ],
)
def test_names_are_kafkas(name: str, upper: str) -> None:
    assert upper_snake(name) == upper


def test_no_repr_holds_a_value() -> None:
    data = {"resourceType": 4, "resourceName": "1", "name": "ssl.key.password", "value": "canary-secret"}
    value = encode_value(record_types()[4], 0, data)
    assert "canary" not in repr(decode_value(value))
    assert "canary" not in repr(decode_value(value[:-1]))
