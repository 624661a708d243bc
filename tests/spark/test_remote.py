"""Metadata directories in an object store: the same rows as from this machine's files."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kshell.errors import SourceNotFoundError, UsageError
from kshell.sources import remote
from kshell.sources.copies.logs import Copy, read_together
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.directory.log import LogReader
from kshell.sources.directory.ranges import FileWindows
from kshell.sources.directory.sidecar_files import bootstrap_file, quorum_state
from kshell.sources.directory.source import DirectorySource
from kshell.spark.files.plan import Boundaries
from kshell.spark.files.scan import find
from tests.builders import FIXTURES, batch, value, write_log
from tests.spark import stores
from tests.spark.damaging import damaged_copy
from tests.spark.reading import rows

pytestmark = pytest.mark.slow
CHOSEN = FIXTURES / "4.2.1-rolled"


@pytest.fixture(scope="module")
def store() -> Iterator[stores.Store]:
    """A store with two clusters' directories."""
    pytest.importorskip("pyarrow")
    with stores.store() as made:
        for name in ("4.2.1-rolled", "3.9.2"):
            made.put(FIXTURES / name, f"fleet/{name}")
        yield made


def as_here(found: list[dict[str, Any]], uri: str, path: Path) -> list[dict[str, Any]]:
    """The rows with the paths that their files have on this machine."""
    return [row | {"file": row["file"].replace(uri, str(path))} for row in found]


FLEET = f"s3://{stores.BUCKET}/fleet"


@pytest.mark.parametrize("view", ["records", "files", "quarantine", "TOPIC"])
def test_views_are_those_of_the_files_here(store: stores.Store, view: str) -> None:
    there = rows(f"{FLEET}/*/*/{METADATA_DIRECTORY}", view=view, snapshots="all", sliceBytes="3000")
    here = [
        row
        for name in ("3.9.2", "4.2.1-rolled")
        for row in rows(f"{FIXTURES}/{name}/*/{METADATA_DIRECTORY}", view=view, snapshots="all", sliceBytes="3000")
    ]
    assert as_here(there, FLEET, FIXTURES) == here
    assert here or view == "quarantine"


@pytest.mark.parametrize(
    "pattern",
    [
        "*/*",
        "{4.2.1-rolled,3.9.2,x}/{broker-0,c*}",
        f"*/*/{METADATA_DIRECTORY}",
        "3.*/broker-?",
        "**",
        f"3.9.2/*/{METADATA_DIRECTORY}/*.log",
        "3.9.2/broker-0",
    ],
)
def test_what_globs_find_is_what_they_find_here(store: stores.Store, pattern: str) -> None:
    put = ("4.2.1-rolled", "3.9.2")
    here = [one for one in find([f"{FIXTURES}/{pattern}"]) if Path(one.path).relative_to(FIXTURES).parts[0] in put]
    there = find([f"{FLEET}/{pattern}"])
    assert [one.path.replace(FLEET, str(FIXTURES)) for one in there] == [one.path for one in here]
    assert [one.origin for one in there] == [one.origin for one in here]
    assert here


def test_s3a_and_a_slash_at_the_end(store: stores.Store) -> None:
    (found,) = find([f"s3a://{stores.BUCKET}/fleet/3.9.2/broker-0/"])
    assert found.path == f"s3a://{stores.BUCKET}/fleet/3.9.2/broker-0/{METADATA_DIRECTORY}"


@pytest.mark.parametrize("path", [f"{FLEET}/nowhere", f"{FLEET}/no*", f"{FLEET}/3.9.2", "s3://no-such-bucket-here/x"])
def test_nothing_there(store: stores.Store, path: str) -> None:
    with pytest.raises(SourceNotFoundError):
        find([path])


