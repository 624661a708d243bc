"""``source``: run the command lines of a file in this session, so that its ``cd``, ``set`` and ``alias`` stay."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from kshell.engine.declaration import Arg, Arguments, Command, Example, Flag
from kshell.engine.execution import commands, line_of_fault, logical_lines, prepare
from kshell.engine.language import quote
from kshell.engine.local_files import complete_file
from kshell.engine.predicates import exit_code_of
from kshell.engine.result import LineResult, Many, Result
from kshell.engine.session import Session
from kshell.engine.settings import value_of
from kshell.errors import EXIT_OK, CommandError, KshellError, UsageError
from kshell.sources.directory.files import local_path

_DEEPEST = 16
"""How deep files may source one another; a file that sources itself ends here."""
_LARGEST = 1 << 20


class SourceArguments(Arguments):
    """Arguments and options of ``source``."""

    file: str
    keep_going: bool


def run(session: Session, args: SourceArguments) -> Result:
    """Read the file now, and return a result whose parts are the results of its lines, each run when it is iterated."""
    path = local_path(args.file)
    keep_going = bool(args.keep_going or value_of(session, "keep-going"))
    return Many(_parts(session, path, _read(path), keep_going=keep_going), keep_going=keep_going)


def _read(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8-sig") as file:
            _demand_own(path, os.fstat(file.fileno()))
            text = file.read(_LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise CommandError(f"{path}: {reason}") from None
    if len(text) > _LARGEST:
        raise CommandError(f"{path}: too large to be a file of commands")
    return text.split("\n")


def _demand_own(path: str, status: os.stat_result) -> None:
    """Raise CommandError if another user could have written the file: its lines would run with this user's rights."""
    if not stat.S_ISREG(status.st_mode):
        return  # such as a pipe that the user names: <(...)
    if status.st_uid not in (os.geteuid(), 0):
        raise CommandError(
            f"{path}: belongs to another user, whose lines are not run", hint="copy it, and read it first"
        )
    others_write = status.st_mode & stat.S_IWOTH
    group_writes = status.st_mode & stat.S_IWGRP and status.st_gid != status.st_uid  # same ids: a user private group
    if others_write or group_writes:
        raise CommandError(
            f"{path}: other users can write to it, so its lines are not run", hint=f"chmod go-w {quote(path)}"
        )


def _parts(session: Session, path: str, lines: list[str], *, keep_going: bool) -> Iterator[LineResult]:
    if len(session.sourcing) >= _DEEPEST:
        raise CommandError(
            f"{path}: files that source one another, {_DEEPEST} deep", hint="does the file source itself?"
        )
    session.sourcing.append(path)
    try:
        for number, line in logical_lines(lines):
            yield from _line(session, line, path, number, keep_going=keep_going)
    finally:
        session.sourcing.pop()


def _line(session: Session, line: str, path: str, number: int, *, keep_going: bool) -> Iterator[LineResult]:
    """Run the commands of a line; of those that fail yield the errors, or raise the first one."""
    code, place = EXIT_OK, f"{path}: line {number}"
    try:
        line_commands = commands(line)
    except UsageError as error:
        yield _failed(error, f"{path}: line {line_of_fault(number, line, error)}", keep_going=keep_going)
        return
    for part in line_commands:
        if part.if_done and code != EXIT_OK:
            continue
        try:
            call = prepare(session, part.text)
            if call is None:
                continue
            result = call.run()
        except KshellError as error:
            yield _failed(error, place, keep_going=keep_going)
            code = error.exit_code
            continue
        yield LineResult(call, result)
        code = exit_code_of(result, session)  # known only now that the result was read
        if session.announce is not None:
            session.announce()  # print this command's remarks now: the next one clears them


def _failed(error: KshellError, place: str, *, keep_going: bool) -> LineResult:
    """Prefix file and line to the message, but keep the class of the error, which decides the exit code."""
    error.message = f"{place}: {error.message}"
    error.args = (error.message,)
    if isinstance(error, UsageError):
        error.column = None  # it is that of a line of the file
    if not keep_going:
        raise error
    return LineResult(None, None, error)


COMMAND = Command(
    name="source",
    summary="run the lines of a file",
    run=run,
    arguments=SourceArguments,
    args=(Arg("file", "a file of command lines", complete=complete_file),),
    flags=(Flag(("--keep-going",), "go on after a line that fails"),),
    examples=(
        Example("source ~/.config/kshell/kshellrc", "aliases and settings of your own"),
        Example("source checks.kshell --keep-going", "every line, whatever the ones before it gave"),
    ),
    description=(
        "The lines run as if they were typed: cd, set and alias stay in effect. Where a quote is open, a line goes on"
        " in the next one, except in the program after a pipe. If a quote is never closed, no line from there on runs,"
        " and the error names its line. The first line that fails ends the file, unless --keep-going; the exit code is"
        " then the highest that was met. A file may source others."
    ),
    needs_source=False,
)
