"""Paths of the local file system as arguments of commands: completion, and a note about the session's own source."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kshell.sources.choose import NoSource
from kshell.sources.directory.files import METADATA_DIRECTORY, local_path
from kshell.sources.directory.source import DirectorySource

if TYPE_CHECKING:
    from kshell.engine.session import Session


def complete_file(session: Session, typed: str) -> Iterable[str]:
    """Return the paths in the directory that is typed so far, for completion; directories end with a slash."""
    folder = typed[: typed.rfind("/") + 1]
    try:
        with os.scandir(os.path.expanduser(folder) or ".") as entries:
            return sorted(folder + entry.name + ("/" if entry.is_dir() else "") for entry in entries)
    except (OSError, ValueError):  # a path with a NUL is a ValueError
        return []


def note_unread_source(session: Session, paths: Iterable[str]) -> None:
    """Add a remark if the session's source is not among the copies that a line names, as it is then not read."""
    place = session.source.path if isinstance(session.source, DirectorySource) else session.source.name
    if isinstance(session.source, NoSource) or session.source.is_sample:
        return
    if _log_directory(place) not in map(_log_directory, paths):
        session.remarks.append(f"{place} is not read: only the directories named on the command line are")


def _log_directory(path: str) -> str:
    """Return the log directory of a path, which may name the log directory or ``__cluster_metadata-0`` in it."""
    real_path = os.path.realpath(local_path(path))
    return os.path.dirname(real_path) if os.path.basename(real_path) == METADATA_DIRECTORY else real_path