@pytest.mark.parametrize("name", sorted(path.name for path in CHOSEN.iterdir() if path.is_dir()))
def test_the_image_is_that_of_the_files_here(store: stores.Store, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kshell.sources.directory.ranges._READ", 1000)  # large files come in several windows
    there, here = DirectorySource(f"{FLEET}/{CHOSEN.name}/{name}"), DirectorySource(str(CHOSEN / name))
    mine, theirs = here.load(), there.load()
    assert theirs.image == mine.image and theirs.log_end_offset == mine.log_end_offset
    assert quorum_state(theirs.listing) == quorum_state(mine.listing)
    assert (bootstrap_file(theirs.listing) is None) == (bootstrap_file(mine.listing) is None)


def test_copies_are_compared_as_here(store: stores.Store) -> None:
    names = sorted(path.name for path in CHOSEN.iterdir() if (path / METADATA_DIRECTORY).is_dir())
    found = []
    for place in (str(CHOSEN), f"{FLEET}/{CHOSEN.name}"):
        copies = [Copy(f"{place}/{name}") for name in names]
        pairs = read_together(copies)
        ends = [(one.cluster_id, one.node_id, one.start, one.log_end, one.epochs, one.voters) for one in copies]
        found.append((ends, {key: (pair.since, pair.to) for key, pair in pairs.items()}))
    assert found[0] == found[1] and len(names) > 1


def test_damage_is_the_same_data(store: stores.Store, tmp_path: Path) -> None:
    found = 0
    for seed in range(5):
        here = damaged_copy(CHOSEN / "controller-3001", tmp_path / str(seed), random.Random(seed)).parent
        there = store.put(here, f"damaged/{seed}")
        for view in ("records", "quarantine", "files"):
            assert as_here(rows(there, view=view), there, here) == rows(here, view=view), (seed, view)
        found += bool(rows(here, view="quarantine"))
    assert found > 2


def test_a_large_file_is_read_in_ranges(store: stores.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_MOST", 1 << 17)
    body = b"".join(batch([value("NO_OP")] * 50, first) for first in range(0, 50 * 1200, 50))
    write_log(tmp_path, body)
    there = store.put(tmp_path, "large")
    size, store.asked[:] = len(body), []
    made = rows(there, columns="offset", sliceBytes="100000")
    assert [row["offset"] for row in made] == list(range(60_000))
    asked = [range_.removeprefix("bytes=").split("-") for method, _, range_ in store.asked if range_]
    lengths = [int(end) - int(start) + 1 for start, end in asked]
    assert max(lengths) < size / 2
    # Once for the headers, once for the records; some more where a slice ends before what was asked for.
    assert sum(lengths) < 3.5 * size
    assert len(store.asked) < size / 20_000


@pytest.mark.parametrize("mapped", [False, True])
def test_windows_of_a_file_in_a_store_are_read(store: stores.Store, tmp_path: Path, mapped: bool) -> None:
    raw = bytes(range(256)) * 100
    (tmp_path / "file").write_bytes(raw)
    place = f"{store.put(tmp_path, 'raw')}/file"
    with FileWindows(place, mapped=mapped, limit=20_000) as windows:
        window = windows.window(300, 10)
        assert (window.start, window.buf) == (300, raw[300:20_000])
        assert windows.window(20_000, 10).buf == b""
        assert windows.data_from(300) == 300


def test_of_a_file_that_was_replaced_by_a_longer_one_no_more_is_read_than_was_listed(
    store: stores.Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, more = batch([value("NO_OP")] * 20), batch([value("NO_OP")] * 20, 20)
    damaged = bytearray(first + more)
    damaged[-1] ^= 1
    write_log(tmp_path, bytes(damaged[: len(first)]))
    there = store.put(tmp_path, "grown")
    listing = find([there])[0].listing
    write_log(tmp_path, bytes(damaged))
    store.put(tmp_path, "grown")
    monkeypatch.setattr(Boundaries, "_by_headers", lambda self, segment, runs: 0)  # as where something is odd
    (plan,) = Boundaries(listing, 1 << 20).files()
    assert [(run.start, run.end) for run in plan.runs] == [(0, len(first))] and not plan.findings


def test_a_file_that_vanishes_is_listed_again(store: stores.Store, tmp_path: Path) -> None:
    write_log(tmp_path, batch([value("NO_OP")]))
    there = store.put(tmp_path, "vanishing")
    listing = find([there])[0].listing
    store.system().delete_dir(f"{stores.BUCKET}/vanishing")
    with pytest.raises(FileNotFoundError):
        list(LogReader(listing))


def test_a_colon_in_a_local_path_is_no_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "s3:" / "bucket", batch([value("NO_OP")]))
    assert [one.path for one in find(["s3:/bucket"])] == [f"{tmp_path}/s3:/bucket"]
    assert os.path.exists("s3:/bucket")


@pytest.mark.parametrize("uri", ["file:/a%20b", "file:///a%20b", "file://localhost/a%20b", "FILE://localhost/a%20b"])
def test_a_file_uri_of_this_host_is_a_path(uri: str) -> None:
    assert remote.plain(uri) == "/a b"


def test_a_file_uri_of_another_host_is_refused() -> None:
    with pytest.raises(UsageError, match="file://server/…: on another host"):
        remote.plain("file://server/share/x")
