"""Real files for what cannot be used inside ``kshell.pyz``: compiled modules, and the sample.

They are unpacked into a directory that belongs to this user and that nobody else can write to, and used only if their
bytes are those of the archive. What was unpacked stays there for the next time.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress

_TEMPORARY = "/tmp"


def unpack(files: Mapping[str, bytes], environment: Mapping[str, str] = os.environ) -> str | None:
    """Return a private directory that has these files, or ``None`` where there is no place for one.

    Args:
        files: contents by name; a name may have directories, separated by ``/``.
        environment: where the user's home and the place for temporary files are taken from.
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
    if os.path.isabs(cache):  # relative ones are to be ignored, says the XDG specification
        yield os.path.join(cache, "kshell")
    elif os.path.isabs(home):
        yield os.path.join(home, ".cache", "kshell")
    for temporary in (environment.get("TMPDIR", ""), _TEMPORARY):
        if os.path.isabs(temporary):
            yield os.path.join(temporary, f"kshell-{os.geteuid()}")


def _make_private(folder: str) -> None:
    """Make the directory, or accept one that is there already if only this user can write to it."""
    with suppress(FileExistsError):
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        os.mkdir(folder, 0o700)
    status = os.lstat(folder)  # a link is nobody's promise of where it leads tomorrow
    if not stat.S_ISDIR(status.st_mode) or not _is_private(status):
        raise PermissionError(folder)


def _check_way(folder: str) -> None:
    """Refuse a directory that somebody else could put another one in the place of.

    That is who may write to a directory on the way there: the user whose home it is, say, where root runs kshell.
    """
    parent = os.path.realpath(os.path.dirname(folder))
    while not os.path.lexists(parent):  # what is made below a safe directory is safe
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
    """Have the file in the directory, unless it is there with these bytes."""
    path = folder
    *parents, last = name.split("/")
    for parent in parents:
        path = os.path.join(path, parent)
        _make_private(path)
    if _holds(os.path.join(path, last), content):
        return
    import tempfile

    number, temporary = tempfile.mkstemp(prefix=f".{last}.", dir=path)  # 0600
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
