"""Ids that no two clusters have in common: what shows that two copies are of one where they share no offset."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from kshell.errors import KshellError
from kshell.metadata.families.quorum import QUORUM, VOTERS
from kshell.metadata.image import Image
from kshell.metadata.replay import Replayer
from kshell.protocol.primitives import Uuid
from kshell.sources.directory.files import Listing
from kshell.sources.directory.snapshot import load_snapshot
from kshell.sources.directory.source import load_listing

_RESERVED = 100
"""Ids below that number have a meaning of their own (``org.apache.kafka.common.Uuid``)."""


def marks(listing: Listing) -> frozenset[Uuid]:
    """The ids that a copy holds at its end, and in its oldest snapshot: of topics, of ACL entries, of log directories,
    of the starts of brokers and controllers. What cannot be read has none.
    """
    found: set[Uuid] = set()
    with contextlib.suppress(KshellError, FileNotFoundError):  # that it is damaged is told elsewhere
        found.update(_ids(load_listing(listing, None, None).image))
    for file in listing.snapshots[:1]:
        replayer = Replayer()
        with contextlib.suppress(KshellError, FileNotFoundError):
            load_snapshot(file, replayer, None)
            found.update(_ids(replayer.image()))
    return frozenset(one for one in found if int.from_bytes(one, "big") >= _RESERVED)


def _ids(image: Image) -> Iterator[Uuid]:
    yield from image["topics"]
    yield from image["acls"]
    for name in ("brokers", "controllers"):
        for entry in image[name].values():
            yield entry.value.incarnation_id
            yield from getattr(entry.value, "directories", ())
    entry = image[QUORUM].get(VOTERS)
    for voter in entry.value if entry is not None else ():
        yield voter["voterDirectoryId"]
