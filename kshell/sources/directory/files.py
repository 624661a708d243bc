"""The files of a metadata directory: list them, parse their names, and open them safely.

Kafka names them ``%020d.log`` (base offset) and ``%020d-%010d.checkpoint`` (end offset, exclusive, and epoch).
Everything else in the directory (indexes, ``.part``, ``.deleted``, producer snapshots) is ignored.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kshell.errors import CommandError, SourceError, SourceNotFoundError, SourcePermissionError
from kshell.protocol.primitives import Buffer

METADATA_DIRECTORY = "__cluster_metadata-0"
META = "meta.properties"
"""This file is in the log directory, next to the metadata directory."""
BOOTSTRAP = "bootstrap.checkpoint"
STOP, TAIL, SKIP = "stop", "tail", "skip"
ON_CORRUPTION = (STOP, TAIL, SKIP)
"""What to do at a damaged batch of the log. ``stop``: answer with the state before it. ``tail``: the same, but an
unreadable end of the log counts as torn, not as damaged. ``skip``: leave the batch out, and apply those after it."""
DELETED = ".deleted"
"""What a server appends to a file's name a minute before it deletes the file."""
VANISHES = "the file vanishes again and again"
"""The reason in an error if a file was listed several times and was gone each time when it was opened."""
_NAME = re.compile(r"([0-9]{20})(?:\.log|-([0-9]{10})\.checkpoint)\Z")


class FileName(NamedTuple):
    """A parsed file name. ``offset``: a segment's base offset or a snapshot's end offset; segments have no epoch."""

    offset: int
    epoch: int | None


def named(name: str) -> FileName | None:
    """Parse a file's name; ``None`` for any other name, and for numbers that are too large for an offset or epoch."""
    match = _NAME.match(name)
    if match is None:
        return None
    offset, epoch = int(match[1]), None if match[2] is None else int(match[2])
    return FileName(offset, epoch) if offset < 1 << 63 and (epoch or 0) < 1 << 31 else None


class Segment(NamedTuple):
    """One file of the log. ``base_offset`` is ``None`` if its name does not say it (a lone, renamed file).

    ``size`` is in bytes; ``changed`` is the time of the last change, in nanoseconds since 1970.
    """

    path: str
    base_offset: int | None
    size: int
    changed: int
    data: bytes | None = None
    """The bytes that an observer has fetched, if there is no file; else ``None``."""


class SnapshotFile(NamedTuple):
    """One snapshot. ``end_offset`` (exclusive) and ``epoch`` are ``None`` if its name does not say them."""

    path: str
    end_offset: int | None
    epoch: int | None
    size: int
    changed: int
    data: Buffer | None = None
    """The bytes that an observer has fetched, if there is no file; else ``None``."""

    @property
    def is_bootstrap(self) -> bool:
        """Whether kafka-storage wrote it: it has the voters, and from 4.4 on the first metadata records (KIP-1170).

        The first active controller writes these records into the log, and only there do they count: Kafka never loads
        its image from this file (``MetadataLoader.handleLoadBootstrap``).
        """
        return self.end_offset == 0 and self.epoch == 0


