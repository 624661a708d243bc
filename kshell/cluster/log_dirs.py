"""What is in brokers' log directories: the output of ``kafka-log-dirs.sh``, a listing, or a directory itself.

A partition's directory is ``TOPIC-NUMBER``; one that is being deleted, moved, or that a broker set aside has a random
id and a word behind it (``org.apache.kafka.storage.internals.log.UnifiedLog``). ``partition.metadata`` holds the
topic's id.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kshell.errors import CommandError, SourceError
from kshell.sources.directory.files import META, read_small
from kshell.sources.directory.sidecar_files import node_id

METADATA_TOPIC = "__cluster_metadata"
DELETED, MOVED, SET_ASIDE = "delete", "future", "stray"
_DIRECTORY = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]+)-(?P<partition>\d{1,9})(\.[0-9a-f]{32}-(?P<state>delete|future|stray))?"
)
_TOPIC_ID = re.compile(r"(?P<path>.+)/partition\.metadata:\s*topic_id:\s*(?P<id>[\w-]{22})\s*")
_LONG = re.compile(r"[-dlbcps][-rwxsStT]{9}[.+@]?\s")
"""How a line of ``ls -l`` begins."""
_MOST = 1 << 30
"""Bytes of a listing."""
_SMALL = 1 << 16
"""Bytes of ``partition.metadata`` and ``meta.properties``."""


class Found(NamedTuple):
    """A partition in a log directory. ``state`` is ``""``, ``delete``, ``future`` or ``stray``."""

    broker: int
    log_dir: str | None
    topic: str
    partition: int
    topic_id: str | None
    state: str
    size: int | None


class Held(NamedTuple):
    """What was found, of which brokers, and of which of them not everything could be seen: broker -> why."""

    found: list[Found]
    brokers: frozenset[int]
    partial: dict[int, str]


def read(file: str, broker: int | None) -> Held:
    """What a file (``-``: standard input) or log directory tells; ``broker`` is whose listing it is.

    Raises CommandError where it cannot be read, is none of those, or does not say whose it is.
    """
    path = os.path.expanduser(file)
    if file != "-" and os.path.isdir(path):
        return _directory(file, path, broker)
    text = _text(file, path)
    start = text.find('{"')
    if start >= 0 and '"logDirs"' in text:
        return _told(file, text[start:])
    if broker is None:
        raise CommandError(f"{file}: a listing does not say whose it is", hint="--broker ID says so")
    found = list(dict.fromkeys(_listed(text.splitlines(), broker)))
    if not found:
        raise CommandError(
            f"{file}: no partitions in it",
            hint="it should be kafka-log-dirs.sh's output, or list directories: orders-0",
        )
    # The same directory may be there twice, of which one line has the id.
    with_id = {(one.topic, one.partition, one.state) for one in found if one.topic_id}
    kept = [one for one in found if one.topic_id or (one.topic, one.partition, one.state) not in with_id]
    return Held(kept, frozenset((broker,)), {})


def _text(file: str, path: str) -> str:
    try:
        if file == "-":
            return sys.stdin.read(_MOST)
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read(_MOST)
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror or error}") from None


# --- kafka-log-dirs.sh -----------------------------------------------------------------------------------------------


def _told(file: str, text: str) -> Held:
    """``kafka-log-dirs.sh --describe``: two lines for people, then one of JSON."""
    import json

    try:
        told, _ = json.JSONDecoder().raw_decode(text)
        found, brokers, partial = list[Found](), set[int](), dict[int, str]()
        for one in told["brokers"]:
            broker = int(one["broker"])
            brokers.add(broker)
            for log_dir in one["logDirs"]:
                if log_dir.get("error"):
                    partial[broker] = f"{log_dir['logDir']}: {log_dir['error']}"
                found += [_of_tool(broker, str(log_dir["logDir"]), item) for item in log_dir["partitions"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"[:200]
        raise CommandError(f"{file}: not what kafka-log-dirs.sh --describe prints ({reason})") from None
    return Held(found, frozenset(brokers), partial)


def _of_tool(broker: int, log_dir: str, item: dict[str, Any]) -> Found:
    topic, _, number = str(item["partition"]).rpartition("-")
    state = MOVED if item.get("isFuture") else ""
    size = item.get("size")
    return Found(broker, log_dir, topic, int(number), None, state, size if isinstance(size, int) else None)


# --- listings --------------------------------------------------------------------------------------------------------


def _listed(lines: Iterable[str], broker: int) -> Iterator[Found]:
    """Lines of ``ls``, ``ls -l``, ``ls -R``, ``find``, or ``grep -r topic_id``."""
    below = None
    for whole in lines:
        line = whole.strip()
        match = _TOPIC_ID.fullmatch(line)
        topic_id = match["id"] if match else None
        path = match["path"] if match else line
        if path.endswith(":") and not match:
            below = path[:-1]
            continue
        if _LONG.match(path):
            path = path.rsplit(None, 1)[-1]
        *above, name = path.rstrip("/").split("/")
        while (directory := _DIRECTORY.fullmatch(name)) is None and above:
            *above, name = above
        if directory is not None and directory["topic"] != METADATA_TOPIC:
            log_dir = "/".join(above) or below
            yield Found(
                broker,
                log_dir,
                directory["topic"],
                int(directory["partition"]),
                topic_id,
                directory["state"] or "",
                None,
            )


def _directory(file: str, path: str, broker: int | None) -> Held:
    """A log directory of this machine, with the ids in its ``partition.metadata`` files."""
    owner = broker if broker is not None else _owner(path)
    if owner is None:
        raise CommandError(f"{file}: has no meta.properties that says whose it is", hint="--broker ID says so")
    found = []
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror or error}") from None
    for name in names:
        match = _DIRECTORY.fullmatch(name)
        if match is None or match["topic"] == METADATA_TOPIC or not os.path.isdir(os.path.join(path, name)):
            continue
        topic_id = _properties(os.path.join(path, name, "partition.metadata"), ": ").get("topic_id")
        found.append(Found(owner, file, match["topic"], int(match["partition"]), topic_id, match["state"] or "", None))
    return Held(found, frozenset((owner,)), {})


def _owner(path: str) -> int | None:
    return node_id(_properties(os.path.join(path, META), "="))


def _properties(path: str, mark: str) -> dict[str, str]:
    """Lines of a small file, ``name<mark>value``; nothing where it cannot be read."""
    try:
        text = read_small(path, _SMALL).decode("utf-8", "replace")
    except (FileNotFoundError, SourceError):
        return {}
    pairs = [line.partition(mark) for line in text.splitlines()]
    return {name.strip(): value.strip() for name, found, value in pairs if found}
