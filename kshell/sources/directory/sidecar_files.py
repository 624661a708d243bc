"""Read the small text files next to a metadata log and its snapshots, such as ``meta.properties`` and ``quorum-state``.

Somebody may have edited or cut them, so each value is checked before it is used. A fault is added to ``notes`` as a
sentence for the user, and the file, or the key with the fault, counts as missing.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from kshell.errors import SourceError, SourcePermissionError
from kshell.sources.directory.files import (
    BOOTSTRAP,
    META,
    METADATA_DIRECTORY,
    Listing,
    Segment,
    SnapshotFile,
    is_remote,
    read_small,
)

if TYPE_CHECKING:
    from kshell.json_text import JsonObject

_SMALL = 1 << 20
"""The most bytes that are read of such a file; those that Kafka writes have a few hundred."""
EPOCHS, STATE, PARTITION = "leader-epoch-checkpoint", "quorum-state", "partition.metadata"
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
"""The id of the metadata topic in every cluster (``org.apache.kafka.common.Uuid.METADATA_TOPIC_ID``)."""
_UUID = re.compile(r"[\w-]{22}")
"""Kafka's text of a UUID."""
_PLAIN_LINE = re.compile(r"#.*|\s*|[\w.]+=[\w./+-]*=*", re.ASCII)
"""A line of a Java properties file that is what it looks like, trailing ``=`` of an id included."""
_LARGEST_INT, _LARGEST_LONG = (1 << 31) - 1, (1 << 63) - 1
_NO_NODE = _NO_EPOCH = -1
_ADVICE = "copy it from the node again"

Notes = list[str] | None
"""Collects sentences for the user on what is wrong with a file; ``None``: they are not wanted."""


def leader_epochs(listing: Listing, notes: Notes = None) -> list[tuple[int, int]]:
    """The (epoch, start offset) lines of ``leader-epoch-checkpoint``, ascending; empty if it is missing or invalid.

    Source: ``org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile``: a version, the number of lines,
    the lines.
    """
    path, text = _read_sidecar(listing, EPOCHS, notes, may_be_empty=True)
    if not text:
        return []
    lines = text.splitlines()
    pairs: list[tuple[int, int]] = []
    fault = _fault_of_head(lines)
    for number, line in enumerate(lines[2:], 3):
        fields = line.split()
        epoch, start = (_number(field, _LARGEST_LONG) for field in fields) if len(fields) == 2 else (None, None)
        if epoch is None or start is None or epoch > _LARGEST_INT:
            fault = fault or f"line {number}: not an epoch and an offset"
        elif pairs and (epoch <= pairs[-1][0] or start < pairs[-1][1]):
            fault = fault or f"line {number}: epochs and offsets must rise"
        else:
            pairs.append((epoch, start))
    if fault is not None:
        _note(notes, f"{path}: {fault}: the file is not used; {_ADVICE}")
        return []
    return pairs


def _fault_of_head(lines: list[str]) -> str | None:
    """What is wrong with the first two lines, the version and the number of lines; ``None`` if nothing is."""
    if lines[0].strip() != "0":
        return "line 1: not the version 0"
    if len(lines) < 2 or _number(lines[1].strip(), _LARGEST_INT) != len(lines) - 2:
        return f"line 2: not the number of lines that follow ({max(len(lines) - 2, 0)})"
    return None


def quorum_state(listing: Listing, notes: Notes = None) -> JsonObject:
    """The valid keys of ``quorum-state``: leaderId, leaderEpoch, clusterId, and currentVoters, each with its voterId.

    Source: ``QuorumStateData.json``.
    """
    path, text = _read_sidecar(listing, STATE, notes)
    if not text.strip():
        return {}
    import json  # imported late: only questions about the quorum need it

    try:
        state = json.loads(text)
    except json.JSONDecodeError as error:
        _note(notes, f"{path}: line {error.lineno}: not JSON: the file is not used; {_ADVICE}")
        return {}
    except (ValueError, RecursionError):  # a number of thousands of digits, brackets in brackets
        state = None
    if not isinstance(state, dict):
        _note(notes, f"{path}: not the JSON object that Kafka writes: the file is not used; {_ADVICE}")
        return {}
    checked = {
        "leaderId": (_is_int(state.get("leaderId"), _NO_NODE), "the id of a node"),
        "leaderEpoch": (_is_int(state.get("leaderEpoch"), _NO_EPOCH), "an epoch"),
        "clusterId": (_is_name(state.get("clusterId")), "a name"),
        "currentVoters": (_are_voters(state.get("currentVoters")), "a list of voters with their ids"),
    }
    for key, (is_right, expected) in checked.items():
        if state.get(key) is not None and not is_right:
            _note(notes, f"{path}: {key} is not {expected}: it is not used; {_ADVICE}")
    right = {key: state[key] for key, (is_right, _) in checked.items() if is_right}
    if "currentVoters" in right:
        right["currentVoters"] = [{"voterId": voter["voterId"]} for voter in right["currentVoters"]]
    return right


