"""A snapshot, fetched in pieces from the leader (KIP-630). It is shown only once it is whole and was verified."""

from __future__ import annotations

import mmap

from kshell.client import codes
from kshell.client.connection import Connection
from kshell.client.observe import Piece, SnapshotId, fetch_snapshot
from kshell.errors import ConnectError, NodeError, ProtocolError, ServerError
from kshell.protocol.error_codes import UNKNOWN_SERVER_ERROR, error_name
from kshell.protocol.messages.quorum import FETCH_SNAPSHOT
from kshell.sources.files import SnapshotFile
from kshell.sources.log import Progress

_MOST_BYTES = 1 << 36
"""A claim beyond this is not believed; memory is taken only as it fills."""


class Downloader:
    """Keeps what a connection brought before it broke, and goes on from there with the next one."""

    def __init__(self) -> None:
        self.progress: Progress | None = None
        self._partial: _Partial | None = None

    def get(
        self, connection: Connection, leader_epoch: int, snapshot: SnapshotId, cluster_id: str | None
    ) -> SnapshotFile | None:
        """The snapshot's bytes; ``None`` when the leader has deleted it meanwhile. Raises NodeError."""
        if self._partial is None or self._partial.snapshot != snapshot:
            self._partial = _Partial(snapshot)
        partial = self._partial
        while partial.buffer is None or partial.position < len(partial.buffer):
            try:
                piece = fetch_snapshot(connection, leader_epoch, snapshot, partial.position, cluster_id)
            except ServerError as error:
                raise _without_a_reason(error, partial) from None
            if piece.quorum.error == codes.SNAPSHOT_NOT_FOUND:
                self._partial = None
                return None
            if piece.quorum.error == codes.POSITION_OUT_OF_RANGE and partial.position and not partial.begun_again:
                partial.begin_again()
                continue
            _raise_for(piece)
            fault = partial.add(piece)
            if fault is not None:
                self._partial = None
                connection.close()
                raise ProtocolError(connection.node, fault, api=FETCH_SNAPSHOT.name)
            if self.progress is not None:
                self.progress(partial.position, piece.size, partial.name)
        self._partial = None
        return SnapshotFile(
            partial.name, snapshot.end_offset, snapshot.epoch, len(partial.buffer), 0, partial.buffer
        )  # fmt: skip


def _without_a_reason(error: ServerError, partial: _Partial) -> NodeError:
    """The error to raise for a refusal of the whole request.

    Kafka cannot write a refused FetchSnapshot (its records are null, up to 4.3 at least): whether the snapshot is gone,
    the leader another or the position wrong, it answers UNKNOWN_SERVER_ERROR. A Fetch then says what is the matter.
    """
    if error.code != UNKNOWN_SERVER_ERROR:
        return error
    partial.refused += 1
    if partial.refused > 1:
        partial.buffer, partial.position = None, 0
    return ConnectError(error.node, f"does not hand out the snapshot ({error_name(error.code)})", api=error.api)


def _raise_for(piece: Piece) -> None:
    code, node = piece.quorum.error, piece.quorum.node
    if code in codes.EPOCH_CODES:
        reason = f"is not the leader now ({error_name(code)})"
        raise ConnectError(node, reason, api=FETCH_SNAPSHOT.name)
    if code:
        raise codes.failure(node, code, FETCH_SNAPSHOT.name)


class _Partial:
    """How far a download is. ``buffer`` has the snapshot's full size from the first piece on."""

    def __init__(self, snapshot: SnapshotId) -> None:
        self.snapshot = snapshot
        self.buffer: mmap.mmap | None = None
        self.position = 0
        self.begun_again = False
        self.refused = 0
        """How often, since the last piece."""

    def begin_again(self) -> None:
        """Once: a leader that has another file under the same name refuses where we would go on."""
        self.buffer, self.position, self.begun_again = None, 0, True

    @property
    def name(self) -> str:
        """Kafka's name for the file."""
        return f"{self.snapshot.end_offset:020d}-{self.snapshot.epoch:010d}.checkpoint"

    def add(self, piece: Piece) -> str | None:
        """Takes a piece in; returns what is wrong with it, if anything."""
        position, size, data = piece.position, piece.size, piece.data
        if piece.snapshot != self.snapshot:
            return f"a piece of snapshot {tuple(piece.snapshot)} came, {tuple(self.snapshot)} was asked for"
        if position != self.position:
            return f"a piece from byte {position} on came, {self.position} was asked for"
        if not 0 < size <= _MOST_BYTES or (self.buffer is not None and size != len(self.buffer)):
            return f"the snapshot's size is said to be {size} bytes"
        if not data or position + len(data) > size:
            return f"a piece of {len(data)} bytes at byte {position} does not fit {size} bytes"
        if self.buffer is None:
            self.buffer = mmap.mmap(-1, size)
        self.buffer[position : position + len(data)] = data
        self.position, self.refused = position + len(data), 0
        return None
