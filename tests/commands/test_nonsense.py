"""Records that are well formed and make no sense, in any order: kshell lists them, and no command fails over them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from kshell.engine.session import Session
from kshell.errors import KshellError
from kshell.metadata.records import RecordType, record_types
from kshell.protocol.primitives import ZERO_UUID
from kshell.protocol.schema import Field
from kshell.render import render
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.past import Past
from tests.builders import (
    TIME,
    control_batch,
    encode_value,
    leader_change,
    metadata,
    timed_batch,
    uuid,
    value,
    write_log,
)
from tests.commands.shell import opened, rows, run, sections

_NUMBERS = [-3, -2, -1, 0, 1, 2, 3, 4, 8, 16, 99]
_POOLS: dict[str, SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": st.sampled_from([*_NUMBERS, 127, -128]),
    "int16": st.sampled_from([*_NUMBERS, (1 << 15) - 1]),
    "uint16": st.sampled_from([0, 1, 9092]),
    "int32": st.sampled_from([*_NUMBERS, (1 << 31) - 1]),
    "uint32": st.sampled_from([0, 1]),
    "int64": st.sampled_from([*_NUMBERS, (1 << 63) - 1, -(1 << 63)]),
    "float64": st.sampled_from([0.0, -1.5, 1e300, float("inf")]),
    "uuid": st.sampled_from([uuid(1), uuid(2), ZERO_UUID]),
    "bytes": st.sampled_from([b"", b"x"]),
    "string": st.sampled_from(
        ["a", "b", "", "user", "client-id", "ip", "<default>", "metadata.version", "min.insync.replicas", "..", "a/b"]
    ),
}
"""Few values of each type, so that records meet the same keys again and again."""
COMMANDS = (
    "find / --values",
    "log",
    "log --noop -r",
    "log /image/topics/byName/a",
    "log /image/configs",
    "dump",
    "blame /image",
    "diff 0 now",
    "diff 0 now --stat",
    "health",
    "status",
    "info",
    "timeline --all",
    "when partitions --where 'leader == 1 and partition == 0'",
    "when topics --where 'offline > 0 or minIsr == 1'",
    "when brokers --where fenced",
    "when configs --where true",
    "topics",
    "partitions",
    "brokers",
    "controllers",
    "configs",
    "acls",
    "quotas",
    "users",
    "tokens",
    "features",
    "registrations",
    "skew",
    "ls -l /image",
    "stat /image/topics",
    "quorum",
    "grep a /image",
)


def of_field(field: Field, version: int) -> SearchStrategy[Any]:
    """Values of a field."""
    single = of_fields(field.fields, version) if field.is_struct else _POOLS[field.type]
    values = st.lists(single, max_size=3) if field.array else single
    return st.none() | values if field.nullable else values


def of_fields(fields: tuple[Field, ...], version: int) -> SearchStrategy[dict[str, Any]]:
    """Every field of a version; tagged ones may be left out."""
    present = [field for field in fields if version in field.versions]
    required = {field.name: of_field(field, version) for field in present if field.tag is None}
    optional: dict[Any, SearchStrategy[Any]] = {
        field.name: of_field(field, version) for field in present if field.tag is not None
    }
    return st.fixed_dictionaries(required, optional=optional)


def of_type(kind: RecordType) -> SearchStrategy[bytes]:
    """Values of records of one type, in any of its versions."""
    versions = range(kind.schema.versions.low, (kind.schema.versions.high or 0) + 1)
    return st.sampled_from(list(versions)).flatmap(
        lambda version: of_fields(kind.schema.fields, version).map(lambda data: encode_value(kind, version, data))
    )


RECORDS = st.one_of([of_type(kind) for kind in record_types().values()])
TOPIC, RENAMED = value("TOPIC", name="a", topicId=uuid(1)), value("TOPIC", name="b", topicId=uuid(1))
REMOVED = value("REMOVE_TOPIC", topicId=uuid(1))


def log_of(records: list[bytes], directory: Path) -> Session:
    """A log with a record in each batch, a second apart."""
    parts = [timed_batch([one], [TIME + 1000 * at], at) for at, one in enumerate(records, 1)]
    write_log(directory / METADATA_DIRECTORY, control_batch([leader_change()]), *parts)
    return opened(directory)


def answer(session: Session, line: str) -> str:
    """What a line prints; a reason why it cannot is an answer, too."""
    try:
        return "".join(render(run(session, line), "text", width=100))
    except KshellError as error:
        return str(error)


def test_a_topic_record_that_renames_a_topic_is_listed_and_changes_nothing(tmp_path: Path) -> None:
    session = log_of([TOPIC, RENAMED, REMOVED], tmp_path)
    assert answer(session, "find /image/topics").split() == [
        "/image/topics", "/image/topics/byId", "/image/topics/byName",
    ]  # fmt: skip
    assert session.problems() == [
        f"{'0' * 20}.log: offset 2: TOPIC_RECORD skipped: the topic id {uuid(1)} is that of topic a"
    ]
    between = session.reshape(point="2")
    assert [row["name"] for row in rows(between, "topics")] == ["a"]
    assert [row["reason"] for row in sections(session, "info")["problems"]] != []


@settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
@given(st.lists(RECORDS, min_size=1, max_size=24))
@example([TOPIC, RENAMED, REMOVED])
@example([TOPIC, RENAMED, value("CLEAR_ELR", topicName=""), value("CLEAR_ELR", topicName="a"), REMOVED])
def test_no_command_fails_over_records_that_make_no_sense(records: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        session = log_of(records, Path(directory))
        for line in COMMANDS:
            answer(session, line)
        for row in rows(session, "partitions"):
            answer(session, f"why {row['topic']}-{row['partition']}")
        past = Past(session.source)
        for offset in range(len(records) + 1):
            then = session.source.load(until=offset)
            recorded = past.at(offset)
            assert recorded is not None
            assert metadata(recorded.image) == metadata(then.image), offset
            for line in ("find / --values", "blame /image", "health", "partitions"):
                answer(session, f"{line} --as-of {offset}")
