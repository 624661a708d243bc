"""``hash``: a digest of the metadata, to compare nodes, copies and points in time: equal metadata, equal digest."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.result import Report, Result, Section
from kshell.errors import EXIT_FINDING, EXIT_OK, CommandError, DataError, UsageError
from kshell.tree.hash import image_hash

if TYPE_CHECKING:
    from kshell.engine.session import Session


class HashArguments(Arguments):
    """Arguments and options of ``hash``."""

    path: str | None
    expect: str | None


def run(session: Session, args: HashArguments) -> Result:
    """Hash the image, or a part of it.

    Returns:
        ``hash``, and the ``offset`` and ``epoch`` of the last record in the image; exit code 1 if ``--expect`` names
        another hash.

    Raises:
        CommandError: --expect at a point that is not written yet: another hash would say nothing.
        DataError: another hash than --expect names, of an image that lacks records newer than this kshell.
        NoSuchPathError: there is no such path.
        SourceError: the source is brokers, which report only parts of the image.
        UsageError: the path is outside ``/image``.
    """
    session.source.require_log("hash")
    hits = session.find(args.path or "/image")
    path = hits[0][0]
    if len(hits) > 1 or path[:1] != ("image",):
        raise UsageError("hash: takes one path, /image or below it", hint="hash /image/topics")
    last = session.image.provenance
    if args.expect is not None and session.unwritten() and not session.loaded.damage:
        newest = session.loaded.last_offset
        hint = f"compare at an offset that both have: the last one here is {newest}" if newest >= 0 else None
        raise CommandError(f"there is no hash of offset {session.until} to compare with", hint=hint)
    digest = image_hash(session.image, path)
    answer = {"hash": digest, "offset": last.offset, "epoch": last.epoch}
    is_expected = args.expect in (None, digest)
    if not is_expected and any(problem.unknown for problem in session.loaded.problems):
        raise DataError(
            "another hash, but the image lacks records that are newer than this kshell: they may be the difference",
            hint="`info` lists them; compare with a newer kshell",
        )
    return Report([Section("", "", answer)], exit_code=EXIT_OK if is_expected else EXIT_FINDING)


def _expected(text: str) -> str:
    digest = text if text.startswith("sha256:") else f"sha256:{text}"
    if not re.fullmatch("sha256:[0-9a-f]{64}", digest.lower()):
        raise ValueError("sha256: and 64 hexadecimal digits")
    return digest.lower()


COMMAND = Command(
    name="hash",
    task=Task.LOG,
    summary="a hash of the metadata, to compare nodes, copies and moments with",
    run=run,
    arguments=HashArguments,
    args=(Arg("path", "only this part of /image", kind="path", arity="?"),),
    flags=(Flag(("--expect",), "exit code 1 unless the hash is this one", metavar="HASH", convert=_expected),),
    examples=(
        Example("hash", "of the whole image"),
        Example("hash /image/acls", "of the ACLs"),
        Example("hash --as-of 100", "as of an offset: compare it with another node's"),
    ),
    description=(
        "SHA-256 over one line per leaf of /image, sorted by their bytes: the path, a tab, the value as JSON with"
        " sorted keys and without spaces, a line feed. /image/provenance is left out. Secret values are part of it;"
        " only their hash leaves. All nodes of a cluster have the same hash at the same offset: give --as-of an offset"
        " that both have. Where two nodes differ at an offset, `compare-logs` says in what."
    ),
    exit_1_when="the hash is not the one that --expect names",
)
