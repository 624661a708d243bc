"""Sessions: lazy loading, points in time, where values come from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kshell.engine.session import Session, ago
from kshell.errors import DataError, UsageError
from kshell.sources.choose import demo_directory
from kshell.sources.directory.source import DirectorySource
from kshell.tree.node import Directory, Leaf, Node


@pytest.fixture
def session() -> Session:
    return Session(DirectorySource(demo_directory(), name="demo"))


def leaf(session: Session, path: str) -> Leaf:
    node = session.node(path)[1]
    assert isinstance(node, Leaf)
    return node


def test_nothing_is_read_before_it_is_needed(session: Session) -> None:
    assert session.root.segments() == ["image", "local", "log", "quorum", "snapshots"]
    assert session.node("/local/version")[1]
    assert not session.is_loaded
    session.node("/image/topics")
    assert session.is_loaded


def test_a_point_in_time(session: Session) -> None:
    then = session.reshape(point="160")
    assert then.image.provenance.offset == 160
    assert leaf(then, "/image/topics/byName/legacy-import/0").value()["leader"] == 3
    assert leaf(session, "/image/topics/byName/legacy-import/0").value()["leader"] == -1


def test_a_time_is_the_last_record_by_then(session: Session) -> None:
    entry = session.image["topics"]
    assert entry
    moment = leaf(session, "/image/provenance").value()["time"]
    assert session.reshape(point=moment).image.provenance.offset == session.image.provenance.offset
    with pytest.raises(DataError, match=r"the state at \S+ is not known"):
        session.reshape(point="2001-01-01T00:00:00Z").image.provenance.offset  # noqa: B018


@pytest.mark.parametrize("point", ["someday", "-5", "-5x", "", "1.5"])
def test_no_point(session: Session, point: str) -> None:
    with pytest.raises(UsageError, match="not a point"):
        session.reshape(point=point)


def test_before_everything_that_is_known(tmp_path: Path) -> None:
    twin = tmp_path / "__cluster_metadata-0"
    shutil.copytree(Path(demo_directory()) / "__cluster_metadata-0", twin)
    for segment in sorted(twin.glob("*.log"))[:-1]:
        segment.unlink()
    session = Session(DirectorySource(str(tmp_path)), until=40)
    with pytest.raises(DataError, match="before everything") as caught:
        session.image  # noqa: B018
    assert "56" in (caught.value.hint or "")


def test_secrets_come_and_go_with_the_option(session: Session) -> None:
    path = "/image/scram/SCRAM-SHA-256/alice"
    assert leaf(session, path).value()["salt"] == "[redacted]"
    shown = session.reshape(show_secrets=True)
    assert bytes.fromhex(leaf(shown, path).value()["salt"])
    assert shown.loaded is session.loaded


def everything(session: Session) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []

    def walk(node: Node, path: str) -> None:
        if isinstance(node, Directory):
            for segment in node.segments():
                child = node.child(segment)
                assert child is not None
                walk(child, f"{path}/{segment}")
        elif isinstance(node, Leaf):
            found.append((path, json.dumps(node.value())))

    image = session.root.child("image")
    assert image is not None
    walk(image, "/image")
    return found


def test_the_log_knows_who_wrote_what_a_snapshot_only_keeps(session: Session) -> None:
    """The origin of a leaf is the offset at which its value appears, and does not change again."""
    segments, node = session.node("/image/cluster/brokers/1")
    assert isinstance(node, Leaf)
    assert node.origin() is not None and node.origin().place.in_snapshot  # type: ignore[union-attr]
    origin = session.origin(segments, node)
    assert origin is not None and not origin.place.in_snapshot
    at = leaf(session.reshape(point=str(origin.offset)), "/image/cluster/brokers/1").value()
    before = leaf(session.reshape(point=str(origin.offset - 1)), "/image/cluster/brokers/1").value()
    assert at == node.value() != before


def test_replaying_from_the_oldest_gives_the_same_image(session: Session) -> None:
    segments, node = session.node("/image/cluster/brokers/1")
    assert isinstance(node, Leaf)
    session.origin(segments, node)
    assert everything(session._from_oldest) == everything(session)


def test_reload_reads_again(tmp_path: Path) -> None:
    shutil.copytree(demo_directory(), tmp_path / "copy")
    session = Session(DirectorySource(str(tmp_path / "copy")))
    newest = session.image.provenance.offset
    last = sorted((tmp_path / "copy" / "__cluster_metadata-0").glob("*.log"))[-1]
    last.unlink()
    session.reload()
    assert session.image.provenance.offset < newest


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0 s ago"), (59, "59 s ago"), (90, "2 min ago"), (10800, "3 h ago"), (172800, "2 d ago")]
)
def test_ago(seconds: float, said: str) -> None:
    assert ago(seconds) == said


def test_an_old_copy_says_so_and_the_sample_does_not(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    later = session.loaded.last_timestamp / 1000 + 3 * 3600 + 1
    monkeypatch.setattr("kshell.engine.session.time.time", lambda: later)
    assert session.notes() == []
    copy = Session(DirectorySource(demo_directory()))
    copy.image  # noqa: B018
    assert copy.notes() == ["last record 3 h ago"]
