"""A warehouse's own files: whole or not at all, here and in an object store."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kshell.errors import CommandError, UsageError
from kshell.spark.warehouse.storage import Storage, location, storage_of
from tests.spark import stores

Place = tuple[Storage, str]


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A URI below which nothing is."""
    pytest.importorskip("pyarrow")
    with stores.store():
        yield f"s3://{stores.BUCKET}"


@pytest.fixture(params=["path", "file URI", "s3 URI"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A storage and its place, where nothing is yet."""
    if request.param == "s3 URI":
        given = f"{request.getfixturevalue('bucket')}/{tmp_path.name}"
    else:
        given = str(tmp_path / "out") if request.param == "path" else f"{tmp_path.as_uri()}/out"
    return storage_of(given), location(given)


def test_what_is_not_there_is_nothing(place: Place) -> None:
    storage, root = place
    absent = storage.join(root, "a", "b")
    assert storage.read(absent) is None and not storage.exists(absent) and not storage.exists(root)
    assert storage.names(absent) == [] and storage.files(root) == []
    storage.remove(absent)
    storage.remove(root)


def test_files_are_written_replaced_listed_and_removed(place: Place) -> None:
    storage, root = place
    one, two, deep = (storage.join(root, *parts) for parts in (["a", "1"], ["a", "2"], ["a", "c", "3"]))
    for path, data in ((two, b"22"), (one, b"x"), (deep, b""), (one, b"1")):
        storage.write(path, data)
    assert [storage.read(path) for path in (one, two, deep)] == [b"1", b"22", b""]
    assert storage.names(storage.join(root, "a")) == ["1", "2", "c"] and storage.names(root) == ["a"]
    assert storage.files(root) == [(one, 1), (two, 2), (deep, 0)]
    assert storage.exists(storage.join(root, "a")) and storage.exists(one)
    storage.remove(one)
    assert storage.read(one) is None and storage.read(two) == b"22"
    storage.remove(storage.join(root, "a"))
    assert storage.files(root) == [] and not storage.exists(two)


def test_an_exclusive_write_replaces_nothing(place: Place) -> None:
    storage, root = place
    path = storage.join(root, "state", "1.json")
    storage.write(path, b"first", exclusive=True)
    with pytest.raises(FileExistsError):
        storage.write(path, b"second", exclusive=True)
    assert storage.read(path) == b"first" and storage.names(storage.join(root, "state")) == ["1.json"]


@pytest.mark.parametrize("why", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_an_exclusive_write_where_there_are_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: int
) -> None:
    def refused(*names: str) -> None:
        raise OSError(why, os.strerror(why))

    monkeypatch.setattr(os, "link", refused)
    storage, path = storage_of(str(tmp_path)), str(tmp_path / "state" / "1.json")
    storage.write(path, b"first", exclusive=True)
    with pytest.raises(FileExistsError):
        storage.write(path, b"second", exclusive=True)
    assert storage.read(path) == b"first" and os.listdir(tmp_path / "state") == ["1.json"]


def test_of_many_exclusive_writes_without_hard_links_one_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*names: str) -> None:
        raise PermissionError(errno.EPERM, "no hard links")

    def looked(path: str) -> bool:
        found = exists(path)
        time.sleep(0.01)  # somebody else could come in between
        return found

    exists = os.path.lexists
    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(os.path, "lexists", looked)
    storage, path = storage_of(str(tmp_path)), str(tmp_path / "1.json")

    def write(number: int) -> bool:
        try:
            storage.write(path, b"%d" % number, exclusive=True)
        except FileExistsError:
            return False
        return storage.read(path) == b"%d" % number

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(write, range(8))) == 1
    assert os.listdir(tmp_path) == ["1.json"]


def test_names_with_a_dot_are_not_listed(place: Place) -> None:
    storage, root = place
    storage.write(storage.join(root, ".1.crc"), b"x")
    storage.write(storage.join(root, "1"), b"x")
    assert storage.names(root) == ["1"] and [path for path, _ in storage.files(root)] == [storage.join(root, "1")]


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "state")
    storage = storage_of(path)
    storage.write(path, b"before")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CommandError, match="state: No space left"):
        storage.write(path, b"after")
    assert os.listdir(tmp_path) == ["state"] and storage.read(path) == b"before"


def test_a_file_where_a_directory_should_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    storage = storage_of(str(tmp_path))
    with pytest.raises(CommandError, match="file"):
        storage.write(str(tmp_path / "file" / "x"), b"")


def test_how_spark_names_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bucket: str) -> None:
    storage = storage_of(bucket)
    assert [storage.for_spark(f"{scheme}://b/x") for scheme in ("s3", "s3a", "gs", "abfss")] == [
        "s3a://b/x", "s3a://b/x", "gs://b/x", "abfss://b/x",
    ]  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert storage_of("out").for_spark("out/a b") == f"file://{tmp_path}/out/a b"
    assert location("out/") == f"{tmp_path}/out" and location(f"{bucket}/x/") == f"{bucket}/x"


def test_what_a_store_refuses_is_said_without_its_keys(bucket: str) -> None:
    storage = storage_of("s3://another/x")
    with pytest.raises(CommandError, match="s3://another/x/y: ") as error:
        storage.write("s3://another/x/y", b"1")
    assert stores.KEY not in str(error.value) and stores.SECRET not in str(error.value)


@pytest.mark.parametrize(
    "place",
    [
        f"s3://{stores.KEY}:canary@bucket/x",
        f"s3a://{stores.KEY}@bucket/x",
        "abfss://container:canary@account.dfs.core.windows.net/x",
        "hdfs://me:canary@namenode/x",
        "s3://bucket/x?endpoint_override=canary",
        "abfs://account.blob.core.windows.net/c?sv=1&sig=canary",
        "ftp://me:canary@host/x",
        "s3:///x",
    ],
)
def test_a_uri_with_a_key_or_options_is_refused_and_not_repeated(place: str) -> None:
    with pytest.raises(UsageError) as error:
        storage_of(place)
    said = f"{error.value.message} {error.value.hint}"
    assert "canary" not in said and stores.KEY not in said
