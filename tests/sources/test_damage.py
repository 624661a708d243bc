"""Every single-bit flip and every cut of small real files: seen, at the right byte, and never another image."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kshell.errors import CorruptDataError, IncompleteLogError
from kshell.metadata.image import Image
from kshell.protocol.batches import LENGTH_END, read_header
from kshell.sources.directory.files import METADATA_DIRECTORY
from kshell.sources.directory.source import DirectorySource
from kshell.sources.source import Loaded
from tests import builders
from tests.builders import FIXTURES, batches, copy_of, metadata, recorded
from tests.commands.shell import opened, rows

ROLLED = FIXTURES / "4.2.1-rolled/controller-3002/__cluster_metadata-0"
EPOCHS = "leader-epoch-checkpoint"
LOGS = ["00000000000000000293.log", "00000000000000000152.log"]  # each holds a change of the leader
SNAPSHOTS = [
    FIXTURES / "3.3.2/broker-0/__cluster_metadata-0/00000000000000000009-0000000001.checkpoint",
    ROLLED / "00000000000000000000-0000000000.checkpoint",
]
LENGTH_FIELD = range(8, LENGTH_END)
EPOCH_FIELD = range(12, 16)

_DAMAGED = re.compile(r"; ([^;]+): byte (\d+):")

Verdict = tuple[str, str, int]
"""(kind, file, byte): ``damage`` or ``torn``."""


class Subject:
    """A file to damage, and what is opened to read it."""

    def __init__(self, file: Path, target: Path) -> None:
        self.file = file
        self.target = target
        self.raw = file.read_bytes()
        self.starts = [batch.position for batch in batches(self.raw)] if self.raw else []
        file.chmod(0o600)

    def load(self) -> Loaded:
        return DirectorySource(str(self.target)).load()

    def verdict(self) -> tuple[list[Verdict], Image | None]:
        """What reading says of the file, and the image where there is one. Anything but typed damage propagates."""
        try:
            loaded = self.load()
        except CorruptDataError as error:
            return [("damage", error.file, error.position)], None
        except IncompleteLogError as error:  # no snapshot is left to start from: the message lists the damaged ones
            return [("damage", file, int(place)) for file, place in _DAMAGED.findall(error.message)], None
        found = [("damage", d.file, d.position) for d in loaded.damage if isinstance(d, CorruptDataError)]
        if loaded.torn:
            found.append(("torn", loaded.torn[0], loaded.torn[1].position))
        return found, loaded.image

    def start_of(self, place: int) -> int:
        """The first byte of the batch that holds a byte."""
        return max(start for start in self.starts if start <= place)

    def flipped(self, places: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int, list[Verdict], Image | None]]:
        """Flips one bit after another; (byte, bit, verdict, image) of each. The file is whole again afterwards."""
        with open(self.file, "r+b", buffering=0) as file:
            for place, bit in places:
                file.seek(place)
                file.write(bytes([self.raw[place] ^ (1 << bit)]))
                try:
                    yield place, bit, *self.verdict()
                finally:
                    file.seek(place)
                    file.write(self.raw[place : place + 1])

    def allowed(self, place: int) -> list[list[Verdict]]:
        """The verdicts that are right for a flip in the byte ``place``."""
        start = self.start_of(place)
        right = [[("damage", str(self.file), start)]]
        if start == self.starts[-1] and place - start in LENGTH_FIELD and self.file.suffix == ".log":
            right.append([("torn", str(self.file), start)])
        return right


BIT_STEP = int(os.environ.get("KSHELL_BIT_STEP", "1"))
"""Of the bits, every which is flipped; no multiple of a byte, so that each byte has its turn."""


def every_bit(raw: bytes) -> Iterator[tuple[int, int]]:
    return ((place // 8, place % 8) for place in range(0, len(raw) * 8, BIT_STEP))


def placed(source: Path, to: Path, *, epochs: bool = True, cut: int | None = None, name: str | None = None) -> Path:
    """A metadata directory with a copy of one file, ``leader-epoch-checkpoint`` and ``quorum-state`` beside it."""
    inner = to / "__cluster_metadata-0"
    inner.mkdir()
    file = inner / (name or source.name)
    file.write_bytes(source.read_bytes()[:cut])
    for beside in ("quorum-state", *([EPOCHS] if epochs else [])):
        shutil.copyfile(source.parent / beside, inner / beside)
    return file


def whole_batches(raw: bytes, limit: int) -> int:
    """The end of the last batch that ends within ``limit`` bytes."""
    return max(batch.end for batch in batches(raw) if batch.end <= limit)


@pytest.fixture(params=[True, False], ids=["epochs", "no-epochs"])
def log_in_directory(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    """The first batches of a real log that starts at 0."""
    source = ROLLED / "00000000000000000000.log"
    file = placed(source, tmp_path, epochs=request.param, cut=whole_batches(source.read_bytes(), 1500))
    return Subject(file, tmp_path)


def images_after_each_batch(subject: Subject) -> list[Image]:
    """The image of the log's first batch, of its first two, and so on, the empty one before all."""
    batch_ends = [batch.end for batch in batches(subject.raw)]
    out = []
    for end in (0, *batch_ends):
        subject.file.write_bytes(subject.raw[:end])
        loaded = subject.load()
        assert not loaded.damage
        assert loaded.torn is None
        out.append(loaded.image)
    subject.file.write_bytes(subject.raw)
    return out


