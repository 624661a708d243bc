"""The few things that a warehouse does with files itself, on this machine or in a store; all else is Spark's.

Paths are whole ones (``storage.join(place, …)``), of the place that the storage was made for.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import posixpath
import secrets
import shutil
from typing import Any, Protocol

from kshell.errors import CommandError
from kshell.sources import remote

_FOR_SPARK = {"s3": "s3a", "s3n": "s3a", "gcs": "gs"}
"""What Hadoop calls the stores that have another name there."""


class Storage(Protocol):
    """Files by path. All but ``read``'s absent file is an error: CommandError with the path and the reason.

    Names that begin with a dot are not listed: checksums of Hadoop, and what a killed ``write`` left.
    """

    def join(self, *parts: str) -> str:
        """One path of several parts."""

    def for_spark(self, path: str) -> str:
        """The path as Spark names it."""

    def read(self, path: str) -> bytes | None:
        """All of a file; ``None`` where there is none."""

    def write(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        """A file as a whole or not at all, with the directories above it. ``exclusive``: FileExistsError if there is
        one; in a store that is looked at before, so of two writers at the same moment the later one wins.
        """

    def names(self, path: str) -> list[str]:
        """What is in a directory, sorted; nothing where there is none."""

    def files(self, path: str) -> list[tuple[str, int]]:
        """(path, bytes) of every file below a directory, at any depth, sorted; nothing where there is none."""

    def exists(self, path: str) -> bool:
        """Whether there is a file, or a directory with something in it."""

    def remove(self, path: str) -> None:
        """A file, or a directory with all that is in it; nothing happens where there is none."""


def storage_of(place: str) -> Storage:
    """The storage of a local path or a URI. Raises UsageError for a URI that is not understood, SourceError."""
    place = remote.plain(place)
    return RemoteStorage(place) if remote.is_remote(place) else LocalStorage()


def replaces_in_two(path: str) -> bool:
    """Whether a file that is written again is not there for a moment."""
    return path.startswith(("hdfs", "viewfs"))


def location(place: str) -> str:
    """A place as all paths below it begin: absolute, without a slash at its end. Raises UsageError."""
    place = remote.plain(place)
    return place.rstrip("/") if remote.is_remote(place) else os.path.abspath(place)


class LocalStorage:
    """Files of this machine."""

    def join(self, *parts: str) -> str:
        return os.path.join(*parts)

    def for_spark(self, path: str) -> str:
        return f"file://{os.path.abspath(path)}"  # else a cluster takes it for a path of its own file system

    def read(self, path: str) -> bytes | None:
        try:
            with open(path, "rb") as file:
                return file.read()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _failed(path, error) from None

    def write(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        folder, name = os.path.split(path)
        part = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.part")
        try:
            os.makedirs(folder or os.curdir, exist_ok=True)
            with open(part, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if exclusive:
                _name_if_free(part, path)
            else:
                os.replace(part, path)
            _sync(folder or os.curdir)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(part)
            if exclusive and isinstance(error, FileExistsError):
                raise FileExistsError(path) from None
            raise _failed(path, error) from None

    def names(self, path: str) -> list[str]:
        try:
            return sorted(name for name in os.listdir(path) if not name.startswith("."))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _failed(path, error) from None

    def files(self, path: str) -> list[tuple[str, int]]:
        found = []
        for folder, _, names in os.walk(path):
            for name in names:
                with contextlib.suppress(FileNotFoundError):  # removed while we look
                    if not name.startswith("."):
                        found.append((os.path.join(folder, name), os.path.getsize(os.path.join(folder, name))))
        return sorted(found)

    def exists(self, path: str) -> bool:
        return bool(self.names(path)) if os.path.isdir(path) else os.path.exists(path)

    def remove(self, path: str) -> None:
        try:
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _failed(path, error) from None


def _name_if_free(part: str, path: str) -> None:
    """Gives a file its name as a whole. Raises FileExistsError where there is one, OSError."""
    try:
        os.link(part, path)  # unlike a rename, it does not replace
    except FileExistsError:
        raise
    except OSError:  # no hard links: exFAT, and many file systems in user space; another reason comes again here
        _rename_if_free(part, path)
    else:
        os.unlink(part)


def _rename_if_free(part: str, path: str) -> None:
    """The same by a rename, which replaces: so nobody else on this machine looks and renames meanwhile."""
    import fcntl  # late: there is none where nobody writes on this machine

    folder = os.open(os.path.dirname(path) or os.curdir, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a file system that has no locks either: the warehouse's writer is alone
            fcntl.flock(folder, fcntl.LOCK_EX)
        if os.path.lexists(path):
            raise FileExistsError(path)
        os.rename(part, path)
    finally:
        os.close(folder)


def _sync(folder: str) -> None:
    """Makes a new name in a directory last, where the file system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class RemoteStorage:
    """Files of a store, through ``pyarrow.fs``; a file is there once it was put as a whole."""

    def __init__(self, place: str) -> None:
        self._system: Any = remote.system(place)[0]

    def join(self, *parts: str) -> str:
        return posixpath.join(*parts)

    def for_spark(self, path: str) -> str:
        scheme, _, rest = path.partition("://")
        return f"{_FOR_SPARK.get(scheme, scheme)}://{rest}"

    def read(self, path: str) -> bytes | None:
        try:
            with self._system.open_input_stream(_inner(path)) as file:
                data: bytes = file.read()
                return data
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _failed(path, error) from None

    def write(self, path: str, data: bytes, *, exclusive: bool = False) -> None:
        if exclusive and self.exists(path):
            raise FileExistsError(path)
        try:
            if not path.startswith(("s3", "gs", "gcs")):  # stores without directories make none
                self._system.create_dir(posixpath.dirname(_inner(path)), recursive=True)
            if replaces_in_two(path):
                self._put_in_two(_inner(path), data)
            else:
                with self._system.open_output_stream(_inner(path)) as file:
                    file.write(data)
        except OSError as error:
            raise _failed(path, error) from None

    def _put_in_two(self, inner: str, data: bytes) -> None:
        """Where readers see a file while it is written, it gets its name at the end."""
        folder, name = posixpath.split(inner)
        part = posixpath.join(folder, f".{name}.{secrets.token_hex(4)}.part")
        with self._system.open_output_stream(part) as file:
            file.write(data)
        if self._kind(inner) != "NotFound":
            self._system.delete_file(inner)
        self._system.move(part, inner)

    def names(self, path: str) -> list[str]:
        return sorted({name for name in (posixpath.basename(one.path) for one in self._list(path)) if name[:1] != "."})

    def files(self, path: str) -> list[tuple[str, int]]:
        root = _inner(path)
        return sorted(
            (f"{path.rstrip('/')}{one.path[len(root) :]}", one.size)
            for one in self._list(path, recursive=True)
            if one.is_file and not posixpath.basename(one.path).startswith(".")
        )

    def _list(self, path: str, *, recursive: bool = False) -> list[Any]:
        fs: Any = importlib.import_module("pyarrow.fs")
        selector = fs.FileSelector(_inner(path), allow_not_found=True, recursive=recursive)
        try:
            found: list[Any] = self._system.get_file_info(selector)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise _failed(path, error) from None
        return found

    def _kind(self, inner: str) -> str:
        return str(self._system.get_file_info(inner).type.name)

    def exists(self, path: str) -> bool:
        try:
            kind = self._kind(_inner(path))
        except OSError as error:
            raise _failed(path, error) from None
        return kind == "File" or (kind == "Directory" and bool(self.names(path)))

    def remove(self, path: str) -> None:
        try:
            kind = self._kind(_inner(path))
            if kind == "Directory":
                self._system.delete_dir(_inner(path))
            elif kind != "NotFound":
                self._system.delete_file(_inner(path))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _failed(path, error) from None


def _inner(path: str) -> str:
    return remote.system(path)[1]


def _failed(path: str, error: OSError) -> CommandError:
    return CommandError(f"{path}: {remote.reason(error)}")
