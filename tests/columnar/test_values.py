"""Values decoded together are what they are one by one: every type and version, odd ones, broken ones."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kshell.metadata.records import record_types
from kshell.metadata.redaction import REDACTED, Redaction
from kshell.protocol.decoder import Message
from kshell.protocol.schema import Field
from kshell.sources.directory import source
from kshell.sources.points import Point
from kshell.spark.options import Narrowing
from tests.builders import TIME, batch, encode_value, parsed, recorded, uuid, value
from tests.columnar.alone import same, together
from tests.protocol.strategies import messages
from tests.spark.damaging import damaged_copy
from tests.spark.reading import dumped, records

pytest.importorskip("pyarrow")
pytest.importorskip("numpy")

pytestmark = pytest.mark.usefixtures("every_shape")
VERSIONS = [
    pytest.param(made.api_key, version, id=f"{made.name}-{version}")
    for made in record_types().values()
    for version in range(made.schema.versions.low, (made.schema.versions.high or 0) + 1)
]
quick = settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_any_messages(key: int, version: int) -> None:
    made = record_types()[key]

    @quick
    @given(st.lists(messages(made.schema, version), min_size=1, max_size=4), st.booleans())
    def check(some: list[Message], show_secrets: bool) -> None:
        raw = batch([encode_value(made, version, message) for message in some])
        assert len(same(raw, show_secrets=show_secrets)) == len(some)

    check()


def plain_message(fields: tuple[Field, ...], version: int, rng: random.Random) -> Message:
    """A message as clusters write them: short texts, no unknown tags, tagged fields that are not their defaults."""
    mine = [field for field in fields if version in field.versions]
    return {f.name: _plain(f, version, rng) for f in mine if f.tag is None or rng.random() < 0.5}


def _plain(field: Field, version: int, rng: random.Random) -> object:
    if field.array:
        one = field._replace(array=False, nullable=False)
        return [_plain(one, version, rng) for _ in range(rng.randint(field.tag is not None, 3))]
    if field.nullable and field.tag is None and rng.random() < 0.3:
        return None
    if field.is_struct:
        return plain_message(field.fields, version, rng)
    number = rng.choice((1, 7, 100))
    made: dict[str, object] = {
        "bool": True, "uuid": uuid(rng.getrandbits(120)), "string": f"text-{'x' * rng.randrange(30)}",
        "bytes": rng.randbytes(20), "float64": rng.random() * 10 ** rng.randint(-20, 20),
    }  # fmt: skip
    return made.get(field.type, number)


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_what_clusters_write_is_decoded_together(key: int, version: int) -> None:
    from kshell.columnar.framing import frame
    from kshell.columnar.values import Values

    made, rng = record_types()[key], random.Random(key)
    raw = batch([encode_value(made, version, plain_message(made.schema.fields, version, rng)) for _ in range(60)])
    same(raw)
    framed, odd = frame([parsed(raw)])
    groups, alone = Values(Redaction(), with_data=True).decode(framed)
    assert not odd
    assert not len(alone)
    assert sum(len(group.rows) for group in groups) == 60
    assert {(group.name, group.version) for group in groups} == {(made.name, version)}


def test_nothing_is_lost_among_other_types() -> None:
    rng, raw, offset = random.Random(3), list[bytes](), 0
    pool = [(made, v) for made in record_types().values() for v in range((made.schema.versions.high or 0) + 1)]
    for _ in range(40):
        some = [rng.choice(pool) for _ in range(rng.randrange(1, 60))]
        values = [encode_value(made, v, plain_message(made.schema.fields, v, rng)) for made, v in some]
        raw.append(batch(values, offset, epoch=rng.randrange(9)))
        offset += len(values)
    same(*raw)


@pytest.mark.parametrize("seed", range(40))
def test_broken_values(seed: int) -> None:
    rng, raw = random.Random(seed), []
    for made in record_types().values():
        version = rng.randint(made.schema.versions.low, made.schema.versions.high or 0)
        for _ in range(8):
            one = bytearray(encode_value(made, version, plain_message(made.schema.fields, version, rng)))
            match rng.randrange(6):
                case 0:
                    del one[rng.randrange(len(one)) :]
                case 1:
                    one += rng.randbytes(rng.randrange(1, 5))
                case 2:
                    at = rng.randrange(len(one))
                    one[at:at] = rng.randbytes(1)
                case _:
                    for _ in range(rng.randrange(1, 4)):
                        one[rng.randrange(len(one))] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            raw.append(bytes(one))
    rng.shuffle(raw)
    same(batch(raw))


def test_a_last_value_that_promises_more_bytes_than_there_are() -> None:
    whole = value("TOPIC", name="a", topicId=uuid(1))
    for cut in range(len(whole)):
        same(batch([whole, whole[:cut]]))
        same(batch([whole[:cut]]))
    change = value("PARTITION_CHANGE", 2, topicId=uuid(1), partitionId=1, leader=5, isr=[1, 2, 3])
    for cut in range(len(change)):
        same(batch([change, change[:cut] + b"\x7f", change[:cut]]))


TEXTS = (
    "", 'quo"te', "back\\slash", "line\nend", "\x00", "\x7f", "\x1f", "é", "日本語", "\U0001f600", "\udce9",
    "x" * 126, "x" * 127,
)  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str) -> None:
    values = [value("TOPIC", name=one, topicId=uuid(5)) for one in ("before", name, "after", name + "x")]
    rows = same(batch(values))
    assert [row[2] for row in rows] == ["TOPIC_RECORD"] * 4


def test_a_tagged_field_with_its_default_is_not_printed() -> None:
    values = [value("PARTITION_CHANGE", 2, topicId=uuid(1), partitionId=1, leader=leader) for leader in (-2, 0, -1, -2)]
    rows = same(batch(values))
    assert [("leader" in row[4]) for row in rows] == [False, True, True, False]


def test_null_where_the_declaration_allows_none() -> None:
    one = value("PARTITION", 0, topicId=uuid(1), partitionId=1, replicas=[], isr=[], leader=1)
    at = 3 + 4 + 16
    assert one[at : at + 4] == b"\x01" * 4
    rows = same(batch([one, *(one[:place] + b"\x00" + one[place + 1 :] for place in range(at, at + 4))]))
    assert [row[5] is None for row in rows] == [True, False, False, False, False]
    topic = value("TOPIC", name="", topicId=uuid(1))
    assert same(batch([topic[:3] + b"\x00" + topic[4:]]))[0][5] is not None


def test_tagged_arrays_with_their_defaults() -> None:
    head = value("PARTITION_CHANGE", 2, topicId=uuid(1), partitionId=1)[:-1] + b"\x01"
    rows = same(batch([head + b"\x00\x01\x00", head + b"\x00\x01\x01", head + b"\x08\x01\x00", head + b"\x08\x01\x01"]))
    assert [("[]" in row[4], "null" in row[4]) for row in rows] == [(False, False), (True, False)] * 2
    head = value("BROKER_REGISTRATION_CHANGE", 3, brokerId=1)[:-1] + b"\x01"
    rows = same(batch([head + b"\x02\x01\x01", head + b"\x03\x01\x01", head + b"\x03\x01\x00"]))
    assert [("[]" in row[4], "null" in row[4]) for row in rows] == [(False, False), (True, False), (False, False)]


def test_a_field_that_is_written_twice() -> None:
    one = value("PARTITION_CHANGE", 2, topicId=uuid(1), partitionId=1, leader=3)
    head, tag = one[:-7], one[-6:]
    assert one[-7:] == b"\x01" + tag
    rows = same(batch([head + b"\x02" + tag + tag, one]))
    assert rows[0][4] == rows[1][4]


def test_tagged_fields_in_another_order() -> None:
    one = value("BROKER_REGISTRATION_CHANGE", 2, brokerId=1, brokerEpoch=2, fenced=1, inControlledShutdown=1)
    assert one.endswith(b"\x02\x00\x01\x01\x01\x01\x01")
    rows = same(batch([one, one[:-6] + b"\x01\x01\x01\x00\x01\x01"]))
    assert rows[0][4] != rows[1][4]


def test_a_tagged_text_that_does_not_end_where_its_size_says() -> None:
    head = value("BEGIN_TRANSACTION")[:-1]
    rows = same(batch([head + b"\x01\x00\x05" + text for text in (b"\x05abcd", b"\x04abc", b"\x06abcde", b"\x05wxyz")]))
    assert [row[5] is None for row in rows] == [True, False, False, True]


def test_numbers_at_their_ends() -> None:
    ends = (-(1 << 63), (1 << 63) - 1, 0, -1)
    same(batch([value("PRODUCER_IDS", brokerId=-1, brokerEpoch=one, nextProducerId=one) for one in ends]))
    reals = (0.0, -0.0, 1e300, 5e-324, float("inf"), float("-inf"), float("nan"), 0.1, 1e16, 123456789.0)
    same(batch([value("CLIENT_QUOTA", entity=[], key="k", value=one, remove=True) for one in reals]))


SECRET, SHOWN = "ssl.keystore.password", "retention.ms"


def test_config_values_follow_their_keys() -> None:
    def config(kind_: int, key: str, text: str | None) -> bytes:
        return value("CONFIG", resourceType=kind_, resourceName="r", name=key, value=text)

    made = [
        config(kind_, key, text)
        for text in ("canary", None, "", "can'ary", 'can"ary', "canary" * 30)
        for kind_ in (2, 4, 8, 99, -1)
        for key in (SECRET, SHOWN, "unknown.key", "listener.name.a.ssl.key.password", "log.cleaner.threads")
    ]
    for show in (False, True):
        rows = same(batch(made), show_secrets=show)
        assert any(REDACTED in row[4] for row in rows) is not show
        assert any(SHOWN in row[4] and "canary" in row[4] for row in rows)
        assert all("canary" not in row[4] for row in rows if f'"{SECRET}"' in row[4]) is not show


def test_secret_fields_are_hidden() -> None:
    made = [
        value(
            "USER_SCRAM_CREDENTIAL", name=name, mechanism=1, salt=salt, storedKey=b"canary", serverKey=b"canary" * 40,
            iterations=4096,
        )
        for name in ("alice", "bob")
        for salt in (b"", b"canary", b"canary" * 20)
    ]  # fmt: skip
    rows = same(batch(made))
    assert all(row[4].count(REDACTED) == 3 for row in rows)
    assert all(REDACTED not in row[4] for row in same(batch(made), show_secrets=True))


def test_only_what_is_asked_for() -> None:
    topic = value("TOPIC", name="t", topicId=uuid(1))
    made = [parsed(batch([value("NO_OP"), topic, b"\x01\x1f\x00?", b"", b"\x01\x9f\x01\x00"]))]
    every = together(made)
    assert [row[2] for row in every] == ["NO_OP_RECORD", "TOPIC_RECORD", "UNKNOWN_31", "UNKNOWN", "UNKNOWN_159"]
    for row in every:
        assert together(made, Narrowing(types=frozenset((row[2],)))) == [row]
    for since, until in ((Point(offset=2), Point()), (Point(), Point(offset=2)), (Point(offset=4), Point(offset=9))):
        narrowing = Narrowing(since=since, until=until)
        expected = [row for row in every if (since.offset or 0) <= row[0] <= (until.offset or 99)]
        assert together(made, narrowing) == expected
        assert together(made, narrowing, snapshot=True) == every
    assert together(made, Narrowing(since=Point(time_ms=TIME + 1))) == []
    assert together(made, Narrowing(until=Point(time_ms=TIME))) == every


def test_recorded_directories() -> None:
    for node in recorded():
        assert records(node) == dumped(node)[0], node


@pytest.mark.parametrize("seed", range(25))
def test_damaged_directories(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PAUSE", 0)
    rng = random.Random(seed)
    directory = damaged_copy(rng.choice(recorded()), tmp_path, rng)
    assert records(directory) == dumped(directory)[0]


def test_the_fewest_values_that_are_decoded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("walk", "values"):
        monkeypatch.setattr(f"kshell.columnar.{module}.LEAST", 24)
    rng, made = random.Random(1), []
    for index in range(300):
        isr = [1, 2, 3][: 1 + (index % 20 != 0) + (index % 7 != 0)]
        made.append(value("PARTITION_CHANGE", 2, topicId=uuid(rng.getrandbits(99)), partitionId=index, isr=isr))
    same(batch(made))
