"""The text of a record is that of its decoded fields, whichever records came before it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kshell.json_text import to_json
from kshell.metadata import record_text
from kshell.metadata.record_text import RecordTexts
from kshell.metadata.records import decode_value, record_types
from kshell.metadata.redaction import Redaction
from tests.builders import encode_value, uuid, value
from tests.protocol.strategies import messages

KINDS = list(record_types().values())


def row(raw: bytes, redaction: Redaction) -> str:
    """The same out of the decoded record, as a row of ``dump`` has it."""
    decoded = decode_value(raw)
    shown = {"type": decoded.name, "version": decoded.version, "data": redaction.record(decoded)}
    return to_json(shown)[1:]


@given(st.data(), st.booleans())
def test_every_type(data: st.DataObject, show_secrets: bool) -> None:
    record = data.draw(st.sampled_from(KINDS))
    version = data.draw(st.sampled_from([version for version, _ in record.heads()]))
    redaction = Redaction(show_secrets=show_secrets)
    texts = RecordTexts(redaction)
    for message in data.draw(st.lists(messages(record.schema, version), min_size=1, max_size=4)):
        raw = encode_value(record, version, message)
        padded = b"before" + raw + b"behind"
        for _ in range(2):  # made, then remembered
            assert texts.text(padded, 6, 6 + len(raw)) == row(raw, redaction)


def test_records_that_differ_in_their_first_fields_share_a_text() -> None:
    texts, seen = RecordTexts(Redaction()), set()
    for number in (0, 7, -1, 2**31 - 1):
        for topic in (1, 2):
            raw = value("PARTITION_CHANGE", 0, partitionId=number, topicId=uuid(topic), isr=[1, 2], leader=1)
            text = texts.text(raw, 0, len(raw))
            assert text == row(raw, Redaction())
            seen.add(text)
    assert len(seen) == 8
    assert len(texts._rests) == 1


@pytest.mark.parametrize(
    "raw", [b"", b"\1", b"\1\5", b"\1\x63\0abc", b"\2\5\0", b"\1\5\x63", b"\1\2\0\5ab"], ids=lambda raw: raw.hex()
)
def test_what_cannot_be_decoded_has_none(raw: bytes) -> None:
    assert RecordTexts(Redaction()).text(raw, 0, len(raw)) is None


def test_what_follows_a_known_head_is_decoded_all_the_same() -> None:
    texts = RecordTexts(Redaction())
    good = value("PARTITION_CHANGE", 0, partitionId=1, topicId=uuid(1), leader=3)
    assert texts.text(good, 0, len(good)) is not None
    for damaged in (good[:-1], good + b"x", good[:10]):
        assert texts.text(damaged, 0, len(damaged)) is None


def test_a_config_is_hidden_by_its_key_and_resource() -> None:
    texts = RecordTexts(Redaction())
    shown = {}
    for resource, name in ((2, "retention.ms"), (4, "ssl.key.password"), (2, "nobody.knows")):
        raw = value("CONFIG", resourceType=resource, resourceName="1", name=name, value="same")
        text = texts.text(raw, 0, len(raw))
        assert text is not None
        shown[name] = json.loads("{" + text)["data"]["value"]
    assert shown == {"retention.ms": "same", "ssl.key.password": "[redacted]", "nobody.knows": "[redacted]"}


def test_long_texts_are_bounded_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_text, "_MOST_CHARACTERS", 10_000)
    texts = RecordTexts(Redaction())
    for number in range(100):
        raw = value("CONFIG", resourceType=2, resourceName=f"t{number}", name="retention.ms", value="\x01" * 300)
        assert texts.text(raw, 0, len(raw)) == row(raw, Redaction())
        assert sum(map(len, texts._rests.values())) <= 10_000


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_text, "_MOST_TEXTS", 10)
    texts = RecordTexts(Redaction())
    for number in range(100):
        raw = value("PARTITION_CHANGE", 0, partitionId=1, topicId=uuid(number), leader=number)
        assert texts.text(raw, 0, len(raw)) == row(raw, Redaction())
        assert max(len(texts._rests), len(texts._uuids)) <= 10