class Listing(NamedTuple):
    """The segments and snapshots there are to read, oldest first. ``directory`` is ``None`` for a lone file.

    ``sidecar_texts``: name -> text of the sidecar files of a live source, which has no directory.
    ``first_needed_offset``: a live source does not give out the records below this offset, and none of them changes the
    image. ``log_start``: where the log begins, if the segments here are only its end.
    """

    directory: str | None
    segments: tuple[Segment, ...]
    snapshots: tuple[SnapshotFile, ...]
    sidecar_texts: Mapping[str, str] | None = None
    first_needed_offset: int = 0
    log_start: int | None = None
    unreadable: tuple[str, ...] = ()
    """One sentence for each entry that has the name of a segment or snapshot, but is no file that can be read."""
    on_corruption: str = STOP
    """One of :data:`ON_CORRUPTION`."""

    @property
    def has_log(self) -> bool:
        """Whether there is a log. A running quorum always has one, even if no segment of it is here, because a snapshot
        can end where the log does.
        """
        return bool(self.segments) or self.log_start is not None

    def missing_from(self, read_end: int | None, snapshot_end: int | None) -> int | None:
        """The end of a directory's log, if it is before ``snapshot_end``, so that records are missing; else ``None``.

        A server's log never ends before a snapshot does: after fetching a snapshot, the server begins an empty segment
        at its end (``KafkaMetadataLog.truncateToLatestSnapshot``). If there is no segment at all, somebody copied only
        the snapshots.

        Args:
            read_end: the offset after the log's last record; ``None`` where none was read.
            snapshot_end: the offset after the newest whole snapshot's last record; ``None`` where there is none.
        """
        if self.directory is None or not self.segments or not snapshot_end:
            return None
        log_end = max(read_end or 0, self.segments[-1].base_offset or 0)
        return log_end if log_end < snapshot_end else None


def is_remote(path: str) -> bool:
    """Whether ``path`` is a URI of an object store or of HDFS (:mod:`kshell.sources.remote`)."""
    if "://" not in path:
        return False
    from kshell.sources import remote  # imported late: local files do not need it

    return remote.is_remote(path)


def locate(path: str) -> str:
    """The path itself, or the metadata directory in it. Raises SourceNotFoundError, SourcePermissionError."""
    if is_remote(path):
        from kshell.sources import remote

        return remote.locate(path, METADATA_DIRECTORY)
    try:
        os.stat(path)
    except PermissionError:
        raise permission(path) from None
    except (OSError, ValueError):  # a path with a NUL is none
        raise SourceNotFoundError(f"{path}: no such file or directory") from None
    if not os.path.isdir(path):
        return path
    inner = os.path.join(path, METADATA_DIRECTORY)
    try:
        return inner if stat.S_ISDIR(os.stat(inner).st_mode) else path
    except PermissionError:  # nobody may search the directory: what is in it is unknown
        raise permission(path) from None
    except OSError:
        return path


def scan(path: str) -> Listing:
    """List the files of ``path``, which :func:`locate` returned. Raises SourceNotFoundError if none can be read."""
    unreadable: list[str] = []
    files = _files(path, unreadable)
    if files is None:
        return _lone(path)
    segments, snapshots = [], []
    for name, its_path, size, changed in files:
        parsed = named(name)
        if parsed is not None and parsed.epoch is None:
            segments.append(Segment(its_path, parsed.offset, size, changed))
        elif parsed is not None:
            snapshots.append(SnapshotFile(its_path, parsed.offset, parsed.epoch, size, changed))
    if not segments and not snapshots:
        hint = unreadable[0] if unreadable else _what_to_pass(path)
        raise SourceNotFoundError(f"{path}: holds no metadata log and no snapshot", hint=hint)
    return Listing(path, tuple(sorted(segments)), tuple(sorted(snapshots)), unreadable=tuple(sorted(unreadable)))


_File = tuple[str, str, int, int]
"""(name, path, size in bytes, time of the last change in nanoseconds since 1970)."""


def _files(path: str, unreadable: list[str]) -> list[_File] | None:
    """The files in a directory, of a local one only segments and snapshots; ``None`` if ``path`` is no directory."""
    if is_remote(path):
        from kshell.sources import remote

        if remote.infos([path])[0].is_file:
            return None
        entries = ((os.path.basename(info.path), info) for info in remote.children(path) if info.is_file)
        return [(name, info.path, info.size, info.changed) for name, info in entries]
    if not os.path.isdir(path):
        return None
    try:
        return list(_local_files(path, unreadable))
    except PermissionError:
        raise permission(path) from None
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from None


