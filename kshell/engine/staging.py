"""Write the user's new directories and files so that they appear only when they are complete.

:func:`new_directory` gives a temporary directory to fill; the ``require_`` functions check the target before that.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from kshell.errors import CommandError
from kshell.sources.directory import files
from kshell.sources.directory.files import local_path

if TYPE_CHECKING:
    from kshell.engine.session import Session

_MODE = 0o700
"""Owner only, because metadata holds names, ACLs and hashes of passwords."""


@contextmanager
def new_directory(typed: str, target: str, lone_file: str | None = None) -> Iterator[str]:
    """Give a temporary directory to write to; at the end of the block it becomes ``target``. Removed if anything fails.

    Args:
        typed: the target as the user typed it, for errors.
        target: an absolute path; missing parent directories are created.
        lone_file: the name of the file that is moved to ``target`` in place of the directory, if the target is a file.

    Raises:
        CommandError: the operating system refuses; the temporary directory is removed.
    """
    parent, name = os.path.split(target)
    place = os.path.join(parent, f".{name}.{os.getpid()}.part")
    try:
        os.makedirs(parent, exist_ok=True)
        os.mkdir(place, _MODE)
    except (FileExistsError, NotADirectoryError):
        raise CommandError(f"{typed}: a part of this path is a file, not a directory") from None
    except OSError as error:
        raise not_written(typed, error) from None
    try:
        yield place
        _close_to_others(place)
        if lone_file is None:
            _publish(place, target)
        else:
            os.replace(os.path.join(place, lone_file), target)
    except OSError as error:
        raise not_written(typed, error) from None
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _close_to_others(place: str) -> None:
    for folder, _, names in os.walk(place):
        for name in names:
            os.chmod(os.path.join(folder, name), 0o600)


def _publish(place: str, target: str) -> None:
    """Rename the whole directory if the target does not exist or is empty; else move its files one by one."""
    with suppress(OSError):
        os.rmdir(target)
    if not os.path.lexists(target):
        os.rename(place, target)
        return
    for name in sorted(os.listdir(place)):
        os.replace(os.path.join(place, name), os.path.join(target, name))


def not_written(typed: str, error: OSError) -> CommandError:
    """Convert an error of the operating system to a CommandError about the path that the user typed."""
    return CommandError(f"{typed}: {error.strerror or error}")


def require_outside(session: Session, typed: str, target: str) -> None:
    """Raise CommandError if the target is in the source's own directory, or in another directory of Kafka."""
    files.require_outside(typed, target, session.protected, "choose another directory")


def require_new_file(session: Session, typed: str, *, force: bool, example: str) -> str:
    """Check that a file may be written, and return its absolute path.

    Args:
        typed: the path as the user typed it.
        force: whether an existing file may be replaced.
        example: a correct command line, for the error message.

    Raises:
        CommandError: the path is in the source's own directory, is a directory, or exists.
    """
    target = os.path.realpath(local_path(typed))
    require_outside(session, typed, target)
    if os.path.isdir(target):
        raise CommandError(f"{typed}: is a directory", hint=f"name a file: {example}")
    if os.path.exists(target) and not os.path.isfile(target):  # --force would put a file where a device was
        raise CommandError(f"{typed}: is not a regular file, so it cannot be replaced", hint=f"name a file: {example}")
    if os.path.lexists(target) and not force:
        raise CommandError(f"{typed}: exists", hint="--force replaces it")
    return target


def require_new_directory(session: Session, typed: str, hint: str, *, force: bool = False) -> str:
    """Check that a directory may be written, and return its absolute path.

    Args:
        typed: the path as the user typed it.
        hint: what the user can do if the path exists.
        force: whether the path may exist already.

    Raises:
        CommandError: the path is in the source's own directory, is no directory, or (without ``force``) is not empty.
    """
    target = os.path.realpath(local_path(typed))
    require_outside(session, typed, target)
    if os.path.lexists(target) and not os.path.isdir(target):
        raise CommandError(f"{typed}: is not a directory", hint="choose another name")
    if not force:
        require_empty(typed, target, hint)
    return target


def require_empty(typed: str, target: str, hint: str) -> None:
    """Raise CommandError if the target exists, unless it is an empty directory."""
    try:
        if os.path.lexists(target) and (not os.path.isdir(target) or os.listdir(target)):
            raise CommandError(f"{typed}: exists, and is not an empty directory", hint=hint)
    except OSError as error:
        raise not_written(typed, error) from None
