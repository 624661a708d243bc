"""Our declarations of records and messages say what Kafka's own definitions say, in every release that has them."""

from __future__ import annotations

import pytest

from kshell.protocol.schema import Schema
from tests.kafka import comparison, jars
from tests.kafka.comparison import declared
from tests.kafka.shapes import message_differences, record_differences

pytestmark = pytest.mark.live

RELEASES = ("3.3.2", "3.9.2", "4.3.1", "4.4.0")


@pytest.mark.parametrize("release", RELEASES)
def test_metadata_records(release: str) -> None:
    jars.require(release)
    assert list(comparison.records(declared(), release)) == []


@pytest.mark.parametrize("release", RELEASES)
def test_control_records(release: str) -> None:
    jars.require(release)
    assert list(comparison.control_records(declared(), release)) == []


@pytest.mark.parametrize("release", RELEASES)
def test_requests_and_responses(release: str) -> None:
    jars.require(release)
    assert list(comparison.requests(declared(), release)) == []


@pytest.mark.parametrize("release", RELEASES)
def test_names_of_apis_and_error_codes(release: str) -> None:
    jars.require(release)
    assert list(comparison.names(declared(), release)) == []


def test_the_latest_release_is_the_newest_that_is_declared() -> None:
    """So what it lacks is told, too: nothing is declared that Kafka does not have."""
    assert comparison.is_newest(declared(), jars.LATEST)
    assert not comparison.is_newest(declared(), "4.3.1")


def test_a_difference_of_a_message_is_seen() -> None:
    message = {
        "name": "X", "flexibleVersions": "1+", "validVersions": "0-1", "fields": [
            {"name": "A", "versions": "0+", "type": "records"},
            {"name": "B", "versions": "1+", "type": "string", "taggedVersions": "1+", "tag": "0", "default": "b"},
        ],
    }  # fmt: skip
    for right in ("a bytes\nb string 1+ tag 0 = b", "a bytes?\nb string? 1+ tag 0 = b\nc int8 1+ tag 1"):
        assert message_differences(Schema("X", "0-1", right, flexible=1), message, defaults=True) == []
    for wrong in (
        "a string\nb string 1+ tag 0 = b", "a bytes\nb string 1+ tag 1 = b", "a bytes\nb string 1+ tag 0 = c",
        "a bytes", "a bytes\nb string 1+ = b", "a bytes\nc int8\nb string 1+ tag 0 = b", "b string 1+ tag 0 = b",
    ):  # fmt: skip
        assert message_differences(Schema("X", "0-1", wrong, flexible=1), message, defaults=True)


def test_a_difference_is_seen() -> None:
    message = {
        "name": "X", "flexibleVersions": "0+", "validVersions": "0-1", "fields": [
            {"name": "A", "versions": "0+", "type": "int32"},
            {"name": "B", "versions": "1+", "type": "string", "nullableVersions": "1+",
             "taggedVersions": "1+", "tag": "0", "default": "null"},
        ],
    }  # fmt: skip
    assert record_differences(Schema("X", "0-1", "a int32\nb string? 1+ tag 0 = null"), message) == []
    for wrong in (
        "a int32\nb string? 1+ tag 1 = null", "a int32\nb string? 1+ tag 0", "a int32\nb string 1+ tag 0 = null",
        "a int32\nb string? tag 0 = null", "a int64\nb string? 1+ tag 0 = null", "b string? 1+ tag 0 = null\nc int32",
        "a int32\nb string? 1+ = null", "a int32", "a int32 = -1\nb string? 1+ tag 0 = null",
    ):  # fmt: skip
        assert record_differences(Schema("X", "0-1", wrong), message)
