"""Download a snapshot in pieces from the leader (KIP-630). It is used only once it is complete and verified.

Its size is only a claim of the leader, so no memory is reserved for it. A small one is kept in memory, a larger one in
a temporary file without a name, for which there must be room: a million partitions make about 150 MB.
"""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
import time
from math import inf
from typing import IO

from kshell.client import codes
from kshell.client.connection import Connection
from kshell.client.leader import MAX_BYTES, SnapshotChunk, SnapshotId, fetch_snapshot
from kshell.errors import ConnectError, NodeError, ProtocolError, ServerError, SourceTimeoutError
from kshell.protocol.messages.quorum import FETCH_SNAPSHOT
from kshell.protocol.names import UNKNOWN_SERVER_ERROR, error_name
from kshell.sources.directory.files import SnapshotFile
from kshell.sources.directory.log import Progress

_MOST_BYTES = 8 << 30
"""The largest size of a snapshot that is accepted: some fifty million partitions, more than any cluster has."""
_MOST_IN_MEMORY = 16 << 20
_SPARE = 256 << 20
"""Bytes that must stay free on the disk, because others write there, too."""
_SMALL_PIECE = 1024
"""Bytes; Kafka sends pieces of a MiB unless ``controller.quorum.fetch.snapshot.max.bytes`` says otherwise."""
_MOST_SMALL_PIECES = 1000
_SLOWEST = 1024
"""Bytes per second on average. A slower download is ended: it may have no end and only keep kshell waiting."""
_ROOM = "set TMPDIR to a directory with more room; if no snapshot of this cluster is so large, ask another controller"
_REAL = "compare with the files *.checkpoint in that controller's metadata.log.dir, or ask another controller"


class Downloader:
    """Downloads one snapshot at a time; if a connection breaks, the download continues over the next one.

    It continues only at the same node: each controller writes its snapshots itself, so that files of one name hold the
    same state in other bytes.
    """

    def __init__(self) -> None:
        self.progress: Progress | None = None
        self.advanced_at = -inf
        """The monotonic time at which a download last got further than any since the last complete one.

        A leader that lets the download begin again and again is no progress.
        """
        self._furthest = 0
        self._partial: _Partial | None = None

    def get(
        self, connection: Connection, leader_epoch: int, snapshot: SnapshotId, cluster_id: str | None
    ) -> SnapshotFile | None:
        """Download a snapshot; ``None`` if the leader has deleted it meanwhile.

        Args:
            connection: the connection to the leader.
            leader_epoch: the leader's epoch.
            snapshot: the snapshot to download.
            cluster_id: the id that the cluster must have, if it is known.

        Raises:
            NodeError: the download failed; ProtocolError if a piece is not the one that was asked for, NodeError itself
                if there is no room for the snapshot.
        """
        if self._partial is None or (self._partial.snapshot, self._partial.node) != (snapshot, connection.node):
            self._forget()
            self._partial = _Partial(snapshot, connection.node)
        partial = self._partial
        pace = _Pace(connection.timeout)
        while not partial.is_complete:
            try:
                piece = fetch_snapshot(connection, leader_epoch, snapshot, partial.position, cluster_id)
            except ServerError as error:
                raise _without_a_reason(error, partial) from None
            if piece.quorum.error == codes.SNAPSHOT_NOT_FOUND:
                self._forget()
                return None
            if piece.quorum.error == codes.POSITION_OUT_OF_RANGE and partial.position and not partial.restarted:
                partial.restart()
                continue
            _raise_for(piece)
            try:
                partial.add(piece, connection.node)
                pace.check(piece, connection.node)
            except NodeError:
                self._forget()
                connection.close()
                raise
            if partial.position > self._furthest:
                self._furthest, self.advanced_at = partial.position, time.monotonic()
            if self.progress is not None:
                self.progress(partial.position, piece.size, partial.name)
        self._furthest = 0
        try:
            data = partial.contents(connection.node)
        finally:
            self._forget()
        return SnapshotFile(partial.name, snapshot.end_offset, snapshot.epoch, len(data), 0, data)

    def _forget(self) -> None:
        partial, self._partial = self._partial, None
        if partial is not None:
            partial.drop()


def _without_a_reason(error: ServerError, partial: _Partial) -> NodeError:
    """The error to raise if the leader refused the whole request and gave no reason.

    Kafka cannot encode the answer to a refused FetchSnapshot (its records are null, up to 4.3 at least): if the
    snapshot is deleted, the leader has changed, or the position is wrong, it answers UNKNOWN_SERVER_ERROR. The next
    Fetch then shows the reason.
    """
    if error.code != UNKNOWN_SERVER_ERROR:
        return error
    partial.refused += 1
    if partial.refused > 1:
        partial.drop()
    return ConnectError(error.node, f"does not hand out the snapshot ({error_name(error.code)})", api=error.api)


def _raise_for(piece: SnapshotChunk) -> None:
    code, node = piece.quorum.error, piece.quorum.node
    if code in codes.EPOCH_CODES:
        reason = f"is not the leader now ({error_name(code)})"
        raise ConnectError(node, reason, api=FETCH_SNAPSHOT.name)
    if code:
        raise codes.failure(node, code, FETCH_SNAPSHOT.name)


