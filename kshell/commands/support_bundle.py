"""``support-bundle``: a ZIP file with the answers of many commands, for somebody who helps from afar; no secrets."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from kshell.engine import plain, registry
from kshell.engine.arguments import parse
from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag, Task
from kshell.engine.local_files import complete_file
from kshell.engine.result import Result, Row, Rows, typed
from kshell.engine.staging import require_new_file
from kshell.errors import KshellError, UsageError
from kshell.json_text import JsonObject, to_json
from kshell.metadata.redaction import Redaction
from kshell.own_files import replacing
from kshell.tree.image import iso
from kshell.version import __version__

if TYPE_CHECKING:
    import zipfile

    from kshell.engine.session import Session

_COLUMNS = typed("file:string bytes:int64 error:string", wide="sha256:string")
_MOST_ROWS = 20_000
"""Rows of one answer at most: a bundle is read by users, and sent by mail."""
_PACKAGES = (
    "crc32c cramjam prompt-toolkit pygments pyyaml wcwidth markdown-it-py cryptography duckdb"
    " pyarrow pandas polars ipython pyspark deltalake"
).split()


class Content(NamedTuple):
    """A file of the bundle: the answer of ``command_line``; ``purpose`` is its line in the README."""

    file: str
    command_line: tuple[str, ...]
    purpose: str


CONTENTS = (
    Content("status.json", ("status",), "the cluster on one screen"),
    Content("health.json", ("health",), "what is wrong, and what to do next"),
    Content("verify.json", ("verify",), "whether each file of the source is whole, and where it is not"),
    Content("info.json", ("info",), "files, offsets, epochs, record counts and problems of the source"),
    Content("quorum.json", ("quorum",), "leader, voters and observers of the metadata quorum"),
    Content("features.json", ("features",), "finalized and supported feature levels"),
    Content("controllers.json", ("controllers",), "the controllers"),
    Content("brokers.json", ("brokers",), "the brokers, and the software that they run"),
    Content("registrations.json", ("registrations",), "registrations, and which are stale"),
    Content("topics.json", ("topics",), "topics, and how many of their partitions are in trouble"),
    Content(
        "partitions.json",
        ("partitions", "--under-min-isr", "--under-replicated", "--reassigning"),
        "partitions in trouble",
    ),
    Content("configs.json", ("configs",), "configs that are set; sensitive values are redacted"),
    Content("log.json", ("log", "--newest-first", "--count", "1000"), "the last 1,000 records, the newest first"),
)
_ABOUT = """\
Support bundle of kshell {version}, made at {time}.

It says what the metadata of a Kafka cluster looks like, for somebody who was not there. It holds names (of topics,
configs, hosts) but no secrets: passwords, keys, SCRAM credentials and sensitive configs are replaced by [redacted].
Read it before you pass it on.

{contents}
  environment.json       kshell, Python and this machine
  manifest.json          the source, and the size and SHA-256 of each file