def _local_files(path: str, unreadable: list[str]) -> Iterator[_File]:
    with os.scandir(path) as entries:
        for entry in entries:
            if named(entry.name) is None:
                continue
            try:
                status = entry.stat()
            except FileNotFoundError:
                if entry.is_symlink():
                    unreadable.append(f"{entry.path}: a link to a file that does not exist: left out")
                continue  # deleted while we list: a running server does that
            except OSError as error:  # such as a link to itself
                if isinstance(error, PermissionError) and not entry.is_symlink():
                    raise  # nobody may search the directory: it may be listed, but no file in it can be read
                unreadable.append(f"{entry.path}: {error.strerror}: left out")
                continue
            if stat.S_ISREG(status.st_mode):
                yield entry.name, entry.path, status.st_size, status.st_mtime_ns
            else:
                unreadable.append(f"{entry.path}: {_kind(status.st_mode)}, not a file: left out")


def _what_to_pass(path: str) -> str:
    """The hint for a user who named a directory without metadata files."""
    try:
        names = os.listdir(path)
    except OSError:
        names = []
    if os.path.basename(os.path.normpath(path)) == METADATA_DIRECTORY:
        return "its log and snapshots are not in it: look at a backup, or at the other nodes' copies (brokers have one)"
    if META in names and (_SERVER_RAN.intersection(names) or any(_PARTITION.search(name) for name in names)):
        return (
            f"a server has run on this log directory, and {METADATA_DIRECTORY} is not in it: it was removed, or is in"
            " metadata.log.dir, or in another of log.dirs"
        )
    if BOOTSTRAP in names or META in names:
        return (
            f"this log directory was formatted, and {METADATA_DIRECTORY} is not in it: no server has run on it yet, or"
            " somebody removed it"
        )
    below = [inner for name in sorted(names)[:_LOOKED_INTO] if _holds_metadata(inner := os.path.join(path, name))]
    if below:
        from kshell.wording import first_of  # late: only this hint needs it

        return f"below it there are some that do: {first_of(below, _PROPOSED)}"
    return f"pass a {METADATA_DIRECTORY} directory, the log directory around it (metadata.log.dir), or one file of it"


_SERVER_RAN = frozenset(
    f"{name}-offset-checkpoint" for name in ("recovery-point", "replication", "log-start", "cleaner")
)
"""What brokers write next to their partitions."""
_PARTITION = re.compile(r"-\d+$")
_LOOKED_INTO, _PROPOSED = 1000, 5
"""How many subdirectories are searched at the most, and how many of them the hint names."""


def _holds_metadata(path: str) -> bool:
    """Whether a directory is a metadata directory, or the log directory around one."""
    inner = path if os.path.basename(path) == METADATA_DIRECTORY else os.path.join(path, METADATA_DIRECTORY)
    return os.path.isdir(inner)


