"""kshell's own small files below the user's home, such as marks and contexts; only their owner can read them."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from kshell.errors import CommandError, UsageError

_HOMES = {"XDG_CACHE_HOME": (".cache",), "XDG_CONFIG_HOME": (".config",), "XDG_STATE_HOME": (".local", "state")}
"""The variable that names a directory -> its default below ``HOME``."""
VERSION = 1


def path_of(environment: Mapping[str, str], variable: str, name: str) -> str | None:
    """Return the path of the file ``name`` below ``variable`` (of the XDG specification); ``None`` without a home."""
    base = environment.get(variable, "")
    if not os.path.isabs(base):  # the XDG specification says to ignore a relative path
        home = environment.get("HOME", "")
        base = os.path.join(home, *_HOMES[variable]) if home else ""
    return os.path.join(base, "kshell", name) if base else None


def read(path: str, content_name: str, max_chars: int, hint: str) -> dict[str, Any] | None:
    """Return a file's content; ``None`` if there is none. Raises UsageError, which names the content."""
    try:
        # Nonblocking: opening a named pipe of that name would otherwise wait forever.
        with open(path, encoding="utf-8", opener=lambda name, _: os.open(name, os.O_RDONLY | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise unreadable(path, content_name, hint)
            stored = json.loads(file.read(max_chars))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError:
        raise unreadable(path, content_name, hint) from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise unreadable(path, content_name, hint) from None
    if not isinstance(stored, dict) or stored.get("version") != VERSION:
        raise unreadable(path, content_name, hint)
    return stored


def unreadable(path: str, content_name: str, hint: str) -> UsageError:
    """Return the error for a file that kshell did not write."""
    return UsageError(f"{path}: not a file of {content_name} that this kshell can read", hint=hint)


def write(path: str, stored: Mapping[str, object]) -> None:
    """Write a file by replacing it atomically. Raises CommandError."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None
    with replacing(path, path) as file:
        file.write((json.dumps({"version": VERSION, **stored}, indent=2) + "\n").encode())


@contextlib.contextmanager
def replacing(path: str, typed: str) -> Iterator[BinaryIO]:
    """Give a new file that replaces ``path`` when all is written, so that no reader ever sees half of it.

    Only its owner can read it. If anything fails, the old file stays and the new one is deleted.

    Args:
        path: the file to replace or create, in a directory that exists.
        typed: the path as the user typed it, for errors.

    Raises:
        CommandError: the operating system refuses.
    """
    import tempfile

    folder, name = os.path.split(path)
    temporary = None
    try:
        number, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".part", dir=folder)  # mode 0600
        with open(number, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise CommandError(f"{typed}: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