NAME.error.json stands in place of an answer that could not be given, and says why.
"""


class SupportBundleArguments(Arguments):
    """Arguments and options of ``support-bundle``."""

    file: str
    force: bool


def run(session: Session, args: SupportBundleArguments) -> Result:
    """Write the bundle.

    Returns:
        One row per file of the bundle; ``error`` says why an answer is missing.

    Raises:
        CommandError: the file exists, or cannot be written.
        UsageError: with ``--show-secrets``: a bundle is made to be passed on.
    """
    if session.redaction.show_secrets:
        raise UsageError("support-bundle: never holds secrets", hint="leave out --show-secrets")
    target = require_new_file(session, args.file, force=args.force, example="support-bundle bundle.zip")
    rows: list[Row] = []
    own, session.redaction = session.redaction, Redaction(hides_undecoded=True)
    try:
        _write(session, target, args.file, rows)
    finally:
        session.redaction = own
    session.remarks.clear()  # each answer in the bundle has its own notes
    session.remarks.append(f"{args.file} has names of topics and hosts, no secrets: read it before you send it")
    return Rows(_COLUMNS, rows)


def _write(session: Session, target: str, name: str, rows: list[Row]) -> None:
    """Write the bundle; add a row for each file to ``rows``."""
    from zipfile import ZIP_DEFLATED, ZipFile  # late: help and completion do without

    with replacing(target, name) as file, ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for content in CONTENTS:
            rows.append(_add_answer(archive, session, content))
        rows.append(_add(archive, "environment.json", to_json(_environment(), 2)))
        contents = "\n".join(f"  {content.file:<23}{content.purpose}" for content in CONTENTS)
        about = _ABOUT.format(version=__version__, time=iso(int(time.time() * 1000)), contents=contents)
        rows.append(_add(archive, "README.txt", about))
        _add(archive, "manifest.json", to_json(_manifest(session, rows), 2))


def _add_answer(archive: zipfile.ZipFile, session: Session, content: Content) -> JsonObject:
    try:
        return _add(archive, content.file, to_json(_answer(session, content.command_line), 2))
    except KshellError as error:
        name = content.file.replace(".json", ".error.json")
        text = to_json({"error": error.message, "next": error.hint, "exitCode": error.exit_code}, 2)
        return _add(archive, name, text) | {"error": error.message}


def _answer(session: Session, command_line: tuple[str, ...]) -> JsonObject:
    """The answer of a command with exit code and notes; of many rows only the first, and the number of the others."""
    session.remarks.clear()
    earlier, session.found_damage = session.found_damage, []
    command = registry.get(command_line[0])
    result = command.run(session, parse(command, list(command_line[1:])))
    if isinstance(result, Rows):
        value: object
        value, left_out, _ = plain.first_rows(plain.objects(result), _MOST_ROWS)
    else:
        value, left_out = plain.value(result), 0
    answer = {
        "command": " ".join(command_line),
        "exitCode": max(result.exit_code, session.exit_code()),
        "notes": [*session.problems(), *session.remarks],
        "rowsLeftOut": left_out,
        "answer": value,
    }
    session.found_damage[:0] = earlier
    return answer


def _add(archive: zipfile.ZipFile, name: str, text: str) -> JsonObject:
    body = (text.rstrip("\n") + "\n").encode()
    archive.writestr(name, body)
    return {"file": name, "bytes": len(body), "sha256": hashlib.sha256(body).hexdigest(), "error": None}


def _environment() -> JsonObject:
    """Facts on kshell, Python, packages and machine; of environment variables only names, as values may be secret."""
    from importlib.metadata import PackageNotFoundError, version

    packages = {}
    for name in _PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            packages[name] = version(name)
    return {
        "kshell": __version__,
        "python": sys.version,
        "platform": platform.platform(),
        "encoding": sys.getfilesystemencoding(),
        "variables": sorted(name for name in os.environ if name.startswith(("KSHELL_", "KAFKA_"))),
        "packages": packages,
    }


def _manifest(session: Session, rows: list[Row]) -> JsonObject:
    source = session.source
    files = [{"name": row["file"], "size": row["bytes"], "sha256": row["sha256"]} for row in rows]
    return {
        "source": source.name or source.path,
        "kind": source.kind,
        "asOf": session.until,
        "problems": session.problems(),
        "notes": session.notes(),
        "files": files,
    }


COMMAND = Command(
    name="support-bundle",
    task=Task.PROBLEMS,
    summary="what the person who helps you needs to know, in one ZIP file, without secrets",
    run=run,
    arguments=SupportBundleArguments,
    args=(Arg("file", "where the ZIP file goes", complete=complete_file),),
    flags=(Flag(("--force",), "replace the file if it exists"),),
    examples=(
        Example("support-bundle bundle.zip", "everything about this source, to attach to a ticket"),
        Example("support-bundle before.zip --as-of 100", "the same as of an earlier moment"),
    ),
    description=(
        "Holds the answers of status, health, verify, info, quorum, features, controllers, brokers, registrations,"
        " topics and configs, the partitions in trouble, the last 1,000 records of the log, and facts about kshell,"
        " Python and the machine. Secrets, and records that cannot be decoded, are redacted, whatever options are"
        " given; names of topics, configs and hosts are not, so read it before you pass it on. What cannot be answered"
        " (a damaged directory, a node that is down) does not stop it: the file NAME.error.json says why. The file is"
        " readable by its owner only."
    ),
)
