"""Kafka's message definitions as they are read out of the jars."""

from __future__ import annotations

import json

import pytest

from tests.kafka import jars, messages


def test_comments_go_and_strings_stay() -> None:
    text = '// a "comment"\n{ "a": "http://x \\" // y", // z "q"\n  "b": 1 } // end'
    assert json.loads(messages.without_comments(text)) == {"a": 'http://x " // y', "b": 1}


@pytest.mark.live
@pytest.mark.parametrize(
    ("version", "records", "control"), [("3.3.2", 19, 3), ("3.9.2", 25, 5), ("4.3.1", 26, 5), ("4.4.0", 27, 5)]
)
def test_definitions_of_a_release(version: str, records: int, control: int) -> None:
    jars.require(version)
    metadata = messages.metadata_records(version)
    assert len(metadata) == records
    assert metadata["PartitionChangeRecord"]["apiKey"] == 5
    assert len(messages.control_records(version)) == control
    assert messages.requests(version)["FetchRequest"]["apiKey"] == 1
    assert "FetchResponse" in messages.responses(version)
