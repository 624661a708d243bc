"""``stat``: for paths of the tree, the record that last wrote each: its type, offset, epoch, time and file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kshell.engine.declaration import Arg, Arguments, Command, Example, Task
from kshell.engine.result import Report, Result, Section
from kshell.engine.session import Session
from kshell.engine.walk import kind
from kshell.metadata.partial import is_node_reported
from kshell.metadata.values import Origin
from kshell.sources.directory.describe import snapshot_named_by
from kshell.tree.image import epoch_ms, iso
from kshell.tree.node import Directory, Leaf, Node
from kshell.tree.paths import Segments, join

if TYPE_CHECKING:
    from kshell.json_text import JsonObject


class StatArguments(Arguments):
    """Arguments and options of ``stat``."""

    path: list[str]


def run(session: Session, args: StatArguments) -> Result:
    """Return one object for one path; for several paths, an object with one object under each path."""
    matches = [hit for pattern in args.path for hit in session.find(pattern)]
    if len(matches) == 1:
        return Report([Section("", "", _facts(session, *matches[0]))])
    return Report([Section(join(at), join(at), _facts(session, at, node)) for at, node in matches])


_FIELDS = tuple("written record version offset epoch time timeMs snapshot snapshotOffset file position".split())


def _facts(session: Session, segments: Segments, node: Node) -> JsonObject:
    facts: JsonObject = {"path": join(segments), "type": kind(node)}
    if isinstance(node, Directory):
        facts["children"] = len(node.segments())
    origin = session.origin(segments, node) if isinstance(node, Leaf | Directory) else None
    if origin is None:
        return facts | dict.fromkeys(_FIELDS) | {"written": "by no single record"}
    place = origin.place
    if is_node_reported(origin):
        api = f"{origin.record_type} v{origin.version}"
        written = f"not known: {place.file} reported the value ({api})"
        return facts | dict.fromkeys(_FIELDS) | {"written": written}
    facts |= _in_snapshot(origin) if place.in_snapshot else _in_log(origin)
    if session.source.is_live:
        return facts | {"file": None, "position": None}  # the batch was fetched, so it is in no file
    return facts | {"file": place.file, "position": place.position}


def _in_log(origin: Origin) -> JsonObject:
    return {
        "written": f"by the record at offset {origin.offset}",
        "record": origin.record_type,
        "version": origin.version,
        "offset": origin.offset,
        "epoch": origin.place.epoch,
        "time": iso(origin.timestamp),
        "timeMs": epoch_ms(origin.timestamp),
        "snapshot": None,
        "snapshotOffset": None,
    }


def _in_snapshot(origin: Origin) -> JsonObject:
    """Facts on a value of a snapshot, whose original offset is only known to be below the snapshot's end."""
    name = snapshot_named_by(origin.place.file)
    end = name.partition("-")[0]
    last = f"at or before offset {int(end) - 1}, " if name != origin.place.file else ""
    return dict.fromkeys(_FIELDS) | {
        "written": f"{last}in snapshot {name}",
        "record": origin.record_type,
        "version": origin.version,
        "snapshot": name,
        "snapshotOffset": origin.offset,
    }


COMMAND = Command(
    name="stat",
    task=Task.TREE,
    summary="where nodes come from: the record, offset, epoch and time that last wrote them",
    run=run,
    arguments=StatArguments,
    args=(Arg("path", "leaves or directories", kind="path", arity="+"),),
    examples=(
        Example("stat /image/topics/byName/legacy-import/0", "the record that last changed a partition"),
        Example("stat /image/topics/byName/orders", "when a topic was made, and how much it holds"),
        Example("stat /image/cluster/brokers/* -o json", "every broker"),
    ),
    description=(
        "file and position name the record's batch: its file and its first byte in there. A snapshot keeps what was"
        " written and not when, so the log before it is replayed where the directory still has it. Where it has not,"
        " offset, epoch and time are null, written says which offset the value is not later than, and snapshotOffset"
        " is the record's place in the snapshot (as dump --snapshot counts)."
    ),
)
