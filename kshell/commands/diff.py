"""``diff``: what changed between two points in time of one source, or what differs between two sources."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kshell.client.contexts import load
from kshell.cluster.snapshot_slips import sentences, slips_between
from kshell.commands.as_of import complete_point
from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.result import Column, Difference, PageLayout, Result, Row, Rows, Text, Value
from kshell.engine.session import Session
from kshell.engine.walk import names_and_values
from kshell.errors import EXIT_FINDING, EXIT_OK, EXIT_SOURCE, OutOfReachError, UsageError
from kshell.history.diff import (
    ADDED,
    CHANGED,
    FIELDS,
    REMOVED,
    Change,
    TreeComparison,
    counts,
    repeats_by_name,
    unknown_subtrees,
)
from kshell.history.diff_by_content import ContentComparison
from kshell.history.records import changed_parts, with_listing
from kshell.sources.choose import choose, open_source
from kshell.sources.directory.files import Listing, local_path
from kshell.sources.directory.sidecar_files import cluster_id
from kshell.sources.directory.source import DirectorySource
from kshell.sources.points import is_duration_before, oldest_before_now
from kshell.tables.declaration import columns
from kshell.tables.selection import where_flag
from kshell.tree.paths import HOME, TOPICS_BY_ID, Segments, below_home, join, resolve

if TYPE_CHECKING:
    from kshell.tables.where import Predicate

_COLUMNS = columns(FIELDS)
_STAT = (Column("type", type="string"), *(Column(name, type="int64") for name in (ADDED, REMOVED, CHANGED)))
_SIGNS = {ADDED: "+", REMOVED: "-", CHANGED: "~"}
_CONTEXT = "context:"
_BY_CONTENT, _BY_ID = "content", "id"
_CONTENT_ONLY = "content is compared; --by id compares ids, epochs, incarnations, log directories and offsets, too"
_NOT_SHARED = "content is compared; --by id compares ids, epochs, addresses, offsets, salts and keys, too"


class DiffArguments(Arguments):
    """Arguments and options of ``diff``."""

    a: str
    b: str
    path: str | None
    stat: bool
    by: str | None
    ignore_epochs: bool
    where: Predicate | None
    json_patch: bool


def run(session: Session, args: DiffArguments) -> Result:
    """Compare the two operands. Exit code 1 if anything differs, even if ``--where`` hides it."""
    if args.json_patch and args.where is not None:
        raise UsageError("diff: --json-patch is always complete: it takes no --where", hint="a PATH narrows it")
    place = _place(session, args.path)
    old = _operand(session, args.a)
    try:
        new = _operand(session, args.b, clamp_to_log_start=False)
    except BaseException:
        _close(session, old)
        raise
    try:
        below_home(new.root, place, "diff")
        comparison = TreeComparison(old, new, place, ignore_epochs=args.ignore_epochs)
        if not comparison.exists():
            resolve(new.root, place)  # raises NoSuchPathError, with similar names
        content = _content(session, args, old, new, place)
        result = _result(args, comparison, place, content)
        _remark(session, old, new, place)
        if old.source is not new.source and not args.json_patch:
            session.remarks.append(f"removed (-): only in {args.a}, added (+): only in {args.b}")
        if old.source is new.source and old.image.provenance.offset == new.image.provenance.offset:
            for point in (args.a, args.b):
                session.since(point)  # adds a remark on a time after the last record
        unknown = EXIT_SOURCE if old.is_empty() and new.is_empty() else EXIT_OK
        result.exit_code = max(result.exit_code, old.exit_code(), new.exit_code(), unknown)
        return result
    finally:
        _close(session, old, new)


def _close(session: Session, *sides: Session) -> None:
    """Close the sources that were opened for the comparison."""
    for side in sides:
        if side.source is not session.source:
            side.source.close()


def _content(
    session: Session, args: DiffArguments, old: Session, new: Session, place: Segments
) -> ContentComparison | None:
    """How content is compared: if ``--by`` says so, else if the clusters are known to differ; ``None``: ids are."""
    needs_ids = args.json_patch or place[: len(TOPICS_BY_ID)] == TOPICS_BY_ID
    if args.by == _BY_CONTENT and needs_ids:
        subject = "a patch" if args.json_patch else join(TOPICS_BY_ID)
        raise UsageError(f"diff: {subject} is about ids, which --by content leaves out", hint="--by id compares them")
    if args.by == _BY_ID or needs_ids:
        return None
    clusters = [] if old.source is new.source else list(map(_cluster_id, (old, new)))
    two_clusters = None not in clusters and len(set(clusters)) > 1
    if two_clusters:
        session.remarks.append(f"two clusters, {clusters[0]} and {clusters[1]}: {_NOT_SHARED}")
    elif args.by == _BY_CONTENT:
        session.remarks.append(_CONTENT_ONLY)
    else:
        return None
    return ContentComparison(two_clusters=two_clusters)


def _cluster_id(session: Session) -> str | None:
    nodes = session.source.nodes
    return cluster_id(session.source.listing()) if nodes is None else nodes.cluster_id


def _result(
    args: DiffArguments, comparison: TreeComparison, place: Segments, content: ContentComparison | None
) -> Result:
    if args.json_patch:
        import json

        patch = comparison.patch()
        result: Result = Value(join(place), "patch", patch, exit_code=EXIT_FINDING if patch else 0)
        result.readable = Text(json.dumps(patch, indent=2, ensure_ascii=False), exit_code=result.exit_code)
        return result
    if args.stat:
        return _statistics(args, comparison, content)
    every = comparison.changes()
    every = every if content is None else content.changes(every)
    marked_changes = [(change, args.where is None or bool(args.where(change.row()))) for change in every]
    changes = [change for change, is_chosen in marked_changes if is_chosen]
    code = EXIT_FINDING if marked_changes else EXIT_OK
    result = diff_rows((change.row() for change in changes), code)
    if place[: len(TOPICS_BY_ID)] != TOPICS_BY_ID:
        result.page = _PAGE._replace(repeats=_is_by_id)
    without_repeats = [
        (change, is_chosen) for change, is_chosen in marked_changes if not repeats_by_name(change.path, place)
    ]
    readable_changes = (
        (change for change, is_chosen in without_repeats if is_chosen)
        if content is None
        else content.readable(without_repeats)
    )
    result.readable = diff_rows((change.row() for change in readable_changes), code)
    return result


def _statistics(args: DiffArguments, comparison: TreeComparison, content: ContentComparison | None) -> Result:
    """Count the changes as they are found: there may be a million. Topics count once, below ``byName``."""

    def changes(*, repeated: bool) -> Iterator[Change]:
        every = comparison.changes(repeated=repeated)
        return every if content is None else content.changes(every)

    is_different = False

    def chosen() -> Iterator[Change]:
        nonlocal is_different
        for change in changes(repeated=False):
            is_different = True
            if args.where is None or args.where(change.row()):
                yield change

    rows = counts(chosen())
    is_different = is_different or next(changes(repeated=True), None) is not None
    return Rows(_STAT, rows, exit_code=EXIT_FINDING if is_different else EXIT_OK)


def diff_rows(changes: Iterable[Row], exit_code: int) -> Rows:
    """Make the result of rows of changes, each with a value for every column."""
    return Rows(
        _COLUMNS, list(changes), "lines", line=_line, hanging=4, tone=change_of, page=_PAGE, exit_code=exit_code
    )


def change_of(row: Row) -> str:
    """The tone in which a row is rendered: added, removed or changed."""
    return str(row["change"])


def _on_page(row: Row) -> Row:
    """A row for an HTML page: for each changed field its old and new value, instead of two whole values."""
    old, new = row["old"], row["new"]
    if row["change"] != CHANGED:
        value = new if row["change"] == ADDED else old
    elif row["fields"]:
        value = [Difference(name, old.get(name), new.get(name)) for name in row["fields"]]
    else:
        value = [Difference("", old, new)]
    return {"change": row["change"], "path": row["path"], "type": row["type"], "value": value}


def _is_by_id(row: Row) -> bool:
    """Whether the row is below ``byId``: the same change is also in a row below ``byName``."""
    return str(row["path"]).startswith(join(TOPICS_BY_ID) + "/")


_PAGE = PageLayout(tuple(Column(name) for name in ("change", "path", "type", "value")), _on_page)


def _place(session: Session, path: str | None) -> Segments:
    if path is None:
        return HOME
    place = session.place(path)
    if place is None:
        raise UsageError(f"{path}: diff takes one path, without a glob", hint="compare the directory around it")
    return place or HOME


def _operand(session: Session, operand: str, *, clamp_to_log_start: bool = True) -> Session:
    """The session of an operand: an existing path or ``context:NAME`` is a source, all else is a point in time.

    ``clamp_to_log_start``: whether a duration that reaches before the log's start stands for the log's start.
    """
    if session.is_confined or not (
        operand.startswith(_CONTEXT) or os.sep in operand or os.path.exists(local_path(operand))
    ):
        try:
            return session.reshape(point=operand)
        except OutOfReachError as error:
            oldest = with_listing(session, lambda listing: _oldest(session, listing))
            if oldest is None:
                raise
            if clamp_to_log_start and is_duration_before(operand):
                session.remarks.append(
                    f"{operand}: {error.message}; compared from offset {oldest.until} on, the oldest state that is"
                    " known: --stat counts the changes, `log` lists them in order"
                )
                return oldest
            error.hint = f"{error.hint}; `diff {oldest.until} now` shows all that changed"
            raise
        except UsageError as error:
            if not session.is_confined and operand in _contexts():
                error.hint = f"a context of that name is {_CONTEXT}{operand}"
            elif not session.is_confined and operand[:1].isalpha():
                message = f"{operand}: no such file or directory, and not a point in the log"
                hint = f"{error.hint}; another source is a directory, or {_CONTEXT}NAME"
                raise UsageError(message, hint=hint) from None
            raise
    return source_named(session, operand)


def _oldest(session: Session, listing: Listing) -> Session | None:
    """A session at the oldest state after which every state can be shown, loaded; ``None`` if there is none."""
    offset = oldest_before_now(listing)
    if offset is None:
        return None
    oldest = session.reshape(point=str(offset))
    _ = oldest.loaded
    return oldest


def source_named(session: Session, name: str) -> Session:
    """Open the source that a path or ``context:NAME`` names, with the options of the given session.

    Raises:
        UsageError: there is no such file, or no such context.
    """
    path = local_path(name)
    if name.startswith(_CONTEXT):
        source = open_source(choose({"context": name.removeprefix(_CONTEXT)}, os.environ))
    elif os.path.exists(path):
        source = DirectorySource(path)
    else:
        raise UsageError(f"{name}: no such file or directory")
    return Session(source, show_secrets=session.redaction.show_secrets, progress=session.progress)


def _remark(session: Session, old: Session, new: Session, place: Segments) -> None:
    """Add remarks on problems of either side, parts that were not compared, and slips of snapshots between the two."""
    remarks: list[str] = []
    for side in dict.fromkeys((old, new)):
        states = side.unwritten() or side.state_notes("`now` is" if side.until is None else "answers are")
        messages = [*side.problems(), *side.loaded.notes, *states]
        is_own_source = side.source is session.source
        remarks += [
            text if is_own_source or side.source.name in text else f"{side.source.name}: {text}" for text in messages
        ]
    remarks += [
        f"not compared: {join(path)}: one of the two sources does not report it"
        for path in unknown_subtrees(old.image, new.image)
    ]
    if old.source is new.source and new.source.has_log:
        older, newer = sorted((old, new), key=lambda side: side.image.provenance.offset)
        remarks += sentences(slips_between(older, newer), place)
    session.remarks += remarks


def _line(row: Row) -> str:
    sign = _SIGNS[row["change"]]
    if row["change"] != CHANGED:
        return f"{sign} {row['path']} {names_and_values(row['new'] if row['change'] == ADDED else row['old'])}"
    old, new = row["old"], row["new"]
    if row["fields"]:  # only these: other fields may differ, too, but were left out, as between two clusters
        old, new = ({name: value.get(name) for name in row["fields"]} for value in (old, new))
    redacted = [name for name in row["fields"] if old[name] == new[name]]  # a changed secret: both sides look the same
    parts = [*changed_parts(old, new), *(f"{name} {old[name]} -> {new[name]}" for name in redacted)]
    return f"{sign} {row['path']}: {', '.join(parts)}"


def _complete(session: Session, typed: str) -> Iterable[str]:
    """Complete an operand: points in time and contexts."""
    if typed.startswith(_CONTEXT[: len(typed)]) and typed:
        return [f"{_CONTEXT}{name}" for name in _contexts()]
    return complete_point(session, typed)


def _contexts() -> Iterable[str]:
    """The names of the user's contexts."""
    return load(os.environ).named


