"""The small text files beside a metadata directory's log and snapshots, and where Kafka keeps its first records."""

from __future__ import annotations

import os
from typing import Any

from kshell.sources.files import BOOTSTRAP, META, Listing, Segment, SnapshotFile, is_remote

_SMALL = 1 << 20


def leader_epochs(listing: Listing) -> list[tuple[int, int]]:
    """The (epoch, start offset) lines of ``leader-epoch-checkpoint``; empty when the file is missing or unreadable."""
    text = _beside(listing, "leader-epoch-checkpoint")
    pairs = [line.split() for line in text.splitlines()[2:]]
    try:
        return [(int(epoch), int(start)) for epoch, start in pairs]
    except ValueError:
        return []


def quorum_state(listing: Listing) -> dict[str, Any]:
    """The JSON of ``quorum-state``; empty when there is none."""
    import json  # late: only what looks at the quorum needs it

    try:
        state = json.loads(_beside(listing, "quorum-state"))
    except ValueError:
        return {}
    return state if isinstance(state, dict) else {}


def meta_properties(listing: Listing) -> dict[str, str]:
    """``meta.properties`` of the log directory around the metadata directory (or of the directory itself)."""
    for name in (os.path.join(os.pardir, META), META):
        lines = _beside(listing, name).splitlines()
        pairs = [line.partition("=") for line in lines if line.strip() and not line.startswith("#")]
        if pairs:
            return {key.strip(): value.strip() for key, _, value in pairs}
    return {}


def bootstrap_file(listing: Listing) -> str | None:
    """The ``bootstrap.checkpoint`` in the log directory, if there is one."""
    if listing.directory is None or listing.beside is not None:
        return None
    if is_remote(listing.directory):
        from kshell.sources import remote

        path = f"{listing.directory.rstrip('/').rpartition('/')[0]}/{BOOTSTRAP}"
        return path if remote.infos([path])[0].is_file else None
    path = os.path.normpath(os.path.join(listing.directory, os.pardir, BOOTSTRAP))
    return path if os.path.exists(path) else None


def _beside(listing: Listing, name: str) -> str:
    if listing.beside is not None:
        return listing.beside.get(name, "")
    path = os.path.join(listing.directory or _folder_of_file(listing), name)
    if is_remote(path):
        from kshell.sources import remote

        return remote.text(path, _SMALL)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_SMALL)
    except OSError:
        return ""


def _folder_of_file(listing: Listing) -> str:
    lone: tuple[Segment | SnapshotFile, ...] = listing.segments + listing.snapshots
    return os.path.dirname(lone[0].path) or os.curdir
