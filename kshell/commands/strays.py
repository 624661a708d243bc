"""``strays``: compare the replicas on brokers' disks with those that the image places there.

Input: output of ``kafka-log-dirs.sh --describe``, a listing by ``ls`` or ``find``, or a log directory itself.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from kshell.cluster.broker_arguments import complete_broker
from kshell.engine.arguments import count
from kshell.engine.declaration import Command, Example, Flag, Task
from kshell.engine.local_files import complete_file
from kshell.engine.result import Result, Row
from kshell.errors import EXIT_FINDING, EXIT_OK, CommandError, SourceError, UsageError
from kshell.metadata.election import name_brokers
from kshell.metadata.families.topics import NAMES, TOPICS
from kshell.metadata.image import Image
from kshell.metadata.partitions import Partition, Topic
from kshell.sources.directory.files import META, local_path, read_small
from kshell.sources.directory.sidecar_files import node_id
from kshell.tables.declaration import Field, image_for
from kshell.tables.enumeration import Enumeration
from kshell.tables.selection import RowArguments, row_flags, select

if TYPE_CHECKING:
    from kshell.engine.session import Session
    from kshell.json_text import JsonObject

METADATA_TOPIC = "__cluster_metadata"
DELETED, MOVED, STRAY = "delete", "future", "stray"
_DIRECTORY = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d{1,9})(\.[0-9a-f]{32}-(?P<state>delete|future|stray))?"
)
_OF_LOG_DIRECTORY = re.compile(r"meta\.properties|(?!leader-epoch-).+-checkpoint|\.lock|\.kafka_cleanshutdown")
"""The names of the files in a log directory, next to the directories of partitions."""
_OF_PARTITION = re.compile(r"\d{20}(-\d+)?\..+|partition\.metadata|leader-epoch-checkpoint")
"""The names of the files in a partition's directory."""
_TOPIC_ID = re.compile(r"(?P<path>.+)/partition\.metadata:\s*topic_id:\s*(?P<id>[\w-]{22})\s*")
_LONG = re.compile(r"[-dlbcps][-rwxsStT]{9}[.+@]?\s")
"""The beginning of a line of ``ls -l``."""
_MOST = 1 << 30
"""Characters of a listing that are read at most."""
_SMALL = 1 << 16
"""Bytes of ``partition.metadata`` and ``meta.properties`` that are read at most."""


class LogDirReplica(NamedTuple):
    """A replica in a log directory; what the input does not have is ``None``, ``size`` is in bytes.

    ``state``: ``""``, ``delete`` (being deleted), ``future`` (moving to this directory) or ``stray`` (set aside).
    """

    broker: int
    log_dir: str | None
    topic: str
    partition: int
    topic_id: str | None
    state: str
    size: int | None


class LogDirContents(NamedTuple):
    """The replicas found, the brokers whose directories were read, and (``partial``) why some are incomplete."""

    replicas: list[LogDirReplica]
    brokers: frozenset[int]
    partial: dict[int, str]


def read(file: str, broker: int | None) -> LogDirContents:
    """Read replicas from a file (``-``: standard input) or a log directory.

    ``broker``: whose it is, unless the input says so. Raises CommandError if it cannot be read, has no partitions, or
    does not say whose it is.
    """
    path = local_path(file)
    if file != "-" and os.path.isdir(path):
        return _directory(file, path, broker)
    text = _text(file, path)
    start = text.find('{"')
    if start >= 0 and '"logDirs"' in text:
        return _parse_tool_output(file, text[start:])
    if broker is None:
        raise CommandError(f"{file}: a listing does not name its broker", hint="name it with --broker ID")
    replicas = list(dict.fromkeys(_listed(text.splitlines(), broker)))
    if not replicas:
        raise CommandError(
            f"{file}: no partitions in it",
            hint="it should be kafka-log-dirs.sh's output, or list directories: orders-0",
        )
    # Listings may have a directory twice, with and without its topic id: keep the line with the id.
    with_id = {(replica.topic, replica.partition, replica.state) for replica in replicas if replica.topic_id}
    distinct = [
        replica
        for replica in replicas
        if replica.topic_id or (replica.topic, replica.partition, replica.state) not in with_id
    ]
    return LogDirContents(distinct, frozenset((broker,)), {})