def test_every_flip_of_a_log_is_seen_and_what_came_before_it_is_the_image(log_in_directory: Subject) -> None:
    subject = log_in_directory
    images = images_after_each_batch(subject)
    assert len(subject.starts) > 3
    for place, bit, verdict, image in subject.flipped(every_bit(subject.raw)):
        assert verdict in subject.allowed(place), (place, bit)
        index = subject.starts.index(subject.start_of(place))
        good = images[index : index + 1]
        if (
            place - subject.starts[index] in EPOCH_FIELD
        ):  # the records are good, and only the next batch shows the epoch
            good = images[index : index + 2]
        assert image in good, (place, bit)


def test_every_cut_of_a_log_is_torn_or_a_shorter_log(log_in_directory: Subject) -> None:
    subject = log_in_directory
    images = images_after_each_batch(subject)
    for size in range(len(subject.raw)):
        subject.file.write_bytes(subject.raw[:size])
        verdict, image = subject.verdict()
        boundary = size == 0 or size in subject.starts
        start = 0 if size == 0 else subject.start_of(size)
        assert verdict == ([] if boundary else [("torn", str(subject.file), start)]), size
        assert image == images[subject.starts.index(start)], size


@pytest.mark.parametrize("name", LOGS)
def test_every_flip_of_a_lone_log_is_seen_at_its_batch(name: str, tmp_path: Path) -> None:
    file = placed(ROLLED / name, tmp_path)
    subject = Subject(file, file)
    assert subject.verdict()[0] == []
    for place, bit, verdict, _ in subject.flipped(every_bit(subject.raw)):
        assert verdict in subject.allowed(place), (place, bit)


@pytest.mark.parametrize("name", LOGS)
def test_without_leader_epochs_every_flip_is_still_seen(name: str, tmp_path: Path) -> None:
    """Only the epoch of a LeaderChange with one batch after it is one batch's word against another's."""
    file = placed(ROLLED / name, tmp_path, epochs=False)
    subject = Subject(file, file)
    assert read_header(subject.raw, subject.starts[-2]).is_control
    for place, bit, verdict, _ in subject.flipped(every_bit(subject.raw)):
        right = subject.allowed(place)
        if subject.start_of(place) == subject.starts[-2] and place - subject.starts[-2] in EPOCH_FIELD:
            right.append([("damage", str(file), subject.starts[-1])])
        assert verdict in right, (place, bit)


@pytest.mark.parametrize("name", LOGS)
def test_every_cut_of_a_lone_log(name: str, tmp_path: Path) -> None:
    file = placed(ROLLED / name, tmp_path)
    subject = Subject(file, file)
    for size in range(1, len(subject.raw)):
        file.write_bytes(subject.raw[:size])
        expected = [] if size in subject.starts else [("torn", str(file), subject.start_of(size))]
        assert subject.verdict()[0] == expected, size


@pytest.mark.parametrize("source", SNAPSHOTS, ids=lambda path: path.name[:31])
@pytest.mark.parametrize("lone", [False, True], ids=["directory", "lone"])
def test_every_flip_of_a_snapshot_is_damage_at_its_batch(source: Path, lone: bool, tmp_path: Path) -> None:
    file = placed(source, tmp_path)
    subject = Subject(file, file if lone else tmp_path)
    assert subject.verdict()[0] == []
    for place, bit, verdict, image in subject.flipped(every_bit(subject.raw)):
        assert verdict == [("damage", str(file), subject.start_of(place))], (place, bit)
        assert image is None


@pytest.mark.parametrize("source", SNAPSHOTS, ids=lambda path: path.name[:31])
@pytest.mark.parametrize("lone", [False, True], ids=["directory", "lone"])
def test_every_cut_of_a_snapshot_is_damage(source: Path, lone: bool, tmp_path: Path) -> None:
    file = placed(source, tmp_path)
    subject = Subject(file, file if lone else tmp_path)
    for size in range(len(subject.raw)):
        file.write_bytes(subject.raw[:size])
        verdict, image = subject.verdict()
        place = size if size == 0 or size in subject.starts else subject.start_of(size)
        assert verdict == [("damage", str(file), place)], size
        assert image is None


