"""Ids that no two clusters share, in the state of a copy: they show whether copies can be of one cluster.

A cluster's own id is in ``meta.properties``, which is often missing or copied wrongly; these are in the log.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from kshell.errors import KshellError
from kshell.metadata.families.quorum import QUORUM, VOTERS
from kshell.metadata.image import Image
from kshell.protocol.primitives import Uuid
from kshell.sources.directory.checkpoints import image_of
from kshell.sources.directory.files import Listing
from kshell.sources.directory.source import load_listing

RESERVED = 100
"""Ids below that number are reserved by Kafka (``org.apache.kafka.common.Uuid``)."""


def cluster_specific_ids(listing: Listing) -> frozenset[Uuid]:
    """Return the ids in a copy's state that no other cluster has.

    These are the ids of topics, ACL entries and log directories, and the incarnation ids of brokers and controllers.
    They come from the state at the end of the copy and from its oldest snapshot; a part that cannot be read is skipped.
    """
    ids: set[Uuid] = set()
    with contextlib.suppress(KshellError, FileNotFoundError):  # damage is reported elsewhere
        ids.update(_image_ids(load_listing(listing, None, None).image))
    for file in listing.snapshots[:1]:
        with contextlib.suppress(KshellError, FileNotFoundError):
            ids.update(_image_ids(image_of(file)))
    return frozenset(uuid for uuid in ids if int.from_bytes(uuid, "big") >= RESERVED)


def _image_ids(image: Image) -> Iterator[Uuid]:
    yield from image["topics"]
    yield from image["acls"]
    for name in ("brokers", "controllers"):
        for entry in image[name].values():
            yield entry.value.incarnation_id
            yield from getattr(entry.value, "directories", ())
    entry = image[QUORUM].get(VOTERS)
    for voter in entry.value if entry is not None else ():
        yield voter["voterDirectoryId"]