def _text(file: str, path: str) -> str:
    try:
        if file == "-":
            return sys.stdin.read(_MOST)
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read(_MOST)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror or error}") from None
    except ValueError:  # the path contains a NUL
        raise CommandError(f"{file}: no such file or directory") from None


# --- kafka-log-dirs.sh -----------------------------------------------------------------------------------------------


def _parse_tool_output(file: str, text: str) -> LogDirContents:
    """Parse the JSON line that ``kafka-log-dirs.sh --describe`` prints after two lines of text. Raises CommandError."""
    import json

    try:
        output, _ = json.JSONDecoder().raw_decode(text)
        replicas, brokers, partial = list[LogDirReplica](), set[int](), dict[int, str]()
        for broker_entry in output["brokers"]:
            broker = int(broker_entry["broker"])
            brokers.add(broker)
            for log_dir in broker_entry["logDirs"]:
                if log_dir.get("error"):
                    partial[broker] = f"{log_dir['logDir']}: {log_dir['error']}"
                replicas += [_of_tool(broker, str(log_dir["logDir"]), item) for item in log_dir["partitions"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"[:200]
        raise CommandError(f"{file}: not what kafka-log-dirs.sh --describe prints ({reason})") from None
    return LogDirContents(replicas, frozenset(brokers), partial)


def _of_tool(broker: int, log_dir: str, item: JsonObject) -> LogDirReplica:
    topic, _, number = str(item["partition"]).rpartition("-")
    state = MOVED if item.get("isFuture") else ""
    size = item.get("size")
    return LogDirReplica(broker, log_dir, topic, int(number), None, state, size if isinstance(size, int) else None)


# --- listings --------------------------------------------------------------------------------------------------------


def _listed(lines: Iterable[str], broker: int) -> Iterator[LogDirReplica]:
    """Parse lines as ``ls``, ``ls -l``, ``ls -R``, ``find`` or ``grep -r topic_id`` print them; skip all others."""
    below = None
    replicas: list[tuple[tuple[str, ...], LogDirReplica]] = []
    log_dirs: set[tuple[str, ...]] = set()
    partitions: set[tuple[str, ...]] = set()
    for raw_line in lines:
        line = raw_line.strip()
        match = _TOPIC_ID.fullmatch(line)
        topic_id = match["id"] if match else None
        path = match["path"] if match else line
        if path.endswith(":") and not match:
            below = path[:-1]
            continue
        if _LONG.match(path):
            path = path.partition(" -> ")[0].rsplit(None, 1)[-1]
        *above, name = path.rstrip("/").split("/")
        here = _components(*above) if above else _components(below or "")
        if _OF_LOG_DIRECTORY.fullmatch(name) or _DIRECTORY.fullmatch(name):
            log_dirs.update(here[:depth] for depth in range(1, len(here) + 1))
        elif _OF_PARTITION.fullmatch(name):
            partitions.add(here)
        while (directory := _DIRECTORY.fullmatch(name)) is None and above:
            *above, name = above
        if directory is not None and directory["topic"] != METADATA_TOPIC:
            log_dir = "/".join(above) or below
            replica = LogDirReplica(
                broker,
                log_dir,
                directory["topic"],
                int(directory["partition"]),
                topic_id,
                directory["state"] or "",
                None,
            )
            replicas.append((_components(log_dir or "", name), replica))
    # What has partitions in it is no partition, whatever its name: a log directory may be below one called `data-0`.
    for place, replica in replicas:
        if place not in log_dirs or place in partitions:
            yield replica


def _components(*parts: str) -> tuple[str, ...]:
    return tuple(name for part in parts for name in part.split("/") if name not in ("", "."))


def _directory(file: str, path: str, broker: int | None) -> LogDirContents:
    """Read a log directory of this machine, with the topic ids in its ``partition.metadata`` files."""
    owner = broker if broker is not None else _owner(path)
    if owner is None:
        raise CommandError(f"{file}: has no meta.properties that names its broker", hint="name it with --broker ID")
    replicas = []
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror or error}") from None
    for name in names:
        match = _DIRECTORY.fullmatch(name)
        if match is None or match["topic"] == METADATA_TOPIC or not os.path.isdir(os.path.join(path, name)):
            continue
        topic_id = _properties(os.path.join(path, name, "partition.metadata"), ": ").get("topic_id")
        replicas.append(
            LogDirReplica(owner, file, match["topic"], int(match["partition"]), topic_id, match["state"] or "", None)
        )
    return LogDirContents(replicas, frozenset((owner,)), {})


def _owner(path: str) -> int | None:
    return node_id(_properties(os.path.join(path, META), "="))


def _properties(path: str, mark: str) -> dict[str, str]:
    """Parse the lines ``name<mark>value`` of a small file; empty if it cannot be read."""
    try:
        text = read_small(path, _SMALL).decode("utf-8", "replace")
    except (FileNotFoundError, SourceError):
        return {}
    pairs = [line.partition(mark) for line in text.splitlines()]
    return {name.strip(): value.strip() for name, separator, value in pairs if separator}


UNKNOWN_TOPIC = "unknown-topic"
OTHER_TOPIC_ID = "other-topic-id"
NO_SUCH_PARTITION = "no-such-partition"
NOT_A_REPLICA = "not-a-replica"
SET_ASIDE = "set-aside"
MISSING = "missing"
FINDINGS = (UNKNOWN_TOPIC, OTHER_TOPIC_ID, NO_SUCH_PARTITION, NOT_A_REPLICA, SET_ASIDE, MISSING)

_FIELDS = (
    Field("broker", "int32", "the broker whose log directory it is"),
    Field("topic", "string", "the topic's name", spare=-1),
    Field("partition", "int32", "the partition's number", spare=-1),
    Field("finding", Enumeration(FINDINGS), "what is wrong; see `man strays`", spare=-1),
    Field("logDir", "string", "the log directory; null if it is missing"),
    Field("size", "int64", "bytes; null if not reported"),
    Field("replicas", ["int32"], "the brokers that the image places it on; null if it has no such partition"),
    Field("topicId", "string", "the topic's id on disk; null if it is not reported", True),
    Field("imageTopicId", "string", "the topic's id in the image", True),
)


class StraysArguments(RowArguments):
    """Arguments and options of ``strays``."""

    log_dirs: str | None
    broker: int | None


def run(session: Session, args: StraysArguments) -> Result:
    """Return one row per finding; exit code 1 if there is any. Raises CommandError if the input cannot be used."""
    if args.log_dirs is None:
        raise UsageError(
            "strays: --log-dirs FILE is missing",
            hint="kafka-log-dirs.sh --describe > FILE; or a listing, with --broker",
        )

    contents = _of_broker(read(args.log_dirs, args.broker), args.log_dirs, args.broker)
    image = image_for(session, "strays", ("topics",))
    rows = [*_strays(image, contents.replicas), *_missing(session, image, contents)]
    rows.sort(key=lambda row: (row["broker"], row["topic"], row["partition"], row["finding"]))
    return select(_FIELDS, rows, args, exit_code=EXIT_FINDING if rows else EXIT_OK)


def _of_broker(contents: LogDirContents, file: str, broker: int | None) -> LogDirContents:
    """What the input says of one broker. Raises CommandError if it is about others only."""
    if broker is None:
        return contents
    if broker not in contents.brokers:
        about = name_brokers(sorted(contents.brokers)) if contents.brokers else "no broker"
        raise CommandError(f"{file}: nothing about broker {broker}", hint=f"it is about {about}")
    replicas = [replica for replica in contents.replicas if replica.broker == broker]
    partial = {number: reason for number, reason in contents.partial.items() if number == broker}
    return LogDirContents(replicas, frozenset((broker,)), partial)


def _strays(image: Image, replicas: Iterable[LogDirReplica]) -> Iterator[Row]:
    """Rows of replicas on disk that the image does not place there, without those that are being deleted already."""
    for replica in replicas:
        if replica.state == "delete":
            continue
        topic, placed = _of_image(image, replica)
        finding = SET_ASIDE if replica.state == "stray" else _finding(replica, topic, placed)
        if finding is not None:
            yield {
                "broker": replica.broker,
                "topic": replica.topic,
                "partition": replica.partition,
                "finding": finding,
                "logDir": replica.log_dir,
                "size": replica.size,
                "replicas": placed,
                "topicId": replica.topic_id,
                "imageTopicId": str(topic.id) if topic else None,
            }


def _of_image(image: Image, replica: LogDirReplica) -> tuple[Topic | None, list[int] | None]:
    """(the topic with the replica's topic name, the brokers that are to have the partition); ``None`` if not in it."""
    topic: Topic | None = image[TOPICS].get(image[NAMES].get(replica.topic))
    entry = topic.partition(replica.partition) if topic is not None else None
    value = entry.value if entry is not None else None
    return topic, list(value.replicas) if isinstance(value, Partition) else None


def _finding(replica: LogDirReplica, topic: Topic | None, placed: list[int] | None) -> str | None:
    if topic is None:
        return UNKNOWN_TOPIC
    if replica.topic_id is not None and replica.topic_id != str(topic.id):
        return OTHER_TOPIC_ID
    if placed is None:
        return None if replica.partition in topic else NO_SUCH_PARTITION
    return None if replica.broker in placed else NOT_A_REPLICA


def _missing(session: Session, image: Image, contents: LogDirContents) -> Iterator[Row]:
    """Rows of replicas that the image places on a broker and that are not there; only for brokers read completely."""
    for broker, why in sorted(contents.partial.items()):
        session.remarks.append(f"broker {broker}: what is missing there is not known: {why}")
    complete_brokers = contents.brokers.difference(contents.partial)
    there: dict[tuple[int, str, int], set[str | None]] = {}
    for replica in contents.replicas:
        if replica.state == "":
            there.setdefault((replica.broker, replica.topic, replica.partition), set()).add(replica.topic_id)
    for topic in image[TOPICS].values() if complete_brokers else ():
        topic_id = str(topic.id)
        for number, value in topic.scan():
            if not isinstance(value, Partition):
                continue
            for broker in complete_brokers.intersection(value.replicas):
                ids = there.get((broker, topic.name, number), set())
                if None in ids or topic_id in ids:
                    continue
                yield {
                    "broker": broker,
                    "topic": topic.name,
                    "partition": number,
                    "finding": MISSING,
                    "replicas": list(value.replicas),
                    "imageTopicId": topic_id,
                }


COMMAND = Command(
    name="strays",
    task=Task.PROBLEMS,
    summary="partitions on brokers' disks that the image does not place there, and missing ones",
    run=run,
    arguments=StraysArguments,
    extra_words_for="topic",
    flags=(
        Flag(
            ("--log-dirs",),
            "what kafka-log-dirs.sh --describe printed; a listing of a log directory (with --broker); a log directory;"
            " - for standard input",
            metavar="FILE",
            complete=complete_file,
        ),
        Flag(
            ("--broker",),
            "the broker whose listing or log directory it is",
            metavar="ID",
            convert=count,
            complete=complete_broker,
        ),
        *row_flags(_FIELDS),
    ),
    examples=(
        Example("strays --log-dirs log-dirs.json", "every broker, from the output of kafka-log-dirs.sh", 1),
        Example("strays --log-dirs listing.txt --broker 1 -o json", "one broker, as `ls` lists its directory", 1),
        Example(
            "strays --log-dirs log-dirs.json --where 'finding != missing' --columns broker,topic,size", "strays only", 1
        ),
    ),
    description=(
        "Findings: unknown-topic (the image has no topic of that name), other-topic-id (it has one, created again after"
        " this one was deleted), no-such-partition, not-a-replica (the image places it on other brokers), set-aside"
        " (the broker itself renamed it to …-stray), missing (the image places it on the broker, and it is not"
        " there).\n\n"
        "A listing is what `ls`, `ls -l`, `ls -R` or `find` print. Where it holds topic ids, as `grep -r topic_id"
        " --include partition.metadata DIR` prints them, or where the directory itself is read, these are compared,"
        " too. kafka-log-dirs.sh reports no ids, and with --topic-list it leaves topics out, which then seem to be"
        " missing. A broker with several log directories needs all of them in one listing. The image and the disks are"
        " not of the same moment: what was created, moved or deleted in between may show."
    ),
    needs_records=True,
    exit_1_when="there is a finding, whether the options show it or not",
)