def test_every_flip_of_a_snapshot_without_an_epoch_in_its_name_is_seen(tmp_path: Path) -> None:
    file = placed(SNAPSHOTS[0], tmp_path, name="bootstrap.checkpoint")
    subject = Subject(file, file)
    assert subject.verdict()[0] == []
    for place, bit, verdict, _ in subject.flipped(every_bit(subject.raw)):
        assert verdict == [("damage", str(file), subject.start_of(place))], (place, bit)


def test_a_snapshot_that_is_flipped_gives_way_to_the_log(tmp_path: Path) -> None:
    node = FIXTURES / "3.3.2/broker-0"
    inner = copy_of(node, tmp_path)
    good = DirectorySource(str(inner)).load().image
    for newest in sorted(inner.glob("*.checkpoint"))[1:]:
        newest.unlink()
    subject = Subject(inner / SNAPSHOTS[0].name, inner)
    rng = random.Random(7)
    bits = rng.sample(list(every_bit(subject.raw)), 150)
    for place, bit, verdict, image in subject.flipped(iter(bits)):
        assert verdict == [("damage", str(subject.file), subject.start_of(place))], (place, bit)
        assert image is not None
        assert metadata(image) == metadata(good), (place, bit)


def _files_in_use(inner: Path) -> list[Path]:
    """The newest snapshot and the segments that are read after it."""
    listing = DirectorySource(str(inner)).listing()
    end = listing.snapshots[-1].end_offset or 0 if listing.snapshots else 0
    after = [Path(segment.path) for segment in listing.segments]
    first = max((i for i, s in enumerate(listing.segments) if (s.base_offset or 0) <= end), default=0)
    return [*(Path(snapshot.path) for snapshot in listing.snapshots[-1:]), *after[first:]]


@pytest.mark.soak
@pytest.mark.long
def test_flips_anywhere_in_the_recorded_directories(tmp_path: Path, soak_count: int) -> None:
    rng = random.Random()
    for node in recorded():
        inner = copy_of(node, tmp_path / node.parent.name)
        for path in _files_in_use(inner):
            subject = Subject(path, inner)
            if not subject.raw:
                continue
            starts = [start + place for start in subject.starts for place in range(17)]  # what no CRC covers
            places = rng.choices(starts, k=40 * soak_count) + rng.choices(range(len(subject.raw)), k=40 * soak_count)
            for place, bit, verdict, _ in subject.flipped((place, rng.randrange(8)) for place in places):
                assert verdict in subject.allowed(place), (str(path), place, bit)


@pytest.mark.soak
@pytest.mark.parametrize("flips", [2, 3, 4])
def test_several_flips_at_once_never_crash(flips: int, tmp_path: Path, soak_count: int) -> None:
    rng = random.Random()
    for node in recorded():
        inner = copy_of(node, tmp_path / node.parent.name)
        for path in _files_in_use(inner):
            subject = Subject(path, inner)
            for _ in range(20 * soak_count if subject.raw else 0):
                damaged = bytearray(subject.raw)
                for _ in range(flips):
                    damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
                path.write_bytes(damaged)
                assert bytes(damaged) == subject.raw or subject.verdict()[0], str(path)
            path.write_bytes(subject.raw)


def test_a_snapshot_that_ends_inside_a_batch_of_the_log_is_told(tmp_path: Path) -> None:
    directory = tmp_path / METADATA_DIRECTORY
    topics = [builders.value("TOPIC", name=f"t{number}", topicId=builders.uuid(number + 1)) for number in range(6)]
    builders.write_log(directory, builders.batch(topics[:4]), builders.batch(topics[4:], 4))
    builders.write_snapshot(directory, builders.snapshot(topics[:2]), 2)
    session = opened(directory)
    file = directory / "00000000000000000000.log"
    (note,) = session.loaded.notes
    assert note.startswith(
        f"{file}: byte 0: the snapshot ends inside this batch, at offset 2: perhaps it belongs to another log"
    )
    assert len(rows(session, "topics")) == 6  # as Kafka replays them
    damaged = {row["file"]: row["reason"] for row in rows(session, "verify") if row["verdict"] == "damaged"}
    assert damaged == {
        "00000000000000000002-0000000001.checkpoint": "offset 2 is inside a batch of the log, and Kafka takes snapshots"
        " between two"
    }
    builders.write_snapshot(directory, builders.snapshot(topics[:4]), 4)
    assert opened(directory).loaded.notes == []
