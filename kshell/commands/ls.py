"""``ls``: list directories of the tree, with ``-l`` also the record that last wrote each entry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.result import TIMESTAMP, Column, Result, Row, Rows
from kshell.engine.session import Session
from kshell.metadata.partial import is_node_reported
from kshell.metadata.values import Origin
from kshell.sources.directory.describe import snapshot_named_by
from kshell.tree.image import epoch_ms, iso
from kshell.tree.node import Directory, Leaf, Node
from kshell.tree.paths import Segments, join

if TYPE_CHECKING:
    from kshell.json_text import JsonObject

_REPLAY_AT_MOST = 32 * 1024 * 1024
"""Bytes of log that ``ls -l`` replays at most to find when a snapshot's value was written; ``stat`` has no limit."""

_NAMES = (Column("name", type="string"), Column("type", wide=True, type="string"))
_LONG = (
    Column("type", type="string", spare=2),
    Column("record", wide=True, type="string"),
    Column("version", wide=True, type="int16"),
    Column("snapshot", wide=True, type="string"),
    Column("offset", type="int64", spare=1),
    Column("time", type=TIMESTAMP),
    Column("timeMs", wide=True, type="int64"),
    Column("name", type="string", spare=-1),
)


class LsArguments(Arguments):
    """Arguments and options of ``ls``."""

    path: list[str]
    long: bool
    n1: bool
    recursive: bool


def run(session: Session, args: LsArguments) -> Result:
    """Return one row per entry of each directory, and one per leaf; several directories get a heading each."""
    matches = [hit for pattern in args.path or ["."] for hit in session.find(pattern)]
    several = len(matches) > 1 or args.recursive
    return Rows(
        columns=_LONG if args.long else _NAMES,
        rows=_rows(session, matches, args),
        style="table" if args.long else "names",
        one_per_line=args.n1,
        group="directory" if several else None,
        bare=None if args.long or several else "name",
    )


def _rows(session: Session, matches: list[tuple[Segments, Node]], args: LsArguments) -> Iterator[Row]:
    leaves = [hit for hit in matches if not isinstance(hit[1], Directory)]
    for segments, node in leaves:
        yield _row(session if args.long else None, segments, node, "", join(segments))
    for segments, node in matches:
        if isinstance(node, Directory):
            yield from _directory(session, segments, node, args)


def _directory(session: Session, segments: Segments, node: Directory, args: LsArguments) -> Iterator[Row]:
    below: list[tuple[Segments, Directory]] = []
    for name in node.segments():
        child = node.child(name)
        if child is None:
            continue
        yield _row(session if args.long else None, (*segments, name), child, join(segments), name)
        if args.recursive and isinstance(child, Directory):
            below.append(((*segments, name), child))
    for path, child in below:
        yield from _directory(session, path, child, args)


def _row(session: Session | None, segments: Segments, node: Node, directory: str, name: str) -> Row:
    kind = node.type if isinstance(node, Leaf | Directory) else ""
    row: JsonObject = {"name": name, "type": kind, "directory": directory, "path": join(segments)}
    if session is not None and isinstance(node, Leaf | Directory):
        row |= _written(session.origin(segments, node, most=_REPLAY_AT_MOST))
    return row


def _written(origin: Origin | None) -> JsonObject:
    """The columns of ``-l`` for an origin. A snapshot does not have offset and time of the original record."""
    if origin is None or is_node_reported(origin):
        return {}
    facts: JsonObject = {"record": origin.record_type, "version": origin.version}
    if origin.place.in_snapshot:
        return facts | {"snapshot": snapshot_named_by(origin.place.file)}
    return facts | {"offset": origin.offset, "time": iso(origin.timestamp), "timeMs": epoch_ms(origin.timestamp)}


COMMAND = Command(
    name="ls",
    task=Task.TREE,
    summary="list directories of the tree",
    run=run,
    arguments=LsArguments,
    args=(Arg("path", "what to list; the working directory when absent", kind="path", arity="*"),),
    flags=(
        Flag(("-l", "--long"), "with type, and the offset and time of the record that last wrote each"),
        Flag(("-1",), "one name a line"),
        Flag(("-R", "--recursive"), "directories below, too"),
    ),
    description=(
        "With -l, offset and time belong to the record of the log that last wrote each node. They are empty for what"
        " comes out of a snapshot when the log before it is gone, or is longer than 32 MB (stat replays any): -o wide"
        " names the snapshot."
    ),
    examples=(
        Example("ls /image/topics/byName", "the topics"),
        Example("ls -l /image/cluster/brokers", "the brokers, and what the log last wrote of each"),
        Example("ls -l /image/topics/byName/orders -o wide", "a topic, with the records or snapshots behind it"),
        Example("ls -1 /image/configs/TOPIC:*", "the config keys of every topic that has some"),
    ),
)