class _Pace:
    """Detects a download that would never end: tiny pieces, or, after ``window`` seconds, too few bytes per second."""

    def __init__(self, window: float) -> None:
        self._window = window
        self._began = time.monotonic()
        self._bytes = 0
        self._small = 0

    def check(self, piece: SnapshotChunk, node: str) -> None:
        """Call this after each piece. Raises ProtocolError, SourceTimeoutError."""
        self._bytes += len(piece.data)
        is_last = piece.position + len(piece.data) == piece.size
        self._small += len(piece.data) < _SMALL_PIECE and not is_last
        if self._small > _MOST_SMALL_PIECES:
            reason = f"{self._small} pieces of the snapshot have fewer than {_SMALL_PIECE} bytes each"
            raise ProtocolError(node, reason, api=FETCH_SNAPSHOT.name, hint=_REAL)
        took = time.monotonic() - self._began
        if took > self._window and self._bytes < _SLOWEST * took and not is_last:
            reason = f"the snapshot comes too slowly: {self._bytes} bytes in {took:.0f} s, of {piece.size}"
            raise SourceTimeoutError(node, reason, api=FETCH_SNAPSHOT.name)


class _Partial:
    """A download in progress, from ``node``.

    ``size``: the whole snapshot's, as the first piece claims; ``position``: bytes so far.
    """

    def __init__(self, snapshot: SnapshotId, node: str) -> None:
        self.snapshot = snapshot
        self.node = node
        self.size: int | None = None
        self.position = 0
        self.restarted = False
        self.refused = 0
        """How often the request was refused since the last piece."""
        self._memory = bytearray()
        self._file: IO[bytes] | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every byte was received."""
        return self.size is not None and self.position == self.size

    def restart(self) -> None:
        """Start again, but only once: a leader with another file of the same name refuses to continue the download."""
        self.drop()
        self.restarted = True

    def drop(self) -> None:
        """Discard the bytes; the next piece is the first."""
        self.size, self.position, self._memory = None, 0, bytearray()
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def name(self) -> str:
        """Kafka's name for the file."""
        return f"{self.snapshot.end_offset:020d}-{self.snapshot.epoch:010d}.checkpoint"

    def add(self, piece: SnapshotChunk, node: str) -> None:
        """Add a piece. Raises ProtocolError for one that was not asked for, NodeError if there is no room for it."""
        fault = self._fault(piece)
        if fault is not None:
            raise ProtocolError(node, fault, api=FETCH_SNAPSHOT.name, hint=_REAL)
        try:
            if self.size is None:
                self.size = piece.size
                if piece.size > _MOST_IN_MEMORY:
                    self._file = _temporary_file(piece.size, self.name, node)
            if self._file is not None:
                self._file.write(piece.data)
            else:
                self._memory += piece.data
        except OSError as error:
            raise _no_room(self.name, piece.size, node, error.strerror or type(error).__name__) from None
        self.position, self.refused = self.position + len(piece.data), 0

    def _fault(self, piece: SnapshotChunk) -> str | None:
        """What is wrong with a piece; ``None`` if it is the one that was asked for."""
        position, size, data = piece.position, piece.size, piece.data
        if piece.snapshot != self.snapshot:
            return f"a piece of snapshot {tuple(piece.snapshot)} came, but {tuple(self.snapshot)} was requested"
        if position != self.position:
            return f"a piece from byte {position} came, but byte {self.position} was requested"
        if self.size is not None and size != self.size:
            return f"the snapshot's size is reported as {size} bytes, and was reported as {self.size}"
        if not 0 < size <= _MOST_BYTES:
            return f"the snapshot's size is reported as {size} bytes, and no snapshot has more than {_MOST_BYTES}"
        if not data or position + len(data) > size:
            return f"a piece of {len(data)} bytes at byte {position} does not fit {size} bytes"
        if len(data) > MAX_BYTES:
            return f"a piece of {len(data)} bytes came, but {MAX_BYTES} were requested"
        return None

    def contents(self, node: str) -> bytes | mmap.mmap:
        """All bytes; a temporary file is memory-mapped, because no other process can change or truncate it."""
        if self._file is None:
            return bytes(self._memory)
        try:
            self._file.flush()
            return mmap.mmap(self._file.fileno(), 0, prot=mmap.PROT_READ)
        except OSError as error:
            raise _no_room(self.name, self.position, node, error.strerror or type(error).__name__) from None


def _temporary_file(size: int, name: str, node: str) -> IO[bytes]:
    """Open a file without a name on a disk with room for ``size`` bytes. Raises NodeError, OSError."""
    directory = _directory()
    free = shutil.disk_usage(directory).free
    if size > free - _SPARE:
        raise _no_room(name, size, node, f"{directory} has {free} bytes free, of which {_SPARE} are left to others")
    return tempfile.TemporaryFile(dir=directory)


def _directory() -> str:
    """The user's directory for temporary files, else one on a disk: ``/tmp`` is in memory on many machines."""
    is_chosen = any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    lasting = "/var/tmp"
    if not is_chosen and os.access(lasting, os.W_OK | os.X_OK):
        return lasting
    return tempfile.gettempdir()


def _no_room(name: str, size: int, node: str, reason: str) -> NodeError:
    message = f"{name} is reported to have {size} bytes, and there is no room for it: {reason}"
    return NodeError(node, message, api=FETCH_SNAPSHOT.name, hint=_ROOM)
