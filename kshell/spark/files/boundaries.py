"""Where the batches of a log begin and end, found by their headers alone, so that a file can be read in pieces.

The rules that make a log trustworthy (:mod:`kshell.protocol.verify`) need all of it in order, but of most batches only
the header: those are held against here. What is left for whoever reads a piece is the CRC. Where anything is odd, the
rest of that file is read and verified as everywhere else, beginning with the batch before: the outcome is that of
:class:`~kshell.sources.directory.log.LogReader`, and a test holds both against each other over every kind of damage.
"""

from __future__ import annotations

from collections.abc import Iterator

from kshell.errors import CorruptDataError, SourceError
from kshell.protocol.batches import HEADER_SIZE, MAX_BATCH, read_header
from kshell.protocol.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER, holds
from kshell.protocol.verify import MAGIC, FixedEpoch, looking_ahead
from kshell.protocol.windows import Windowed
from kshell.sources.directory.files import Listing, Segment, SnapshotFile
from kshell.sources.directory.log import LogReader, opened
from kshell.sources.directory.ranges import FileWindows, open_file
from kshell.sources.directory.sidecar_files import leader_epochs
from kshell.sources.directory.snapshot import SnapshotReader
from kshell.spark.files.headers import Headers, HeaderWalk
from kshell.spark.files.plan import UNREAD, FilePlan, Finding, Runs, damaged


class Boundaries(LogReader):
    """The files of a log with their runs. Raises FileNotFoundError (list again), SourceError."""

    def __init__(self, listing: Listing, cut: int) -> None:
        super().__init__(listing, resume=True)
        self._cut = cut
        self._given = 0
        self._begin = 0
        """The byte of the first segment at which the batch ``self._next`` begins, for who goes on in its middle."""
        self._lines = sorted(start for _, start in leader_epochs(listing))

    def files(self) -> Iterator[FilePlan]:
        """One plan a segment, in order."""
        for index, segment in enumerate(self._segments):
            before = len(self.damage)
            if not self._begin:
                self._joins(segment)
            gaps = len(self.damage)
            runs, findings = self._runs(), []
            try:
                self._add(segment, runs, is_last=index == len(self._segments) - 1)
            except SourceError as error:
                findings.append(Finding(-1, UNREAD, error.message))
            self._given = runs.given
            findings += [
                Finding(-1, "gap", error.message.removeprefix(f"{segment.path}: "))
                for error in self.damage[before:gaps]
            ]
            findings += [damaged(error) for error in self.damage[gaps:] if isinstance(error, CorruptDataError)]
            if self.torn is not None and self.torn[0] == segment.path:
                findings.append(Finding(self.torn[1].position, "torn", self.torn[1].reason))
            yield FilePlan(segment.path, segment.size, False, runs.done(), tuple(findings))

    def _runs(self) -> Runs:
        """Where the batches of the next segment are put."""
        return Runs(self._cut, self._given)

    def _add(self, segment: Segment, runs: Runs, *, is_last: bool) -> None:
        start = self._by_headers(segment, runs)
        if start is not None:
            with opened(segment, segment.size) as source:
                for batch in self._walk(source, segment, start, is_last=is_last):
                    runs.add(batch.position, batch.end, batch.base_offset, batch.last_offset + 1, batch.max_timestamp)

    def _by_headers(self, segment: Segment, runs: Runs) -> int | None:
        """Adds the batches whose headers fit; the byte from which the file must be verified, ``None`` for nowhere."""
        expected = segment.base_offset if self._next is None else self._next
        begin, self._begin = self._begin, 0
        file = open_file(segment.path)
        try:
            walk = HeaderWalk(Headers(file, segment), self._epochs, self._lines, expected)
            stop = walk.run(runs, begin)
        except OSError as error:
            raise SourceError(f"{segment.path}: {error.strerror or error}") from None
        finally:
            file.close()
        self._epochs = walk.epochs
        if walk.expected != expected:  # nothing is known of the end of a file without a good batch
            self._next = walk.expected
        return stop


_PIECES = 8
"""A snapshot counts only up to its first damage, so whoever reads a piece of it checks the CRCs before that piece, too:
more pieces would be more to check than to decode."""


def snapshot_plan(file: SnapshotFile, cut: int, *, control_only: bool = False) -> FilePlan:
    """The plan of a snapshot, or of its control batches alone. Raises FileNotFoundError (list again), SourceError."""
    runs = Runs(max(cut, file.size // _PIECES))
    if not control_only and _fits(file, runs):
        return FilePlan(file.path, file.size, True, runs.done(), is_proven=False)
    runs, reader = Runs(cut), SnapshotReader(file)
    try:
        for batch in reader:
            if control_only and not batch.is_control:
                continue
            runs.add(batch.position, batch.end, batch.base_offset, batch.last_offset + 1)
    except CorruptDataError as error:
        return FilePlan(file.path, file.size, True, runs.done(), (damaged(error),))
    return FilePlan(file.path, file.size, True, runs.done())


def _fits(file: SnapshotFile, runs: Runs) -> bool:
    """Whether all of it is as it must be, as far as headers and control batches tell; then its batches are added."""
    with FileWindows(file.path, mapped=True, is_sparsely_read=True) as source:
        return _fit(source, file, runs)


def _fit(source: Windowed, file: SnapshotFile, runs: Runs) -> bool:
    epoch, last, position = FixedEpoch(file.epoch), None, 0
    window = source.window(0, 0)
    while (size := source.size) - position >= HEADER_SIZE:
        window = looking_ahead(source, window, position)
        if window.end - position < HEADER_SIZE:
            return False
        batch = read_header(window.buf, position - window.start, window.start)
        expected = 0 if last is None else last.last_offset + 1
        if batch.magic != MAGIC or not HEADER_SIZE <= batch.size <= min(size - position, MAX_BATCH):
            return False
        if batch.base_offset != expected or batch.records != batch.last_offset_delta + 1 or batch.records < 1:
            return False
        if (batch.is_control and not batch.crc_is_good()) or epoch.fault(batch) is not None:
            return False
        if not holds(batch, SNAPSHOT_HEADER) if last is None else holds(last, SNAPSHOT_FOOTER):
            return False
        runs.add(position, batch.end, batch.base_offset, batch.last_offset + 1)
        last, position = batch, batch.end
    return position == source.size and last is not None and holds(last, SNAPSHOT_FOOTER)
