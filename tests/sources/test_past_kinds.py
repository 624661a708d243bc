"""Logs full of one kind of record: every state of them, values and the records behind them, as loading gives them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kshell.metadata.families.topics import TOPICS
from kshell.metadata.image import Image
from kshell.metadata.values import Entry, Origin, plain
from kshell.protocol.primitives import Uuid
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.directory.source import DirectorySource
from kshell.sources.past import Past
from tests.bench import logs
from tests.builders import batch, control_batch, leader_change, uuid, value, write_log

RECORDS = 1500


def told(image: Image) -> dict[tuple[Any, ...], tuple[Any, Origin | None]]:
    """Keys -> (value as JSON knows it, the record behind it). A UUID that became mere bytes reads otherwise."""
    found: dict[tuple[Any, ...], tuple[Any, Origin | None]] = {}

    def take(keys: tuple[Any, ...], held: Any) -> None:
        if isinstance(held, Entry):
            found[keys] = plain(held.value), held.origin
        elif isinstance(held, Mapping):
            for key, below in held.items():
                take((*keys, str(plain(key))), below)
        else:
            found[keys] = plain(held), None

    for family in set(image.tables) - {TOPICS}:
        take((family,), image[family])
    for topic_id, topic in image[TOPICS].items():
        assert isinstance(topic_id, Uuid)
        take((TOPICS, str(topic_id)), Entry((topic.name, topic.id), topic.origin))
        take((TOPICS, str(topic_id)), dict(topic.partitions()))
    return found


def compare(source: DirectorySource, offsets: range) -> None:
    past = Past(source)
    for offset in offsets:
        ours, theirs = past.at(offset), source.load(until=offset)
        assert ours is not None
        assert told(ours.image) == told(theirs.image), offset


@pytest.mark.parametrize("kind", logs.KINDS)
def test_every_kind_of_log(kind: str, tmp_path: Path) -> None:
    compare(DirectorySource(str(logs.made(kind, RECORDS, tmp_path))), range(0, RECORDS + 2, 167))


def acl(number: int) -> bytes:
    return value(
        "ACCESS_CONTROL_ENTRY", id=uuid(number), resourceType=2, resourceName="t", patternType=3, principal="User:a",
        host="*", operation=3, permissionType=3,
    )  # fmt: skip


def unacl(number: int) -> bytes:
    return value("REMOVE_ACCESS_CONTROL_ENTRY", id=uuid(number))


def config(name: str, text: str | None) -> bytes:
    return value("CONFIG", resourceType=2, resourceName="t", name=name, value=text)


BEGIN, END = value("BEGIN_TRANSACTION"), value("END_TRANSACTION")
COMING_AND_GOING = [
    acl(1), unacl(1), acl(1), acl(2), unacl(1),  # a key that comes back
    BEGIN, acl(1), unacl(1), END,  # never there
    BEGIN, unacl(2), acl(2), END,  # never gone
    acl(3), BEGIN, unacl(3), unacl(2), END,
    config("a", "1"), config("a", None), config("a", "2"), config("b", "1"),
    BEGIN, config("a", None), config("b", None), config("a", "3"), END,
    config("a", "4"), config("a", None),  # the last of the resource
]  # fmt: skip


def test_keys_that_come_and_go_and_come_back(tmp_path: Path) -> None:
    parts = [batch([one], 1 + at) for at, one in enumerate(COMING_AND_GOING)]
    write_log(tmp_path / METADATA_DIRECTORY, control_batch([leader_change()]), *parts)
    source = DirectorySource(str(tmp_path))
    end = len(COMING_AND_GOING) + 1
    compare(source, range(end + 1))
    found = Past(source).history()
    assert found is not None
    history = found[0]
    held = [(since, entry and entry.value) for since, entry in history.versions("configs", (("TOPIC", "t"), "a"), end)]
    assert held == [(end - 1, None), (end - 2, "4"), (27, "3"), (21, "2"), (20, None), (19, "1")]
    assert history.keys("configs", 20) == {(("TOPIC", "t"), "a")}
    assert history.keys("acls", 0) == set()
    assert history.keys("acls", end) == {(uuid(number),) for number in (1, 2, 3)}


def test_what_is_gone_is_told_when_the_log_has_grown(tmp_path: Path) -> None:
    metadata = tmp_path / METADATA_DIRECTORY
    parts = [control_batch([leader_change()]), batch([acl(1), unacl(1)], 1)]
    path = write_log(metadata, *parts)
    past = Past(DirectorySource(str(tmp_path)))
    found = past.history()
    assert found is not None
    assert [since for since, _ in found[0].versions("acls", (uuid(1),), 10)] == [2, 1]
    path.write_bytes(path.read_bytes() + batch([acl(1), unacl(1)], 3))
    found = past.history()
    assert found is not None
    assert [since for since, _ in found[0].versions("acls", (uuid(1),), 10)] == [4, 3, 2, 1]


def test_memory_given_back_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces as small as they can be: whatever the walk still looks at must be there."""
    monkeypatch.setattr("kshell.sources.directory.ranges._READ", 4096)
    compare(DirectorySource(str(logs.made("topics that come and go", 3000, tmp_path))), range(0, 3000, 600))


def test_a_bad_epoch_is_found_in_memory_that_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch to blame can be the one before."""
    monkeypatch.setattr("kshell.sources.directory.ranges._READ", 4096)
    parts = [batch([value("NO_OP")] * 50, 50 * at, 7 if at == 199 else 1) for at in range(400)]
    write_log(tmp_path / METADATA_DIRECTORY, *parts)
    source = DirectorySource(str(tmp_path))
    past = Past(source)
    for offset in (0, 9_000, 9_949):
        ours = past.at(offset)
        assert ours is not None and ours.image.provenance == source.load(until=offset).image.provenance
    assert past.at(10_000) is None