_ARCHIVES = (".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".zip", ".7z")


def _lone(path: str) -> Listing:
    """The listing of one file. Raises SourceNotFoundError if its name is not that of a segment or snapshot."""
    name = os.path.basename(path)
    size, changed = _size_and_change(path)
    parsed = named(name)
    if name.endswith(".checkpoint"):
        end, epoch = parsed or (None, None)
        return Listing(None, (), (SnapshotFile(path, end, epoch, size, changed),))
    if name.endswith(".log"):
        return Listing(None, (Segment(path, parsed.offset if parsed else None, size, changed),), ())
    if name.endswith(_ARCHIVES):
        raise SourceNotFoundError(f"{path}: an archive, or compressed", hint="unpack it, and name what comes out of it")
    raise SourceNotFoundError(
        f"{path}: not a metadata file", hint="kshell reads .log and .checkpoint files, and directories of them"
    )


def _size_and_change(path: str) -> tuple[int, int]:
    """A file's size in bytes, and the time of its last change in nanoseconds since 1970."""
    if is_remote(path):
        from kshell.sources import remote

        info = remote.infos([path])[0]
        if not info.is_file:
            raise SourceNotFoundError(f"{path}: no longer there")
        return info.size, info.changed
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise SourceNotFoundError(f"{path}: no longer there") from None
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from None
    return status.st_size, status.st_mtime_ns


def permission(path: str) -> SourcePermissionError:
    """The error for a file that this user may not read (snapshots have mode 0400)."""
    return SourcePermissionError(
        f"{path}: permission denied",
        hint="Kafka writes snapshots readable by its own user only: run kshell as that user "
        "(sudo -u kafka kshell …), or copy the directory as root and give yourself the copy",
    )


def open_read(path: str) -> int:
    """Open a regular file for reading, and return its descriptor.

    Every file of a metadata directory is opened here, because opening a pipe, a device or a socket of its name could
    block for ever or have side effects. A file that a running server has renamed since it was listed, because it is
    about to delete it, is opened by its new name.

    Raises FileNotFoundError (list again), SourcePermissionError, SourceError.
    """
    try:
        return _open_file(path)
    except FileNotFoundError as gone:
        if named(os.path.basename(path)) is None:
            raise
        try:
            return _open_file(path + DELETED)
        except FileNotFoundError:
            raise gone from None


def _open_file(path: str) -> int:
    try:
        _demand_file(path, os.stat(path).st_mode)  # before it is opened: a device may act on that
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | getattr(os, "O_CLOEXEC", 0))
        try:
            _demand_file(path, os.fstat(descriptor).st_mode)  # and after: it may have been replaced meanwhile
        except SourceError:
            os.close(descriptor)
            raise
    except FileNotFoundError:
        raise
    except PermissionError:
        raise permission(path) from None
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from None
    return descriptor


def _demand_file(path: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise SourceError(
            f"{path}: {_kind(mode)}, not a file",
            hint="kshell reads regular files of a metadata directory only; copy what it holds into one",
        )


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a directory",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "something special")


def read_small(path: str, most: int) -> bytes:
    """Read all bytes of a small file.

    Raises FileNotFoundError, SourcePermissionError, and SourceError, also if there are more than ``most`` bytes.
    """
    descriptor = open_read(path)
    try:
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from None
    if len(content) > most:
        raise SourceError(f"{path}: is larger than {most} bytes")
    return content


def local_path(text: str) -> str:
    """A path of this machine as a user types it, with ``~`` for a home. Raises CommandError for a NUL character."""
    if "\0" in text:
        raise CommandError(f"{text}: no file can have that name")
    return os.path.expanduser(text)


def require_outside(typed: str, path: str, protected: Iterable[str], hint: str) -> None:
    """Raise CommandError if an output path is inside the source's files (``protected``) or any Kafka directory."""
    if any(is_inside(path, place) for place in protected):
        raise CommandError(f"{typed}: is in the source's own directory, where kshell writes nothing", hint=hint)
    if _is_kafkas(path):
        raise CommandError(f"{typed}: is in a directory of Kafka's, where kshell writes nothing", hint=hint)


def _is_kafkas(path: str) -> bool:
    """Whether a path is, or would be, below a metadata directory or a log directory, of this source or any other."""
    return any(
        os.path.basename(folder) == METADATA_DIRECTORY or os.path.lexists(os.path.join(folder, META))
        for folder in _upwards(os.path.dirname(os.path.realpath(path)))
    )


def is_inside(path: str, place: str) -> bool:
    """Whether a path is, or would be, the file ``place``, or anywhere below the directory ``place``."""
    for around in _upwards(os.path.realpath(path)):
        with contextlib.suppress(OSError):
            # By inode, so that other spellings count: a hard link, a bind mount, a file system without case.
            if os.path.samefile(around, place):
                return True
    return False


def _upwards(path: str) -> Iterator[str]:
    """Yield a path and all directories around it, up to the root."""
    yield path
    while (parent := os.path.dirname(path)) != path:
        yield (path := parent)