def _is_int(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= _LARGEST_INT  # the type is compared because True is an int, too


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()


def _are_voters(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, dict) and _is_int(v.get("voterId"), 0) for v in value)


def _number(text: str, most: int) -> int | None:
    """Parse a number from 0 to ``most``; ``None`` for any other text."""
    if not text.isascii() or not text.isdigit() or len(text) > len(str(most)):
        return None
    number = int(text)
    return number if number <= most else None


def meta_properties(listing: Listing, notes: Notes = None, *, raises: bool = False) -> dict[str, str]:
    """Read ``meta.properties`` of the log directory around the metadata directory (or of the directory itself).

    With ``raises``, a file that exists but cannot be read is a SourceError, not a missing file.
    """
    for name in (os.path.join(os.pardir, META), META):
        # A user's comment may have any encoding.
        path, text = _read_sidecar(listing, name, notes, errors="replace", raises=raises)
        properties = _properties(text)
        if properties is None:
            _note(notes, f"{path}: \\u without four hexadecimal digits after it: the file is not used; {_ADVICE}")
            return {}
        if properties:
            configured_id = properties.get("node.id", properties.get("broker.id"))
            if not properties.keys() & {"version", "cluster.id", "node.id", "broker.id"}:
                _note(notes, f"{path}: has no line that Kafka writes: {_ADVICE}")
            elif configured_id is not None and node_id(properties) is None:
                _note(notes, f"{path}: node.id is not the id of a node: it is not used; {_ADVICE}")
            return properties
    return {}


def _properties(text: str) -> dict[str, str] | None:
    """Parse the text of a Java properties file; ``None`` where Java refuses it.

    Source: ``java.util.Properties``. Kafka writes ``=``, ``:``, ``#`` and ``!`` in a cluster's id as ``\\=`` and so on.
    """
    lines = text.split("\n")
    # Nearly always so; the import would take as long as the rest of a small command.
    if all(map(_PLAIN_LINE.fullmatch, lines)):
        pairs = [line.partition("=") for line in lines if line.strip() and not line.startswith("#")]
        return {key: value.strip() for key, _, value in pairs}
    import javaproperties

    try:
        return {key: value.strip() for key, value in javaproperties.loads(text).items()}
    except javaproperties.InvalidUEscapeError:
        return None


UNKNOWN = "unknown"
"""Stands in ``meta.properties``, which must name a cluster, where its id is not known."""


def property_line(key: str, value: str) -> str:
    """Return a line of ``meta.properties``, with a newline, as Kafka writes and reads it."""
    line = f"{key}={value}"
    if not _PLAIN_LINE.fullmatch(line):
        import javaproperties

        line = javaproperties.join_key_value(key, value)
    return f"{line}\n"


def cluster_id(listing: Listing, notes: Notes = None) -> str | None:
    """The id of the cluster that the files belong to, from ``meta.properties``, else from ``quorum-state``."""
    named = meta_properties(listing, notes).get("cluster.id") or quorum_state(listing, notes).get("clusterId")
    return None if named == UNKNOWN else named or None


def topic_of(folder: str) -> str | None:
    """The id of the topic whose partition a directory has, by ``partition.metadata``; ``None`` for metadata.

    It is ``None`` where nothing says it, too, and for a directory that has the metadata log's name: there a file that
    says something else is damaged.
    """
    if os.path.basename(os.path.normpath(folder)) == METADATA_DIRECTORY or is_remote(folder):
        return None
    _, text = _read_sidecar(Listing(folder, (), ()), PARTITION, None, errors="replace")
    topic = _partition_pairs(text).get("topic_id", TOPIC_ID)
    return topic if topic != TOPIC_ID and _UUID.fullmatch(topic) else None


