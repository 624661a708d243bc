"""Unpacks files that cannot be used inside ``kshell.pyz`` (compiled modules, the sample) into a private directory.

The directory belongs to this user, and nobody else can write to it. A file there is used only if its bytes are those of
the archive. Files stay there for the next start.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress

_TEMPORARY = "/tmp"


def unpack(files: Mapping[str, bytes], environment: Mapping[str, str] = os.environ) -> str | None:
    """Return a private directory that has these files; ``None`` if none can be created.

    Args:
        files: name -> content; a name may have directories, separated by ``/``.
        environment: names the user's home and the directory for temporary files.
    """
    import hashlib

    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{len(name)} {name} {len(content)} ".encode() + content)
    for place in _places(environment):
        try:
            folder = os.path.join(place, digest.hexdigest()[:32])
            _check_way(place)
            _make_private(place)
            _make_private(folder)
            for name, content in files.items():
                _put(folder, name, content)
        except OSError:
            continue
        return folder
    return None


def _places(environment: Mapping[str, str]) -> Iterator[str]:
    cache, home = environment.get("XDG_CACHE_HOME", ""), environment.get("HOME", "")
    if os.path.isabs(cache):  # the XDG specification says to ignore a relative path
        yield os.path.join(cache, "kshell")
    elif os.path.isabs(home):
        yield os.path.join(home, ".cache", "kshell")
    for temporary in (environment.get("TMPDIR", ""), _TEMPORARY):
        if os.path.isabs(temporary):
            yield os.path.join(temporary, f"kshell-{os.geteuid()}")


def _make_private(folder: str) -> None:
    """Create the directory, or accept an existing one that only this user can write to. Raises PermissionError."""
    with suppress(FileExistsError):
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        os.mkdir(folder, 0o700)
    status = os.lstat(folder)  # not stat: a symbolic link could be changed to lead elsewhere later
    if not stat.S_ISDIR(status.st_mode) or not _is_private(status):
        raise PermissionError(folder)


def _check_way(folder: str) -> None:
    """Raise PermissionError if somebody else could replace a directory: one who may write to a directory above it.

    Such as the user whose home it is in, if root runs kshell.
    """
    parent = os.path.realpath(os.path.dirname(folder))
    while not os.path.lexists(parent):  # what kshell creates below a safe directory is safe
        parent = os.path.dirname(parent)
    while True:
        status = os.stat(parent)
        others_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX
        if status.st_uid not in (0, os.geteuid()) or others_write:
            raise PermissionError(parent)
        if parent == os.path.dirname(parent):
            return
        parent = os.path.dirname(parent)


def _is_private(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _put(folder: str, name: str, content: bytes) -> None:
    """Write a file into the directory, unless it is there with the same content."""
    path = folder
    *parents, last = name.split("/")
    for parent in parents:
        path = os.path.join(path, parent)
        _make_private(path)
    if _holds(os.path.join(path, last), content):
        return
    import tempfile

    number, temporary = tempfile.mkstemp(prefix=f".{last}.", dir=path)  # mode 0600
    try:
        with open(number, "wb") as file:
            file.write(content)
        os.replace(temporary, os.path.join(path, last))
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _holds(path: str, content: bytes) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        return stat.S_ISREG(status.st_mode) and _is_private(status) and file.read(len(content) + 1) == content
