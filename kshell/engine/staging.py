"""A new directory that is seen when it is complete, and not before: it is made beside its place, and moved there."""

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
"""Metadata holds names, ACLs and hashes of passwords: others have no business with it."""


@contextmanager
def new_directory(typed: str, target: str, lone_file: str | None = None) -> Iterator[str]:
    """A directory beside the target, whose files go there at the end; it is gone if anything fails.

    Args:
        typed: the target as the user typed it, for errors.
        target: an absolute path; its parents are made.
        lone_file: the file that becomes the target itself, where that is to be no directory.

    Raises:
        CommandError: the operating system refuses; nothing is left behind.
    """
    parent, name = os.path.split(target)
    place = os.path.join(parent, f".{name}.{os.getpid()}.part")
    try:
        os.makedirs(parent, exist_ok=True)
        os.mkdir(place, _MODE)
    except (FileExistsError, NotADirectoryError):
        raise CommandError(f"{typed}: something on the way there is a file, not a directory") from None
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
    """The whole directory at once where the target does not exist or is empty, else file by file."""
    with suppress(OSError):
        os.rmdir(target)
    if not os.path.lexists(target):
        os.rename(place, target)
        return
    for name in sorted(os.listdir(place)):
        os.replace(os.path.join(place, name), os.path.join(target, name))


def not_written(typed: str, error: OSError) -> CommandError:
    """The error for what the operating system refuses."""
    return CommandError(f"{typed}: {error.strerror or error}")


def demand_outside(session: Session, typed: str, target: str) -> None:
    """Raise CommandError for a place in the source's own directory, or in another one of Kafka's."""
    files.demand_outside(typed, target, session.protected, "choose another directory")


def demand_new_file(session: Session, typed: str, *, force: bool, example: str) -> str:
    """The absolute path of a file that is to be written.

    Args:
        typed: the path as the user typed it.
        force: whether a file that exists may be replaced.
        example: a command line that is right, for an error.

    Raises:
        CommandError: it is in the source's own directory, a directory, or exists.
    """
    target = os.path.realpath(local_path(typed))
    demand_outside(session, typed, target)
    if os.path.isdir(target):
        raise CommandError(f"{typed}: is a directory", hint=f"name a file: {example}")
    if os.path.exists(target) and not os.path.isfile(target):  # --force would put a file where a device was
        raise CommandError(f"{typed}: is no file that could be replaced", hint=f"name a file: {example}")
    if os.path.lexists(target) and not force:
        raise CommandError(f"{typed}: exists", hint="--force replaces it")
    return target


def demand_new_directory(session: Session, typed: str, hint: str, *, force: bool = False) -> str:
    """The absolute path of a directory that is to be written.

    Args:
        typed: the path as the user typed it.
        hint: what to do where something is there.
        force: whether something may be there.

    Raises:
        CommandError: it is in the source's own directory, or something is there.
    """
    target = os.path.realpath(local_path(typed))
    demand_outside(session, typed, target)
    if not force:
        demand_empty(typed, target, hint)
    return target


def demand_empty(typed: str, target: str, hint: str) -> None:
    """Raise CommandError for a place where something is, an empty directory excepted."""
    try:
        if os.path.lexists(target) and (not os.path.isdir(target) or os.listdir(target)):
            raise CommandError(f"{typed}: exists, and is not an empty directory", hint=hint)
    except OSError as error:
        raise not_written(typed, error) from None