COMMAND = Command(
    name="diff",
    task=Task.PAST,
    summary="what changed between two points, or between two sources",
    run=run,
    arguments=DiffArguments,
    args=(
        Arg("a", "the older: a point, a directory, a snapshot file, or context:NAME", complete=_complete),
        Arg("b", "the newer", complete=_complete),
        Arg("path", "only what is there, or below; /image when absent", kind="path", arity="?"),
    ),
    flags=(
        Flag(("--stat",), "only how many leaves of each type were added, removed and changed"),
        Flag(
            ("--by",),
            "content leaves out what Kafka makes up or counts (ids, epochs, log directories, offsets), id compares all",
            metavar="WHAT",
            choices=(_BY_CONTENT, _BY_ID),
        ),
        Flag(("--ignore-epochs",), "leave out leader, partition and broker epochs, and the provenance"),
        where_flag(FIELDS),
        Flag(("--json-patch",), "the changes as a JSON patch (RFC 6902)"),
    ),
    examples=(
        Example("diff 160 now /image/topics/byName/orders", "what happened to a topic since offset 160", 1),
        Example("diff 160 now --stat", "how much changed", 1),
        Example("diff 160 now /image/topics/byName/orders/0 --ignore-epochs -o json", "one partition, exactly", 1),
        Example("diff 160 now /image/topics/byName/orders/0 --json-patch", "for a program that patches JSON", 1),
        Example("diff 160 now --where 'type == partition and leader in fields'", "partitions with another leader", 1),
        Example("diff 160 now /image/acls --by content", "ACLs by what they say, whatever their ids", 1),
        Example("diff now now", "nothing: the exit code is 0"),
    ),
    description=(
        "An operand that is an existing path of this machine, or context:NAME, is a source, read as it is now; all else"
        " is a point of the session's own source. Each row is one leaf: its path, whether it was added, removed or"
        " changed, the fields that changed, and the whole old and new value. The rows, applied to the image of a, give"
        " the image of b. So topics come twice, by name and by id, but text shows them by name only. Secrets stay"
        " redacted: a changed secret has a row, without its value.\n\n"
        "Between two clusters (their cluster ids differ), or with --by content, topics are compared by name, and ACLs"
        " and delegation tokens by what they say. Left out are ids (those of topics, ACLs, tokens and producers),"
        " epochs, incarnations, log directories and offsets; between two clusters also what they cannot share: hosts"
        " and ports, times of tokens, and salt and keys of SCRAM credentials (another salt each time). Text has one"
        " line for a topic that only one of them has.\n\n"
        "--json-patch prints a patch for the document that `cat PATH -o json` prints for a (`cat /image -o json`"
        " without a PATH). Applied to that document, it gives the document for b."
    ),
    needs_source=False,
    exit_1_when="something differs, whether --where shows it or not",
)