def partition_metadata(listing: Listing, notes: Notes = None) -> dict[str, str]:
    """The keys ``version`` and ``topic_id`` of ``partition.metadata``; empty if the file is missing or invalid.

    Source: ``org.apache.kafka.storage.internals.log.PartitionMetadataFile``.
    """
    path, text = _read_sidecar(listing, PARTITION, notes)
    properties = _partition_pairs(text)
    if not properties or (properties.get("version") == "0" and properties.get("topic_id") == TOPIC_ID):
        return properties
    _note(notes, f"{path}: not version 0 and the topic id {TOPIC_ID} of the metadata topic; {_ADVICE}")
    return {}


def _partition_pairs(text: str) -> dict[str, str]:
    """The lines ``key: value`` of ``partition.metadata``."""
    pairs = [line.partition(":") for line in text.splitlines() if line.strip()]
    return {key.strip(): value.strip() for key, _, value in pairs}


def node_id(properties: dict[str, str]) -> int | None:
    """The node's id in ``meta.properties``; ``None`` if it is missing or invalid."""
    return _number(properties.get("node.id") or properties.get("broker.id") or "", _LARGEST_INT)


def bootstrap_file(listing: Listing) -> str | None:
    """The path of ``bootstrap.checkpoint`` in the log directory; ``None`` if there is none."""
    if listing.directory is None or listing.sidecar_texts is not None:
        return None
    if is_remote(listing.directory):
        from kshell.sources import remote

        path = f"{listing.directory.rstrip('/').rpartition('/')[0]}/{BOOTSTRAP}"
        return path if remote.infos([path])[0].is_file else None
    path = sidecar_path(listing, f"{os.pardir}/{BOOTSTRAP}")
    return path if os.path.exists(path) else None


def _read_sidecar(
    listing: Listing,
    name: str,
    notes: Notes,
    *,
    errors: str = "strict",
    may_be_empty: bool = False,
    raises: bool = False,
) -> tuple[str, str]:
    """(path, text) of a sidecar file; the text is empty if the file is missing or, without ``raises``, unreadable.

    Kafka renames such files into place: one that is empty was emptied, as by a disk that was full.
    """
    if listing.sidecar_texts is not None:
        return name, listing.sidecar_texts.get(name, "")
    path = sidecar_path(listing, name)
    if is_remote(path):
        from kshell.sources import remote

        return path, remote.text(path, _SMALL, raises=raises)
    try:
        text = read_small(path, _SMALL).decode("utf-8", errors)
        if not text.strip() and not may_be_empty:
            _note(notes, f"{path}: is empty: {_ADVICE}")
        return path, text
    except FileNotFoundError:
        pass
    except SourceError as error:
        if raises:
            raise
        is_refused = isinstance(error, SourcePermissionError)
        advice = "run kshell as a user that may read it" if is_refused else _ADVICE
        _note(notes, f"{error.message}: it is not used; {advice}")
    except UnicodeDecodeError as error:
        _note(notes, f"{path}: byte {error.start}: not text in UTF-8: the file is not used; {_ADVICE}")
    return path, ""


def sidecar_path(listing: Listing, name: str) -> str:
    """The path of a sidecar file, whether it exists or not."""
    lone: tuple[Segment | SnapshotFile, ...] = listing.segments + listing.snapshots
    folder = listing.directory or os.path.dirname(lone[0].path) or os.curdir
    if is_remote(folder) or not name.startswith(os.pardir):
        return os.path.join(folder, name)
    link = folder.rstrip(os.sep)
    around = os.path.dirname(link) or os.curdir
    is_kafkas = os.path.islink(link) and os.path.basename(link) == METADATA_DIRECTORY
    if is_kafkas and os.path.exists(os.path.join(around, META)):
        # The metadata is on another disk: Kafka reads what belongs to it in the log directory, which has the link.
        path = os.path.join(around, os.path.relpath(name, os.pardir))
    else:
        path = os.path.join(folder, name)  # of any other link, ".." is above the directory that it leads to
    plain = os.path.normpath(path)
    is_same = os.path.realpath(os.path.dirname(plain)) == os.path.realpath(os.path.dirname(path))
    return plain if is_same else path


def _note(notes: Notes, sentence: str) -> None:
    if notes is not None and sentence not in notes:
        notes.append(sentence)
