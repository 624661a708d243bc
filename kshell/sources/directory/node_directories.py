"""Compare ``meta.properties`` of several log directories: are they of one cluster, and is each id used only once?"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from kshell.sources.directory.files import META, METADATA_DIRECTORY, Listing, is_remote, locate
from kshell.sources.directory.sidecar_files import meta_properties, node_id
from kshell.wording import first_of

_KNOWN_KEYS = frozenset(("version", "cluster.id", "node.id", "broker.id", "directory.id"))
"""Keys that Kafka writes (``org.apache.kafka.metadata.properties.MetaPropertiesVersion``)."""
_VERSIONS = ("0", "1")


class NodeDirectory(NamedTuple):
    """A log directory, and the properties in its ``meta.properties``."""

    path: str
    properties: dict[str, str]
    notes: list[str]
    """What is wrong with ``meta.properties`` itself; one sentence each."""

    @property
    def cluster_id(self) -> str | None:
        return self.properties.get("cluster.id")

    @property
    def node_id(self) -> int | None:
        return node_id(self.properties)

    @property
    def directory_id(self) -> str | None:
        return self.properties.get("directory.id")

    @property
    def version(self) -> str | None:
        return self.properties.get("version")

    @property
    def unknown_keys(self) -> list[str]:
        """Keys that Kafka does not write."""
        return sorted(self.properties.keys() - _KNOWN_KEYS)

    @property
    def has_metadata_log(self) -> bool:
        return os.path.isdir(os.path.join(self.path, METADATA_DIRECTORY)) or (
            os.path.basename(os.path.normpath(self.path)) == METADATA_DIRECTORY
        )


def read_directory(path: str) -> NodeDirectory:
    """Read ``meta.properties`` of a log directory, or of the metadata directory or a file in one.

    Raises SourceNotFoundError, SourcePermissionError: a path that is not there has no properties to be compared.
    """
    notes: list[str] = []
    locate(path)
    if not is_remote(path) and os.path.isfile(path):
        path = os.path.dirname(path) or os.curdir
    is_inner = os.path.basename(os.path.normpath(path)) == METADATA_DIRECTORY
    # meta_properties looks in the directory around the metadata directory, so it is given the inner path.
    inner = path if is_inner or is_remote(path) else os.path.join(path, METADATA_DIRECTORY)
    return NodeDirectory(path, meta_properties(Listing(inner, (), ()), notes), notes)


def inconsistencies(directories: list[NodeDirectory]) -> list[list[str]]:
    """What is wrong with each directory, by itself and compared with the others: one list of sentences for each."""
    clusters = Counter(directory.cluster_id for directory in directories if directory.cluster_id)
    usual = clusters.most_common(1)[0][0] if clusters else None
    return [
        [*_alone(directory), *_conflicts(directory, directories[:at] + directories[at + 1 :], usual)]
        for at, directory in enumerate(directories)
    ]


def _alone(directory: NodeDirectory) -> Iterator[str]:
    """What is wrong with a directory by itself."""
    if not directory.properties:
        yield from directory.notes or [f"has no {META}"]
        return
    yield from directory.notes
    if directory.version not in _VERSIONS:
        yield f"version is {directory.version or 'missing'}, not {' or '.join(_VERSIONS)}"
    if not directory.cluster_id:
        yield "has no cluster.id"
    if directory.node_id is None and not directory.notes:
        yield "has no node.id"


def _conflicts(directory: NodeDirectory, rest: list[NodeDirectory], usual: str | None) -> Iterator[str]:
    """What is wrong with a directory compared with the rest; ``usual`` is the cluster id that most of them have."""
    cluster = directory.cluster_id
    if cluster and cluster != usual:
        alike = [peer.path for peer in rest if peer.cluster_id == usual]
        yield f"is of another cluster than {first_of(alike, 1)}, which {'is' if len(alike) == 1 else 'are'} of {usual}"
    peers = [peer for peer in rest if peer.cluster_id == cluster]
    same = [peer.path for peer in peers if directory.directory_id and peer.directory_id == directory.directory_id]
    if same:
        yield f"directory.id is that of {first_of(same, 1)}, too: one is a copy of the other"
    twins = [peer for peer in peers if directory.node_id is not None and peer.node_id == directory.node_id]
    twins = [peer for peer in twins if peer.path not in same and _exclude_each_other(directory, peer)]
    if twins:
        yield f"node.id is that of {first_of([peer.path for peer in twins], 1)}, too: two nodes, or two copies of one"


def _exclude_each_other(directory: NodeDirectory, peer: NodeDirectory) -> bool:
    """Whether two directories cannot belong to one node. A node may have several (``log.dirs``), each with its own id,
    but the metadata log is in only one of them.
    """
    ids = {directory.directory_id, peer.directory_id}
    return (directory.has_metadata_log and peer.has_metadata_log) or len(ids) == 1
